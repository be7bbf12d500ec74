import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { startChromium } from '../browser/chromium.ts'
import type { Owner } from '../client.ts'
import { listFiles as filesBelow, listSegments, readRows, untilFinished } from '../data-folder.ts'
import { makeFilm } from '../films.ts'
import { type Reelgate, startReelgate } from '../reelgate.ts'
import { type FileBody, listFiles } from './made.ts'

const run = promisify(execFile)

/** A server with a film of which every rendition is there. */
async function startWithFilm(film: Promise<string> = makeFilm({ seconds: 20, size: '640x360' }), title = 'A film') {
  const reelgate = await startReelgate()
  const videoId = await reelgate.owner.readyVideo(await film, title)
  await untilFinished(reelgate, videoId)
  return { reelgate, owner: reelgate.owner, videoId }
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
  await writeFile(join(folder, 'film.mp4'), bytes)
  return join(folder, 'film.mp4')
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

test('an MP4 of the whole film is made when its owner asks: the best rendition and the sound, frame for frame', async () => {
  const { reelgate, owner, videoId } = await startWithFilm(undefined, 'Light & shadow')
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
    expect([stream, made.length > 400, made.length, made.join('\n') === published.join('\n')]).toEqual([
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
  addEventListener(event: string, heard: () => void, options: { once: true }): void
  pause(): void
  play(): Promise<void>
}

test('one of a film whose title is a file’s name already is saved under that name, with one ending', async () => {
  const { owner, videoId } = await startWithFilm(makeFilm())
  await ask(owner, videoId)
  const made = await untilMade(owner, videoId)
  const saved = {
    'Film.mp4': 'Film.mp4',
    'Ein schöner Film.MP4 ': 'Ein schöner Film.mp4',
    'A film. mp4': 'A film. mp4.mp4',
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

test('it plays and seeks in a browser, to its end', async () => {
  const { owner, videoId } = await startWithFilm()
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

test('there is one MP4 for each video: asked for again, even at once, it is the same', async () => {
  const { owner, videoId } = await startWithFilm(makeFilm())
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

test('a silent film, and one of sound alone, have theirs', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'reelgate-mp4-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const tone = join(folder, 'tone.m4a')
  await run('ffmpeg', ['-v', 'error', '-f', 'lavfi', '-i', 'sine=duration=9', '-c:a', 'aac', tone])
  const { reelgate, owner, videoId } = await startWithFilm(makeFilm({ seconds: 9, sound: false }), 'Silent')
  const heard = await owner.readyVideo(tone, 'Heard')
  await untilFinished(reelgate, heard)
  for (const [id, codec] of [
    [videoId, 'h264'],
    [heard, 'aac'],
  ] as const) {
    await ask(owner, id)
    const path = await keep(await bytesOf(await fetch(await addressOf(owner, id, await untilMade(owner, id)))))
    const { streams, format } = await probe(path)
    expect([streams.map(({ codec_name }) => codec_name), Number(format.duration)]).toEqual([[codec], expect.closeTo(9, 1)])
  }
})

test('P05: what lies on the disk of it shows nothing, while it is made and afterwards', async () => {
  const { reelgate, owner, videoId } = await startWithFilm()
  const held = await holdUp(reelgate, videoId)
  await ask(owner, videoId)
  await untilBegun(reelgate)
  const clearIn = async (folder: string) => {
    const names = await filesBelow(reelgate, folder)
    const texts = await Promise.all(names.map((name) => readFile(join(reelgate.dataDir, folder, name), 'latin1').catch(() => '')))
    return texts.filter((text) => /ftyp|moov|moof|mdat|avcC|mp4a/.test(text)).length
  }
  expect(await clearIn('tmp')).toBe(0)
  await held.feed()
  const made = await untilMade(owner, videoId)
  const [name = '', ...others] = (await filesBelow(reelgate, 'files')).filter((path) => !path.endsWith('/'))
  expect([others, await clearIn(`files/${videoId}`)]).toEqual([[], 0])
  const stored = await readFile(join(reelgate.dataDir, 'files', name))
  const clear = await bytesOf(await fetch(await addressOf(owner, videoId, made)))
  expect([stored.length > clear.length, clear.includes('moof')]).toEqual([true, true])
  for (let at = 0; at + 16 <= clear.length; at += 9973) expect(stored.includes(clear.subarray(at, at + 16))).toBe(false)
})

test('it is refused before every rendition is there, to strangers, and in words where something else is asked for', async () => {
  const { reelgate, owner, videoId } = await startWithFilm(makeFilm())
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
 * Holds up whoever reads a segment of the film: its file becomes a pipe. `feed` lets the reader go on, if there is one yet or soon;
 * `restore` brings the file back.
 */
async function holdUp(reelgate: Reelgate, videoId: string) {
  const segment = listSegments(reelgate, videoId).find(({ rendition_id, number }) => rendition_id === 1 && number === 3)
  const path = join(reelgate.dataDir, 'segments', segment?.file ?? '')
  const aside = `${path}.aside`
  await rename(path, aside)
  await run('mkfifo', [path])
  // A process of its own, which can be ended: who writes into a pipe that nobody reads waits for ever.
  const feed = () => run('sh', ['-c', 'cat "$0" > "$1"', aside, path], { timeout: 5_000 }).catch(() => undefined)
  return { feed, restore: () => rename(aside, path) }
}

const unfinishedIn = async (reelgate: Reelgate) => (await filesBelow(reelgate, 'tmp')).length

/** Resolves when part of an MP4 lies there. */
async function untilBegun(reelgate: Reelgate): Promise<void> {
  while ((await unfinishedIn(reelgate)) === 0) await pause(20)
}

test('an MP4 that a crash cut off is made after the restart; until then it is of no size and not for downloads', async () => {
  const { reelgate, owner, videoId } = await startWithFilm()
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
  expect((await framesOf(path, 'v')).length).toBe(500)
  expect(await unfinishedIn(reelgate)).toBe(0)
})

test.each(['the file', 'the video'])('deleting %s while it is made ends that, and leaves nothing', async (what) => {
  const { reelgate, owner, videoId } = await startWithFilm()
  const held = await holdUp(reelgate, videoId)
  const { id } = (await (await ask(owner, videoId)).json()) as FileBody
  await untilBegun(reelgate)
  const deleting = what === 'the file' ? owner.call('DELETE', `/api/videos/${videoId}/files/${id}`) : owner.delete([videoId])
  while (
    readRows(reelgate, `select file.id from file join video on video.id = video_id where type = 'mp4' and deleted_at_s is null`)
      .length > 0
  )
    await pause(20)
  await Promise.all([held.feed(), deleting])
  expect(readRows(reelgate, `select id from file where type = 'mp4' and blob is not null`)).toEqual([])
  expect([await unfinishedIn(reelgate), await filesBelow(reelgate, 'files')]).toEqual([0, []])
})

test('one that cannot be made is given up with `enabled` 0, and made when it is asked for again', async () => {
  const { reelgate, owner, videoId } = await startWithFilm(makeFilm())
  const path = join(reelgate.dataDir, 'segments', listSegments(reelgate, videoId)[0]?.file ?? '')
  await rename(path, `${path}.aside`)
  await ask(owner, videoId)
  expect(await untilMade(owner, videoId)).toMatchObject({ enabled: 0, size: 0, isDownloadable: 0 })
  expect(reelgate.output()).toContain('an MP4 could not be made')
  await rename(`${path}.aside`, path)
  await ask(owner, videoId)
  expect(await untilMade(owner, videoId)).toMatchObject({ enabled: 1, isDownloadable: 1 })
})
