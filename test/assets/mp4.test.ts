import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { dataPaths } from '../../src/config/data-paths.ts'
import { sendCommand } from '../../src/control/socket.ts'
import { startChromium } from '../browser/chromium.ts'
import { createOwner, type Owner } from '../client.ts'
import { blobOf, listFiles as filesBelow, listSegments, untilFinished } from '../data-folder.ts'
import { newFolder } from '../encode/videos.ts'
import { mountSmallDisk } from '../faults/small-disk.ts'
import { type Reelgate, type StartOptions, startReelgate, startSharedReelgate } from '../in-process.ts'
import { startPostgres } from '../postgres.ts'
import * as apart from '../reelgate.ts'
import { changeRows, readRows } from '../rows.ts'
import { sampledTests } from '../sample.ts'
import { makeVideo } from '../videos.ts'
import { type FileBody, listFiles, makeLongVideo } from './sample-files.ts'

const { test: sampled, draw } = sampledTests('MP4s that are disturbed', 1)

const run = promisify(execFile)

let installed: Awaited<ReturnType<typeof startSharedReelgate>>
const videos = { long: '', short: '' }
beforeAll(async () => {
  installed = await startSharedReelgate({ video: await makeLongVideo(), title: 'Light & shadow' })
  videos.long = installed.videoId
  videos.short = await installed.owner.upload('A video', await makeVideo())
  await untilFinished(installed, videos.short)
  await installed.stop()
})
afterAll(() => installed.remove())

/** A server with videos of which every rendition is there. */
async function startWithVideo(length: keyof typeof videos = 'long', options: StartOptions = {}) {
  const reelgate = await startReelgate({ ...options, copyOf: installed })
  return { reelgate, owner: reelgate.owner, videoId: videos[length] }
}

/** The same in a process of its own, which a test can kill. */
async function startProcessWithVideo() {
  const reelgate = await apart.startReelgate({ copyOf: installed })
  return { reelgate, owner: reelgate.owner, videoId: videos.long }
}

function ask(owner: Owner, videoId: string): Promise<Response> {
  return owner.call('POST', `/api/videos/${videoId}/files`, { body: { type: 'mp4' } })
}

async function findMp4(owner: Owner, videoId: string): Promise<FileBody | undefined> {
  return (await listFiles(owner, videoId)).find(({ type }) => type === 'mp4')
}

/** Asks until the MP4 is made, or given up. */
async function untilMade(owner: Owner, videoId: string): Promise<FileBody> {
  for (;;) {
    const file = await findMp4(owner, videoId)
    if (!file) throw new Error('there is no MP4')
    if (file.isDownloadable === 1 || file.enabled === 0) return file
    await pause(50)
  }
}

async function addressOf(owner: Owner, videoId: string, { id }: Pick<FileBody, 'id'>): Promise<string> {
  const { redirect } = (await (await owner.call('GET', `/api/videos/${videoId}/files/${id}`)).json()) as { redirect: string }
  return redirect
}

const bytesOf = async (response: Response) => Buffer.from(await response.arrayBuffer())

/** Keeps bytes as a file for as long as the test runs. */
async function keep(bytes: Buffer): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'reelgate-mp4-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  await writeFile(join(folder, 'video.mp4'), bytes)
  return join(folder, 'video.mp4')
}

/** Each decoded frame of a stream: when it is shown and for how long, in ticks, its size and its hash. */
async function framesOf(path: string, stream: 'v' | 'a'): Promise<string[]> {
  const args = ['-v', 'error', '-i', path, '-map', `0:${stream}:0`, '-fps_mode', 'passthrough', '-f', 'framemd5', '-']
  const { stdout } = await run('ffmpeg', args, { maxBuffer: 2 ** 26 })
  return stdout.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
}

async function probe(path: string) {
  const { stdout } = await run('ffprobe', ['-v', 'error', '-of', 'json', '-show_streams', '-show_format', path])
  return JSON.parse(stdout) as { streams: { codec_name: string; start_time: string }[]; format: { duration: string } }
}

test('an MP4 of the whole video is made when its owner requests it: the best rendition and the audio, frame for frame', async () => {
  const { reelgate, owner, videoId } = await startWithVideo()
  const before = (await owner.video(videoId)).totalSizeBytes
  const answer = await ask(owner, videoId)
  const asked = (await answer.json()) as FileBody
  expect([answer.status, asked]).toMatchObject([200, { type: 'mp4', name: 'Light & shadow.mp4', isDeletable: 1, enabled: 1 }])
  const made = await untilMade(owner, videoId)
  expect(made).toMatchObject({ id: asked.id, width: 640, height: 360, video_codec: 'h264', audio_codec: 'aac', format: 'mp4' })
  expect((await owner.video(videoId)).totalSizeBytes).toBe(before + made.size)

  const address = await addressOf(owner, videoId, made)
  const whole = await fetch(address)
  expect(Object.fromEntries(whole.headers)).toMatchObject({
    'content-type': 'video/mp4',
    'content-length': String(made.size),
    'content-disposition': `attachment; filename="Light & shadow.mp4"; filename*=UTF-8''Light%20%26%20shadow.mp4`,
  })
  const bytes = await bytesOf(whole)
  const part = await fetch(address, { headers: { Range: 'bytes=100000-200000' } })
  expect([part.status, (await bytesOf(part)).equals(bytes.subarray(100_000, 200_001))]).toEqual([206, true])

  const path = await keep(bytes)
  const viewer = reelgate.newViewer()
  await viewer.redeem(await owner.issueOtp(videoId))
  for (const [rendition, stream] of [
    ['1', 'v'],
    ['3', 'a'],
  ] as const) {
    const { init, segments } = await viewer.download(rendition)
    const made = await framesOf(path, stream)
    const published = await framesOf(await keep(Buffer.concat([init, ...segments])), stream)
    expect([stream, made.length >= 200, made.length, made.join('\n') === published.join('\n')]).toEqual([
      stream,
      true,
      published.length,
      true,
    ])
  }
  const { streams, format } = await probe(path)
  expect(streams.map(({ codec_name, start_time }) => [codec_name, Number(start_time)])).toEqual([
    ['h264', 0],
    ['aac', 0],
  ])
  expect(Number(format.duration)).toBeCloseTo(20, 1)
})

/** What Chromium shows a file in; the types of the tests know no browser. */
declare const document: { querySelector(name: 'video'): Player | null }
type Player = {
  muted: boolean
  currentTime: number
  readonly duration: number
  readonly videoWidth: number
  readonly error: unknown
  addEventListener(event: string, audible: () => void, options: { once: true }): void
  pause(): void
  play(): Promise<void>
}

test('that of a video whose title is a file name is saved under that name, with one extension', async () => {
  const { owner, videoId } = await startWithVideo('short')
  await ask(owner, videoId)
  const made = await untilMade(owner, videoId)
  const saved = {
    'Video.mp4': 'Video.mp4',
    'Ein schöner Video.MP4 ': 'Ein schöner Video.mp4',
    'A video. mp4': 'A video. mp4.mp4',
    mp4: 'mp4.mp4',
    '.mp4': 'mp4.mp4',
  }
  for (const [title, name] of Object.entries(saved)) {
    await owner.call('POST', `/api/videos/${videoId}`, { body: { title } })
    const { headers } = await fetch(await addressOf(owner, videoId, made))
    const plain = name.replace('ö', 'o')
    expect(headers.get('content-disposition')).toBe(
      `attachment; filename="${plain}"; filename*=UTF-8''${encodeURIComponent(name)}`,
    )
  }
})

sampled('it plays and seeks in a browser, to its end', async () => {
  const { owner, videoId } = await startWithVideo()
  await ask(owner, videoId)
  const whole = await fetch(await addressOf(owner, videoId, await untilMade(owner, videoId)))
  const path = await keep(await bytesOf(whole))
  const browser = await startChromium()
  onTestFinished(() => browser.close())
  const page = await browser.newPage()
  await page.goto(`file://${path}`)
  const shown = await page.evaluate(async () => {
    const video = document.querySelector('video')
    if (!video) throw new Error('no video')
    video.muted = true
    const happens = (event: string) => new Promise<void>((resolve) => video.addEventListener(event, resolve, { once: true }))
    video.pause() // the browser begins by itself
    video.currentTime = 17
    await happens('seeked')
    const seekedTo = video.currentTime
    await Promise.all([happens('ended'), video.play()])
    return { seekedTo, endedAt: video.currentTime, durationS: video.duration, widthPx: video.videoWidth, error: video.error }
  })
  expect(shown).toEqual({
    seekedTo: 17,
    endedAt: expect.closeTo(20, 1),
    durationS: expect.closeTo(20, 1),
    widthPx: 640,
    error: null,
  })
})

test('there is one MP4 for each video: another request, even a concurrent one, gets the same', async () => {
  const { owner, videoId } = await startWithVideo('short')
  const answers = await Promise.all(Array.from({ length: 10 }, () => ask(owner, videoId)))
  const ids = await Promise.all(answers.map(async (answer) => ((await answer.json()) as FileBody).id))
  expect(new Set(ids).size).toBe(1)
  const made = await untilMade(owner, videoId)
  expect(await (await ask(owner, videoId)).json()).toEqual(made)
  await owner.call('DELETE', `/api/videos/${videoId}/files/${made.id}`)
  expect(await findMp4(owner, videoId)).toBeUndefined()
  expect(((await (await ask(owner, videoId)).json()) as FileBody).id).toBeGreaterThan(made.id)
  expect((await untilMade(owner, videoId)).size).toBe(made.size)
})

sampled('a silent video, and one of sound alone, have theirs', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'reelgate-mp4-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const tone = join(folder, 'tone.m4a')
  await run('ffmpeg', ['-v', 'error', '-f', 'lavfi', '-i', 'sine=duration=9', '-c:a', 'aac', tone])
  const reelgate = await startReelgate()
  const { owner } = reelgate
  const silent = await owner.readyVideo(await makeVideo({ seconds: 9, audioTrack: false }), 'Silent')
  const audible = await owner.readyVideo(tone, 'Audible')
  for (const [id, codec] of [
    [silent, 'h264'],
    [audible, 'aac'],
  ] as const) {
    await untilFinished(reelgate, id)
    await ask(owner, id)
    const path = await keep(await bytesOf(await fetch(await addressOf(owner, id, await untilMade(owner, id)))))
    const { streams, format } = await probe(path)
    expect([streams.map(({ codec_name }) => codec_name), Number(format.duration)]).toEqual([[codec], expect.closeTo(9, 1)])
  }
})

/** What else a running server writes to `tmp` may be gone before it is read. */
function unlessRemoved(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error
}

test('P05: its files on disk show nothing, while it is made and afterwards', async () => {
  const { reelgate, owner, videoId } = await startWithVideo()
  const held = await holdUp(reelgate, videoId)
  await ask(owner, videoId)
  await held.reached
  const bytesIn = async (folder: string) => {
    const names = (await filesBelow(reelgate, folder)).filter((path) => !path.endsWith('/'))
    const found = names.map((name) => readFile(join(reelgate.dataDir, folder, name)).catch(unlessRemoved))
    return (await Promise.all(found)).filter((bytes) => bytes !== undefined)
  }
  let unfinished = await bytesIn('tmp')
  for (; unfinished.length === 0; unfinished = await bytesIn('tmp')) await pause(20)
  await held.feed()
  const made = await untilMade(owner, videoId)
  const stored = await bytesIn('files')
  const clear = await bytesOf(await fetch(await addressOf(owner, videoId, made)))
  expect([stored.length, (stored[0]?.length ?? 0) > clear.length]).toEqual([1, true])
  // Its boxes, and what lies here and there in it; four letters alone are in any long enough secret.
  const locations = ['ftyp', 'moov', 'avcC', 'mp4a', 'moof', 'mdat'].map((box) => clear.indexOf(box))
  for (let at = 0; at + 16 <= clear.length; at += 9973) locations.push(at)
  for (const at of locations) {
    expect(at).toBeGreaterThanOrEqual(0)
    for (const bytes of [...unfinished, ...stored]) expect(bytes.includes(clear.subarray(at, at + 16))).toBe(false)
  }
})

test('it is rejected before every rendition is finished, for other accounts, and for another type', async () => {
  const { reelgate, owner, videoId } = await startWithVideo('short')
  const { videoId: waiting } = await owner.credentials('It will come')
  const early = await ask(owner, waiting)
  expect([early.status, await early.json()]).toMatchObject([409, { message: expect.stringContaining('video:readyall') }])
  expect((await ask(await reelgate.newOwner('A stranger'), videoId)).status).toBe(404)
  for (const body of [{ type: 'avi' }, {}, undefined]) {
    const answer = await owner.call('POST', `/api/videos/${videoId}/files`, { body })
    expect([answer.status, await answer.json()]).toMatchObject([400, { message: expect.stringContaining('{"type":"mp4"}') }])
  }
  const anonymous = await fetch(`${reelgate.url}/api/videos/${videoId}/files`, { method: 'POST', body: '{"type":"mp4"}' })
  expect(anonymous.status).toBe(401)
  expect(await findMp4(owner, videoId)).toBeUndefined()
})

/**
 * Delays each reader of a segment of the video: its file becomes a pipe. `feed` lets the reader continue; where the work may end before it
 * reads, it is given what resolves then. `restore` brings the file back.
 */
async function holdUp(reelgate: Reelgate, videoId: string) {
  const segment = listSegments(reelgate, videoId).find(({ rendition_id, number }) => rendition_id === 1 && number === 3)
  const path = join(reelgate.dataDir, 'segments', segment?.file ?? '')
  const aside = `${path}.aside`
  await rename(path, aside)
  await run('mkfifo', [path])
  // A process of its own, which can be ended: a writer into a pipe without a reader waits for ever.
  const feeder = spawn('sh', ['-c', 'exec 3> "$1" && echo reached && read -r _ && cat "$0" >&3', aside, path])
  onTestFinished(() => void feeder.kill())
  const ended = once(feeder, 'close')
  const feed = async (workEnded?: Promise<unknown>) => {
    feeder.stdin.end('\n')
    void workEnded?.finally(() => feeder.kill())
    await ended
  }
  return { reached: once(feeder.stdout, 'data'), feed, restore: () => rename(aside, path) }
}

const unfinishedIn = async (reelgate: Reelgate) => (await filesBelow(reelgate, 'tmp')).length

/** Resolves when part of an MP4 lies there. */
async function untilBegun(reelgate: Reelgate): Promise<void> {
  while ((await unfinishedIn(reelgate)) === 0) await pause(20)
}

sampled('an MP4 that a crash cut off is made after the restart; until then it is of no size and not for downloads', async () => {
  const { reelgate, owner, videoId } = await startProcessWithVideo()
  const held = await holdUp(reelgate, videoId)
  const { id } = (await (await ask(owner, videoId)).json()) as FileBody
  await untilBegun(reelgate)
  expect(await findMp4(owner, videoId)).toMatchObject({ id, size: 0, isDownloadable: 0, enabled: 1 })
  expect((await owner.call('GET', `/api/videos/${videoId}/files/${id}`)).status).toBe(403)
  await reelgate.kill()
  await held.restore()
  await reelgate.restart()
  const made = await untilMade(owner, videoId)
  expect([made.id, made.isDownloadable]).toEqual([id, 1])
  const path = await keep(await bytesOf(await fetch(await addressOf(owner, videoId, made))))
  expect((await framesOf(path, 'v')).length).toBe(200)
  expect(await unfinishedIn(reelgate)).toBe(0)
})

sampled.each(['the file', 'the video'])('deleting %s while it is made ends that, and leaves nothing', async (what) => {
  const { reelgate, owner, videoId } = await startWithVideo()
  const held = await holdUp(reelgate, videoId)
  const { id } = (await (await ask(owner, videoId)).json()) as FileBody
  await untilBegun(reelgate)
  const deleting = what === 'the file' ? owner.call('DELETE', `/api/videos/${videoId}/files/${id}`) : owner.delete([videoId])
  while (
    readRows(reelgate, `select file.id from file join video on video.id = video_id where type = 'mp4' and deleted_at_s is null`)
      .length > 0
  )
    await pause(20)
  await held.feed(deleting)
  expect(readRows(reelgate, `select id from file where type = 'mp4' and blob is not null`)).toEqual([])
  expect([await unfinishedIn(reelgate), await filesBelow(reelgate, 'files')]).toEqual([0, []])
})

/** How often making the server's one MP4 was begun, as far as it counts. */
const triesOf = (reelgate: Reelgate) =>
  readRows<{ attempts: number }>(reelgate, `select attempts from file where type = 'mp4'`).map(({ attempts }) => attempts)

sampled(
  'F-24: one that cannot be made fails after three attempts; its owner sees why, and it is made when it is requested again',
  async () => {
    const { reelgate, owner, videoId } = await startWithVideo('short')
    const [{ init } = { init: null }] = readRows<{ init: Buffer }>(
      reelgate,
      'select init from rendition where video_id = ? and id = 1',
      videoId,
    )
    const setInit = (bytes: Buffer | null) =>
      changeRows(reelgate, 'update rendition set init = ? where video_id = ? and id = 1', bytes, videoId)
    expect(setInit(null)).toBe(1)
    await ask(owner, videoId)
    expect(await untilMade(owner, videoId)).toMatchObject({
      enabled: 0,
      size: 0,
      isDownloadable: 0,
      error: 'The MP4 could not be made on this server. Its log says why; then request it again.',
    })
    expect(triesOf(reelgate)).toEqual([3])
    expect(reelgate.output()).toContain('mp4: failed')
    setInit(init)
    await ask(owner, videoId)
    const made = await untilMade(owner, videoId)
    expect(made).toMatchObject({ enabled: 1, isDownloadable: 1 })
    expect(made).not.toHaveProperty('error')
  },
)

sampled('F-42: of a video that has lost a segment it is made once the segment has been encoded again', async () => {
  const { reelgate, owner, videoId } = await startWithVideo('short')
  await blobOf(reelgate, 'segments', listSegments(reelgate, videoId)[0]?.file).remove()
  await ask(owner, videoId)
  const made = await untilMade(owner, videoId)
  expect(made).toMatchObject({ enabled: 1, isDownloadable: 1 })
  const path = await keep(await bytesOf(await fetch(await addressOf(owner, videoId, made))))
  expect((await framesOf(path, 'v')).length).toBe(75)
})

sampled('F-03: one whose making ends the server is given up after three times, and the next is made', async () => {
  const { reelgate, owner, videoId } = await startProcessWithVideo()
  const held = await holdUp(reelgate, videoId)
  await ask(owner, videoId)
  for (const tries of [1, 2, 3]) {
    await expect.poll(() => triesOf(reelgate)).toEqual([tries])
    await reelgate.kill()
    await reelgate.restart()
  }
  await held.restore()
  expect(await untilMade(owner, videoId)).toMatchObject({
    enabled: 0,
    error: 'The MP4 could not be made: the server crashed during 3 attempts. Request it again when the cause is fixed.',
  })
  await ask(owner, videos.short)
  expect(await untilMade(owner, videos.short)).toMatchObject({ enabled: 1, isDownloadable: 1 })
})

sampled(
  'F-09: a stop while one is made leaves nothing incomplete and counts as no attempt, and the next start makes it',
  async () => {
    const { reelgate, owner, videoId } = await startProcessWithVideo()
    const held = await holdUp(reelgate, videoId)
    await ask(owner, videoId)
    await untilBegun(reelgate)
    const stopped = reelgate.stop()
    await expect.poll(() => reelgate.output()).toContain('jobs: aborted for the stop')
    await held.feed(stopped)
    expect([await stopped, triesOf(reelgate), await unfinishedIn(reelgate), await filesBelow(reelgate, 'files')]).toEqual([
      0,
      [0],
      0,
      [],
    ])
    await held.restore()
    await reelgate.restart()
    expect(await untilMade(owner, videoId)).toMatchObject({ enabled: 1, isDownloadable: 1 })
  },
)

sampled.each(['before it begins', 'while it is made'])('F-12: a disk that runs full %s only delays it', async (when) => {
  const disk = await mountSmallDisk(64)
  const { reelgate, owner, videoId } = await startWithVideo('long', { within: disk.path })
  const held = await holdUp(reelgate, videoId)
  if (when === 'before it begins') await disk.leave(3.5 * 2 ** 20) // above the floor of a twentieth, and too little for the MP4
  await ask(owner, videoId)
  if (when === 'while it is made') {
    await untilBegun(reelgate)
    await disk.leave(0)
    await held.feed()
  }
  const problem = when === 'while it is made' ? 'ENOSPC' : 'The disk of this server has no room for this MP4.'
  await expect.poll(() => reelgate.output()).toContain(problem)
  expect(reelgate.output()).toContain('mp4: attempt failed; trying again')
  await expect.poll(() => filesBelow(reelgate, 'tmp')).toEqual([])
  // An attempt that begins as soon as there is space reads a segment, not the pipe.
  await held.restore()
  await disk.makeRoom()
  expect(await untilMade(owner, videoId)).toMatchObject({ enabled: 1, isDownloadable: 1 })
  // The database is on that disk, too: the count is taken back when it can be written.
  expect(triesOf(reelgate)).toEqual([1]) // the one that made it
})

sampled('F-10: a PostgreSQL that goes away while one is made delays it, and costs no try', async () => {
  const postgres = await startPostgres()
  const reelgate = await startReelgate({ database: postgres })
  const { owner } = reelgate
  const videoId = await owner.readyVideo(await makeLongVideo())
  await untilFinished(reelgate, videoId)
  const held = await holdUp(reelgate, videoId)
  await ask(owner, videoId)
  await held.reached // by then all its rows have been read
  await postgres.stop()
  await held.feed()
  // Entire, while its row cannot be written.
  await expect.poll(() => filesBelow(reelgate, 'files')).toContainEqual(expect.stringMatching(/\.sealed$/))
  await held.restore()
  await postgres.start()
  await expect.poll(() => reelgate.output()).toContain('mp4: ready')
  expect(await untilMade(owner, videoId)).toMatchObject({ enabled: 1, isDownloadable: 1 })
  expect(triesOf(reelgate)).toEqual([1]) // the one that made it
})

sampled('E06: one is made while videos are encoded and others wait for that', async () => {
  const folder = await newFolder()
  const becomes = (script: string) =>
    writeFile(join(folder, 'ffmpeg'), `#!/usr/bin/bash\n${script}\nexec /usr/bin/ffmpeg "$@"\n`, { mode: 0o755 })
  await becomes('')
  const env = { PATH: [folder, process.env.PATH].join(delimiter), REELGATE_ENCODERS: '1' }
  const { reelgate, owner, videoId } = await startWithVideo('short', { env })
  await becomes('[ "$1" = -version ] || exec /usr/bin/sleep 60')
  await owner.upload('for ever', await makeVideo({ seconds: 60, size: '320x240' }))
  const chunksIn = (state: string) => readRows(reelgate, 'select 1 from chunk where state = ?', state).length
  await expect.poll(() => [chunksIn('running') > 0, chunksIn('pending') > 0]).toEqual([true, true])
  await ask(owner, videoId)
  expect(await untilMade(owner, videoId)).toMatchObject({ enabled: 1, isDownloadable: 1 })
  expect(chunksIn('pending')).toBeGreaterThan(0)
})

sampled('E06: accounts take turns: one MP4 waits for one of another account, not for its many', async () => {
  const { reelgate, owner, videoId } = await startWithVideo()
  const ben = await reelgate.newOwner('Ben')
  const wanted: [Owner, string][] = [[owner, videoId]]
  for (const theirs of [owner, owner, ben]) {
    const id = await theirs.readyVideo(await makeVideo())
    await untilFinished(reelgate, id)
    wanted.push([theirs, id])
  }
  const held = await holdUp(reelgate, videoId)
  for (const [theirs, id] of wanted) {
    expect((await ask(theirs, id)).status).toBe(200)
    await untilBegun(reelgate)
  }
  await held.feed()
  for (const [theirs, id] of wanted) await untilMade(theirs, id)
  const order = [...reelgate.output().matchAll(/"videoId":"(\w+)","sizeBytes":\d+,"msg":"mp4: ready"/g)].map(([, id]) => id)
  const [ann1, ann2, ann3, ben1] = wanted.map(([, id]) => id)
  expect(order).toEqual([ann1, ben1, ann2, ann3])
})

test('K11, K17: a key that only reads sees an MP4, but cannot request, download or delete one', async () => {
  const { reelgate, owner, videoId } = await startWithVideo('short')
  const [account] = readRows<{ id: string }>(reelgate, 'select id from account')
  const wanted = { account: account?.id, name: 'reader', permissions: ['viewer'] }
  const made = await sendCommand(dataPaths(reelgate.dataDir).controlSocket, 'key create', wanted)
  const reader = createOwner(reelgate.url, (made as { apiKey: string }).apiKey)
  expect((await ask(reader, videoId)).status).toBe(403)
  expect(await findMp4(owner, videoId)).toBeUndefined()
  await ask(owner, videoId)
  const file = await untilMade(reader, videoId)
  expect((await reader.call('DELETE', `/api/videos/${videoId}/files/${file.id}`)).status).toBe(403)
  expect((await reader.call('GET', `/api/videos/${videoId}/files/${file.id}`)).status).toBe(403)
  expect((await fetch(await addressOf(owner, videoId, file))).status).toBe(200)
})

test('F02: /v2 lists it, without size and download until it is made', async () => {
  const { reelgate, owner, videoId } = await startWithVideo()
  const held = await holdUp(reelgate, videoId)
  const inV2 = async () => {
    const body = new URLSearchParams({ clientSecretKey: owner.apiKey })
    const files = await (await fetch(`${reelgate.url}/v2/files?video=${videoId}`, { method: 'POST', body })).json()
    return (files as { type: string }[]).find(({ type }) => type === 'mp4')
  }
  expect(await inV2()).toBeUndefined()
  const { id } = (await (await ask(owner, videoId)).json()) as FileBody
  const listed = { id, name: 'Light & shadow.mp4', type: 'mp4', size: 0, width: 640, height: 360, downloadable: false }
  expect(await inV2()).toEqual(listed)
  await untilBegun(reelgate)
  await held.feed()
  const { size } = await untilMade(owner, videoId)
  expect(await inV2()).toEqual({ ...listed, size, downloadable: true })
})

draw()
