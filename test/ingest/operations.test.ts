import { createHash, randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { cp, mkdtemp, readFile, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { examine, newMemory } from '../crash/inspect-data-folder.ts'
import { getStoredSource, listFiles, untilFinished } from '../data-folder.ts'
import { type Reelgate, startReelgate } from '../in-process.ts'
import { makeLocation } from '../installation-folder.ts'
import { play } from '../pipeline/replaced.ts'
import { runCli } from '../reelgate.ts'
import { readRows } from '../rows.ts'
import { makeVideo } from '../videos.ts'
import { createTusClient } from './tus-client.ts'

// What operators do with an installation in which files are on their way and former ones are kept.

const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')

test('X34: a new master key, doctor --media, the sweep of orphans, a new encryption and the trash leave unfinished uploads and what is kept as they are', async () => {
  const reelgate = await startReelgate({ video: await makeVideo() })
  const { owner, videoId } = reelgate
  const { arriving, replacing, file, longer } = await haveUnfinished(reelgate)
  const tus = createTusClient(owner)
  const before = await owner.video(videoId)

  expect(await runCli(['key', 'rotate-master', '--json'], reelgate.env)).toMatchObject({ code: 0 })
  expect((await tus.patch(arriving.address, 150_000, file.subarray(150_000, 200_000))).status).toBe(204)

  const checked = await runCli(['doctor', '--media', '--json'], reelgate.env)
  const found = (JSON.parse(checked.stdout) as { check: string; state: string }[]).find(({ check }) => check === 'media')
  expect(found).toMatchObject({ state: 'ok' })

  await reelgate.stop()
  const then = Date.now() / 1000 - 2 * 24 * 3600
  const orphan = join(reelgate.dataDir, 'sources', videoId, `${'0'.repeat(32)}.sealed`)
  await writeFile(orphan, 'x')
  for (const name of await listFiles(reelgate))
    if (/\.(sealed|m4s)$/.test(name)) await utimes(join(reelgate.dataDir, name), then, then)
  expect(await examine(reelgate, newMemory())).toEqual({ breaches: [], orphans: [orphan] })
  await reelgate.restart()
  await expect.poll(() => existsSync(orphan)).toBe(false)

  expect(await runCli(['video', 'reencrypt', videoId], reelgate.env)).toMatchObject({ code: 0 })
  await expect.poll(() => readRows(reelgate, 'select 1 from generation where finished_at_s is null')).toEqual([])
  await untilFinished(reelgate, videoId)
  expect((await owner.video(videoId)).kept).toEqual(before.kept)

  expect((await owner.call('DELETE', `/api/videos?videos=${videoId}&trash=1`)).status).toBe(200)
  expect((await tus.patch(replacing.address, 20_000, longer.subarray(20_000))).status).toBe(404)
  expect((await owner.call('POST', '/api/trash/restore', { body: { videos: [videoId] } })).status).toBe(200)
  expect(await tus.offset(replacing.address)).toBe(20_000)

  // All of it continues.
  expect((await tus.patch(arriving.address, 200_000, file.subarray(200_000))).status).toBe(204)
  expect(sha256(await getStoredSource(reelgate, arriving.videoId).clear())).toBe(sha256(file))
  expect((await tus.patch(replacing.address, 20_000, longer.subarray(20_000))).status).toBe(204)
  await expect.poll(async () => (await owner.video(videoId)).replacement).toBe(undefined)
  const replaced = await owner.video(videoId)
  expect(replaced.length).toBeCloseTo(5, 1)
  expect(replaced.kept).toHaveLength(2)
  await reelgate.stop()
  expect(await examine(reelgate, newMemory())).toEqual({ breaches: [], orphans: [] })
})

test('X34: a backup has what is kept, and a restored installation begins unfinished uploads again', async () => {
  const reelgate = await startReelgate({ video: await makeVideo() })
  const { videoId } = reelgate
  const { arriving, replacing, file, longer } = await haveUnfinished(reelgate)
  const folder = await mkdtemp(join(tmpdir(), 'reelgate-backup-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  expect(await runCli(['backup', folder], reelgate.env)).toMatchObject({ code: 0 })

  const location = await makeLocation()
  onTestFinished(() => location.remove())
  await cp(reelgate.masterKeyFile, location.masterKeyFile)
  expect(await runCli(['restore', folder], location.env)).toMatchObject({ code: 0 })
  const restored = await startReelgate({ location, copyOf: reelgate })
  const tus = createTusClient(restored.owner)
  for (const [{ address }, bytes, sent] of [
    [arriving, file, 150_000],
    [replacing, longer, 20_000],
  ] as const) {
    const here = address.replace(reelgate.url, restored.url)
    expect((await tus.patch(here, sent, bytes.subarray(sent))).status).toBe(409)
    expect(await tus.offset(here)).toBe(0)
    expect((await tus.patch(here, 0, bytes)).status).toBe(204)
  }
  expect(sha256(await getStoredSource(restored, arriving.videoId).clear())).toBe(sha256(file))
  await expect.poll(async () => (await restored.owner.video(videoId)).replacement).toBe(undefined)

  expect((await restored.owner.call('POST', `/api/videos/${videoId}/undo`)).status).toBe(200)
  expect(await restored.owner.video(videoId)).toMatchObject({
    length: expect.closeTo(2, 1),
    kept: [{}, { length: expect.closeTo(3, 1) }],
  })
  const viewer = await play({ ...restored, videoId })
  expect((await viewer.download('1')).segments.length).toBeGreaterThan(0)
  await restored.stop()
  expect((await examine(restored, newMemory())).breaches).toEqual([])
})

/** A video that was trimmed, of which the former is kept; a file on its way that is to replace it, and one of another video. */
async function haveUnfinished(reelgate: Reelgate) {
  const { owner, videoId } = reelgate
  await untilFinished(reelgate, videoId)
  expect((await owner.call('PUT', `/api/videos/${videoId}/trim`, { body: { startS: 1 } })).status).toBe(200)
  await expect.poll(async () => (await owner.video(videoId)).replacement).toBe(undefined)
  const tus = createTusClient(owner)
  const [file, longer] = [randomBytes(300_000), await readFile(await makeVideo({ seconds: 5, size: '96x64' }))]
  const arriving = await tus.create(file.length)
  expect((await tus.patch(arriving.address, 0, file.subarray(0, 150_000))).status).toBe(204)
  const replacing = await tus.create(longer.length, { filename: 'Longer.mp4', videoId })
  expect((await tus.patch(replacing.address, 0, longer.subarray(0, 20_000))).status).toBe(204)
  return { arriving, replacing, file, longer: Buffer.from(longer) }
}
