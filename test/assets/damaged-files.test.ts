import { mkdir, rename, rm, rmdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { blobOf, untilFinished, untilStoryboardMade } from '../data-folder.ts'
import { type Reelgate, startReelgate } from '../in-process.ts'
import { runCli } from '../reelgate.ts'
import { changeRows, readRows } from '../rows.ts'
import { STORAGE } from '../s3.ts'
import { sampleOf } from '../sample.ts'
import { makeVideo } from '../videos.ts'
import { addFile, makeImage, SRT } from './sample-files.ts'

type WithVideo = Reelgate & { videoId: string }

/** A video with captions, a poster of its owner's and an MP4. */
async function startWithFiles(): Promise<WithVideo> {
  const reelgate = await startReelgate({ video: await makeVideo() })
  const { owner, videoId } = reelgate
  expect((await addFile(owner, videoId, await makeImage('640x360'))).status).toBe(200)
  expect((await addFile(owner, videoId, SRT, 'en')).status).toBe(200)
  await owner.call('POST', `/api/videos/${videoId}/files`, { body: { type: 'mp4' } })
  await expect.poll(() => rowOf(reelgate, 'mp4').blob).toBeTruthy()
  return reelgate
}

function rowOf(reelgate: WithVideo, type: string): { id: number; blob: string | null; token: string | null } {
  const query = 'select id, blob, token from file where video_id = ? and type = ? order by id desc'
  const [row] = readRows<{ id: number; blob: string | null; token: string | null }>(reelgate, query, reelgate.videoId, type)
  return row ?? expect.fail(`there is no ${type}`)
}

function storedAs(reelgate: WithVideo, type: string): Blob {
  const query = 'select file from source where video_id = ?'
  if (type === 'original') return blobOf(reelgate, 'sources', String(readRows(reelgate, query, reelgate.videoId)[0]?.file))
  return blobOf(reelgate, type === 'poster' ? 'posters' : 'files', rowOf(reelgate, type).blob ?? '')
}

type Blob = ReturnType<typeof blobOf>

async function flipByte(blob: Blob): Promise<void> {
  const bytes = await blob.read()
  bytes.writeUInt8(bytes.readUInt8(40) ^ 1, 40)
  await blob.write(bytes)
}

async function download({ owner, videoId }: WithVideo, fileId: number): Promise<Response> {
  const asked = await owner.call('GET', `/api/videos/${videoId}/files/${fileId}`)
  const { redirect } = (await asked.json()) as { redirect: string }
  return fetch(redirect)
}

const DAMAGE = [
  { how: 'changed', damage: flipByte },
  { how: 'lost', damage: (blob: Blob) => blob.remove() },
]

test.each(sampleOf('damages of files that are sent', DAMAGE, 1))(
  'F-56: an original, captions, a poster and an MP4 that the disk has $how answer 503 in words, and the log says it once without a stack',
  async ({ damage }) => {
    const reelgate = await startWithFiles()
    const types = ['original', 'caption', 'mp4', 'poster']
    const ids = new Map(types.map((type) => [type, rowOf(reelgate, type).id]))
    const { token } = rowOf(reelgate, 'poster')
    for (const type of types) await damage(storedAs(reelgate, type))
    const before = rowOf(reelgate, 'mp4').blob
    for (let times = 0; times < 2; times++)
      for (const type of ['original', 'caption', 'poster']) {
        const response = await download(reelgate, ids.get(type) ?? 0)
        expect(response.status).toBe(503)
        expect(await response.text()).toMatch(/missing or damaged on the disk of this server/)
      }
    const poster = await fetch(`${reelgate.url}/poster/${token}.jpg`)
    expect([poster.status, await poster.text()]).toEqual([503, expect.stringMatching(/This poster is missing or damaged/)])
    const mp4 = await download(reelgate, ids.get('mp4') ?? 0)
    expect([mp4.status, await mp4.text()]).toEqual([503, expect.stringMatching(/It is being made again/)])

    const logged = reelgate
      .output()
      .split('\n')
      .filter((line) => line.includes('"file: damaged"'))
    expect(logged.map((line) => JSON.parse(line).kind).sort()).toEqual(['caption', 'mp4', 'original', 'poster'])
    expect(reelgate.output()).not.toMatch(/"stack"|request: failed/)
    await expect.poll(() => rowOf(reelgate, 'mp4').blob).not.toBe(before)
    await expect.poll(() => rowOf(reelgate, 'mp4').blob).toBeTruthy()
    expect((await download(reelgate, ids.get('mp4') ?? 0)).status).toBe(200)
  },
)

type Finding = { check: string; state: string; says: string; damagedFiles?: { kind: string; isMadeAgain: boolean }[] }

async function doctor({ env }: Reelgate, check: string, ...options: string[]): Promise<Finding> {
  const { stdout } = await runCli(['doctor', '--json', ...options], env)
  return (JSON.parse(stdout) as Finding[]).find((finding) => finding.check === check) ?? expect.fail(stdout)
}

const KINDS = ['original', 'caption', 'poster', 'mp4']

test.each(sampleOf('damages of files that are examined', DAMAGE, 1))(
  'F-57: doctor --media finds an original, captions, a poster and an MP4 that are $how, and plain doctor names them with what to do',
  async ({ damage }) => {
    const reelgate = await startWithFiles()
    expect(await doctor(reelgate, 'media', '--media')).toMatchObject({ state: 'ok', damagedFiles: [] })
    expect(await doctor(reelgate, 'files')).toMatchObject({ state: 'ok' })
    const lasting = ['original', 'caption', 'poster'].map((kind) => storedAs(reelgate, kind))
    const backups = await Promise.all(lasting.map(async (blob) => ({ blob, bytes: await blob.read() })))
    for (const kind of KINDS) await damage(storedAs(reelgate, kind))
    const found = await doctor(reelgate, 'media', '--media')
    expect(found).toMatchObject({
      state: 'trouble',
      says: expect.stringMatching(/uploaded files .*Copy them from media\/sources/),
    })
    expect(found.damagedFiles?.map(({ kind, isMadeAgain }) => `${kind} ${isMadeAgain}`).sort()).toEqual([
      'caption false',
      'mp4 true',
      'original false',
      'poster false',
    ])
    await expect.poll(() => rowOf(reelgate, 'mp4').blob).toBeTruthy()
    const named = await doctor(reelgate, 'files')
    expect(named).toMatchObject({ state: 'trouble' })
    for (const { name } of lasting) expect(named.says).toContain(name)
    expect(named.says).toMatch(/posters .*set others and delete these.*captions .*upload them again and delete these/)
    expect(named.says).not.toMatch(/MP4|made again by/)

    for (const { blob, bytes } of backups) await blob.write(bytes)
    expect(await doctor(reelgate, 'media', '--media')).toMatchObject({ state: 'ok' })
    expect(await doctor(reelgate, 'files')).toMatchObject({ state: 'ok' })
  },
)

test.runIf(STORAGE === 'folder')(
  'F-57: the weekly check of a running server finds changed files, and so does a request; plain doctor names both',
  async () => {
    const reelgate = await startWithFiles()
    await flipByte(storedAs(reelgate, 'caption'))
    expect((await download(reelgate, rowOf(reelgate, 'caption').id)).status).toBe(503)
    expect((await doctor(reelgate, 'files')).says).toContain(rowOf(reelgate, 'caption').blob)
    await reelgate.stop()
    for (const kind of ['original', 'mp4']) await flipByte(storedAs(reelgate, kind))
    const mp4 = rowOf(reelgate, 'mp4').blob
    changeRows(reelgate, `update setting set value = '{"beganAtS":0}' where name = 'media-sweep'`)
    await reelgate.restart()
    await expect
      .poll(() => doctor(reelgate, 'files'))
      .toMatchObject({ says: expect.stringMatching(/uploaded files .*captions /) })
    await expect.poll(() => [null, mp4].includes(rowOf(reelgate, 'mp4').blob)).toBe(false)
  },
)

test.runIf(STORAGE === 'folder')(
  'F-57: an empty folder of sources counts as a disk that is not mounted: nothing is marked',
  async () => {
    const reelgate = await startWithFiles()
    await rm(join(reelgate.dataDir, 'sources', reelgate.videoId), { recursive: true })
    expect(await doctor(reelgate, 'media', '--media')).toMatchObject({ says: expect.stringContaining('Mount its disk') })
    expect(await doctor(reelgate, 'files')).toMatchObject({ state: 'ok' })
  },
)

test.runIf(STORAGE === 'folder')(
  'F-70: while the disk of posters and captions is not mounted nothing is marked, made again or said to be damaged',
  async () => {
    const reelgate = await startWithFiles()
    const { dataDir, videoId } = reelgate
    const { token } =
      readRows<{ token: string }>(reelgate, "select token from file where type = 'poster' and video_id = ?", videoId)[0] ??
      expect.fail()
    const poster = () => fetch(`${reelgate.url}/poster/${token}.jpg`)
    await rename(join(dataDir, 'posters'), join(dataDir, 'posters.away'))
    await mkdir(join(dataDir, 'posters')) // where its disk is mounted
    const response = await poster()
    expect([response.status, await response.text()]).toEqual([503, expect.stringContaining('Mount its disk')])
    await rmdir(join(dataDir, 'posters'))
    await rename(join(dataDir, 'posters.away'), join(dataDir, 'posters'))
    expect((await poster()).status).toBe(200)
    expect(await doctor(reelgate, 'files')).toMatchObject({ state: 'ok' })
  },
)

const extractedPosters = (reelgate: WithVideo) =>
  readRows<{ id: number; blob: string; token: string }>(
    reelgate,
    "select id, blob, token from file where attachment_id in ('first', 'drawn') and video_id = ? order by id",
    reelgate.videoId,
  )

test('F-58: an extracted poster that the disk has lost is made again from the source, at the same address', async () => {
  const reelgate = await startReelgate({ video: await makeVideo() })
  await untilFinished(reelgate, reelgate.videoId)
  const [large, small] = extractedPosters(reelgate)
  if (!large || !small) return expect.fail('there are no posters')
  const get = (token: string) => fetch(`${reelgate.url}/poster/${token}.jpg`)
  const before = Buffer.from(await (await get(large.token)).arrayBuffer())
  for (const { blob } of [large, small]) await flipByte(blobOf(reelgate, 'posters', blob))
  const response = await get(large.token)
  expect([response.status, await response.text()]).toEqual([503, expect.stringMatching(/It is being made again/)])
  await expect.poll(async () => (await get(large.token)).status).toBe(200)
  await untilStoryboardMade(reelgate, reelgate.videoId)
  expect(Buffer.from(await (await get(large.token)).arrayBuffer()).equals(before)).toBe(true)
  expect((await get(small.token)).status).toBe(200)
  expect(extractedPosters(reelgate).map(({ id, token }) => [id, token])).toEqual(
    [large, small].map(({ id, token }) => [id, token]),
  )
  expect(await doctor(reelgate, 'files')).toMatchObject({ state: 'ok' })
})

test('F-58: doctor --media without a server has an extracted poster made again by the next start; a deleted one stays deleted', async () => {
  const reelgate = await startReelgate({ video: await makeVideo() })
  await untilFinished(reelgate, reelgate.videoId)
  const [large, small] = extractedPosters(reelgate)
  if (!large || !small) return expect.fail('there are no posters')
  await reelgate.owner.call('DELETE', `/api/videos/${reelgate.videoId}/files/${small.id}`)
  await reelgate.stop()
  await blobOf(reelgate, 'posters', large.blob).remove()
  expect((await doctor(reelgate, 'media', '--media')).damagedFiles).toMatchObject([{ kind: 'poster', isMadeAgain: true }])
  expect(await doctor(reelgate, 'files')).toMatchObject({
    state: 'warning',
    says: expect.stringMatching(/made again by the server/),
  })
  await reelgate.restart()
  await expect.poll(async () => (await fetch(`${reelgate.url}/poster/${large.token}.jpg`)).status).toBe(200)
  expect(extractedPosters(reelgate).map(({ id }) => id)).toEqual([large.id])
  expect(await doctor(reelgate, 'files')).toMatchObject({ state: 'ok' })
})
