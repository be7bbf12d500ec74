import { randomUUID } from 'node:crypto'
import { cp } from 'node:fs/promises'
import { expect, onTestFinished, test } from 'vitest'
import { readConfig } from '../../src/config/config.ts'
import { makeBackup } from '../../src/installation/make-backup.ts'
import { restoreBackup } from '../../src/installation/restore.ts'
import { readBody } from '../../src/storage/s3/objects.ts'
import { addFile, listFiles, SRT } from '../assets/sample-files.ts'
import { listSegments, untilFinished } from '../data-folder.ts'
import { startReelgate } from '../in-process.ts'
import { makeLocation } from '../installation-folder.ts'
import { newFolder } from '../pipeline/videos.ts'
import { readRows } from '../rows.ts'
import { bucketEnvironment, contentsOf } from '../s3.ts'
import { makeVideo } from '../videos.ts'
import { readMediaPlaylist, readRenditions } from '../viewer.ts'

// What takes care of the files of videos, on a bucket: one after the other with one video, as in its life.

const QUIETLY = { signal: new AbortController().signal, progress: () => undefined }

test('F-232: on a bucket media are checked and repaired, limits count rows, the master key is rotated, a video encrypted again, trashed and restored; the backup of before finds all its objects until the video is deleted', async () => {
  const { env, bucket } = await bucketEnvironment()
  const reelgate = await startReelgate({ env })
  const { owner } = reelgate
  // Of one colour, so that a segment that is encoded again has the same bytes.
  const videoId = await owner.upload('A video', await makeVideo({ seconds: 9, dark: true }))
  await untilFinished(reelgate, videoId)
  await addFile(owner, videoId, SRT, 'en')
  const keyOf = (name: string) => `${bucket.address.prefix}${name}`
  const read = (name: string) => bucket.ask({ method: 'GET', key: keyOf(name) }, readBody).catch(() => Buffer.alloc(0))
  const objects = async () => (await contentsOf(bucket)).objects
  async function plays() {
    const viewer = reelgate.newViewer()
    await viewer.redeem(await owner.issueOtp(videoId, { userId: randomUUID() }))
    const [rendition] = readRenditions(await viewer.playlist('main'))
    const [segment] = readMediaPlaylist(await viewer.playlist(rendition?.uri ?? '')).segments
    const base = `${reelgate.url}/play/${viewer.state.session}/playlist/`
    return [(await viewer.key(0)).status, (await fetch(new URL(segment?.uri ?? '', base))).status]
  }

  // The backup of this day.
  const [folder, location] = [await newFolder(), await makeLocation({ database: 'sqlite' })]
  onTestFinished(location.remove)
  await cp(reelgate.masterKeyFile, location.masterKeyFile)
  await makeBackup(readConfig({ ...reelgate.env, ...env }), { folder, keep: 1 }, QUIETLY)

  // Media are checked, and repaired.
  const doctor = async () => {
    const checks: { check: string; state: string; damaged?: unknown[] }[] = JSON.parse(
      (await reelgate.cli('doctor', '--media', '--json')).stdout,
    )
    return checks.find(({ check }) => check === 'media')
  }
  const [changed, lost] = listSegments(reelgate, videoId).map(({ file }) => `segments/${file}`)
  if (!changed || !lost) throw new Error('it has no two segments')
  const whole = [await read(changed), await read(lost)]
  await bucket.send({ method: 'PUT', key: keyOf(changed), body: Buffer.alloc(whole[0]?.length ?? 0) })
  await bucket.send({ method: 'DELETE', key: keyOf(lost) })
  expect(await doctor()).toMatchObject({ state: 'trouble', damaged: [{}, {}] })
  await expect.poll(async () => [await read(changed), await read(lost)]).toEqual(whole)
  await expect.poll(() => readRows(reelgate, 'select number from segment where damaged = 1')).toEqual([])
  expect(await doctor()).toMatchObject({ state: 'ok', damaged: [] })

  // Storage is what rows name.
  const storedBytes = async () => {
    const { usage }: { usage: { storedBytes: number } } = JSON.parse(await (await owner.call('GET', '/api/account')).text())
    return usage.storedBytes
  }
  const before = await storedBytes()
  const captions = (await listFiles(owner, videoId)).find(({ type }) => type === 'caption')
  await owner.call('DELETE', `/api/videos/${videoId}/files/${captions?.id}`)
  expect(await storedBytes()).toBeLessThan(before)
  const named = (await objects()).filter((name) => name.startsWith('files/'))
  await expect.poll(objects).toContain(`retired/${named[0]}`)

  expect((await reelgate.cli('key', 'rotate-master', '--json')).code).toBe(0)
  expect(await plays()).toEqual([200, 200])

  expect((await reelgate.cli('video', 'reencrypt', videoId)).code).toBe(0)
  await expect.poll(objects).toContain(`retired/segments/${videoId}/1!`)
  expect(await plays()).toEqual([200, 200])
  expect((await objects()).filter((name) => name.startsWith(`segments/${videoId}/1/`)).length).toBeGreaterThan(0)

  await owner.call('DELETE', `/api/videos?videos=${videoId}&trash=1`)
  expect((await owner.call('POST', '/api/trash/restore', { body: { videos: [videoId] } })).status).toBe(200)
  expect(await plays()).toEqual([200, 200])

  const restored = await restoreBackup(readConfig({ ...location.env, ...env }), { folder }, QUIETLY)
  expect(restored.lost).toEqual([])

  await owner.delete([videoId])
  await expect.poll(async () => (await objects()).sort()).toEqual(['check', 'reelgate'])
})
