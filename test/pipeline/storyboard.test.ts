import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test as everyTest, expect } from 'vitest'
import { planStoryboard } from '../../src/assets/storyboard.ts'
import { listFiles } from '../assets/sample-files.ts'
import { blobOf } from '../data-folder.ts'
import { makeNumberedVideo, readNumbers } from '../encode/videos.ts'
import { type Reelgate, startReelgate } from '../in-process.ts'
import { changeRows, readRows } from '../rows.ts'
import { sampledTests } from '../sample.ts'
import { makeSound, makeVideo } from '../videos.ts'
import { play } from './replaced.ts'
import { newFolder } from './videos.ts'

// Small pictures of the whole video, for the seek bar: GET /api/videos/{id}/storyboard, and files of a session.

type Storyboard = {
  intervalS: number
  count: number
  width: number
  height: number
  columns: number
  rows: number
  sheets: string[]
}

async function storyboardOf({ owner }: Reelgate, videoId: string): Promise<Storyboard> {
  const ask = async () => (await (await owner.call('GET', `/api/videos/${videoId}/storyboard`)).json()) as Storyboard
  await expect.poll(async () => (await ask()).count).toBeGreaterThan(0)
  return ask()
}

async function bytesOf(url: string): Promise<Buffer> {
  const response = await fetch(url)
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'image/webp'])
  return Buffer.from(await response.arrayBuffer())
}

/** The numbers of the frames in the pictures, in their order. */
async function numbersIn({ columns, rows, sheets, count }: Storyboard): Promise<number[]> {
  const folder = await newFolder()
  const numbers: number[] = []
  for (const [index, url] of sheets.entries()) {
    const path = join(folder, `${index}.webp`)
    await writeFile(path, await bytesOf(url))
    numbers.push(...(await readNumbers(path, `untile=${columns}x${rows}`)))
  }
  return numbers.slice(0, count)
}

const numbered = (path: string, frames: number, rate: number) =>
  makeNumberedVideo(path, {
    ...{ frames, rate: String(rate), widthPx: 128, heightPx: 72 },
    encode: ['-c:v', 'libx264', '-preset', 'ultrafast', '-g', '250', '-pix_fmt', 'yuv420p'],
  })

const { test, draw } = sampledTests('storyboards', 3)

test('B-01: a picture for every two seconds shows their beginning, and a session gets the same sheets as the owner', async () => {
  const reelgate = await startReelgate()
  const { owner } = reelgate
  const videoId = await owner.readyVideo(await numbered(join(await newFolder(), 'short.mp4'), 525, 25), 'Numbers')
  const storyboard = await storyboardOf(reelgate, videoId)
  expect(storyboard).toMatchObject({ intervalS: 2, count: 11, width: 128, height: 72, columns: 10, rows: 2 })
  const numbers = await numbersIn(storyboard)
  // The first frame of each that is needed by others: at most three later.
  expect(numbers.map((number, tile) => number - 50 * tile).filter((late) => late < 0 || late > 3)).toEqual([])

  const viewer = await play({ ...reelgate, videoId })
  expect((await viewer.reopen()).body).toMatchObject({
    video: { storyboard: `play/${viewer.state.session}/file/storyboard` },
  })
  const named = await viewer.call('file', 'storyboard')
  const webVtt = await named.text()
  expect(named.headers.get('content-type')).toBe('text/vtt; charset=utf-8')
  expect(webVtt).toContain('00:00:02.000 --> 00:00:04.000\nstoryboard-0#xywh=128,0,128,72\n')
  expect(webVtt).toContain('00:00:20.000 --> 00:00:21.000\nstoryboard-0#xywh=0,72,128,72\n')
  const sheet = await viewer.call('file', 'storyboard-0')
  expect(sheet.headers.get('content-type')).toBe('image/webp')
  expect(sheet.headers.get('cache-control')).toBe('no-store')
  const [address = ''] = storyboard.sheets
  expect(Buffer.from(await sheet.arrayBuffer()).equals(await bytesOf(address))).toBe(true)
  expect((await viewer.call('file', 'storyboard-1')).status).toBe(404)
  const forOthers = await owner.call('GET', `/api/videos/${videoId}/storyboard?format=vtt`)
  expect(await forOthers.text()).toMatch(/^00:00:02.000 --> 00:00:04.000\nhttp:\S+\/download\/\S+#xywh=128,0,128,72$/m)

  // Sealed on the disk, counted in the video's size, and no file of a list that callers have known for long.
  const [{ blob = '', size = 0 } = {}] = readRows<{ blob: string; size: number }>(
    reelgate,
    `select blob, size_bytes as size from file where type = 'storyboard'`,
  )
  const stored = await blobOf(reelgate, 'posters', blob).read()
  expect([stored.includes('WEBP'), stored.length > size]).toEqual([false, true])
  const files = await listFiles(owner, videoId)
  expect(files.map(({ type }) => type)).not.toContain('storyboard')
  const sizes = ['file', 'source', 'segment'].map(
    (table) => readRows<{ sum: number }>(reelgate, `select sum(size_bytes) as sum from ${table}`)[0]?.sum ?? 0,
  )
  expect((await owner.video(videoId)).totalSizeBytes).toBe(sizes.reduce((sum, part) => sum + Number(part), 0))
})

test('B-02: a long video has 400 pictures on four sheets, each of its own interval, from key frames alone', async () => {
  const reelgate = await startReelgate()
  const videoId = await reelgate.owner.readyVideo(await numbered(join(await newFolder(), 'long.mp4'), 3400, 2), 'Long')
  const storyboard = await storyboardOf(reelgate, videoId)
  expect(storyboard).toMatchObject({ intervalS: 4.25, count: 400, columns: 10, rows: 10 })
  expect(storyboard.sheets).toHaveLength(4)
  const numbers = await numbersIn(storyboard)
  const isOutside = (number: number, tile: number) => number < 8.5 * tile || number >= 8.5 * (tile + 1)
  expect(numbers.filter(isOutside)).toEqual([])
  const bytes = await Promise.all(storyboard.sheets.map(bytesOf))
  expect(bytes.reduce((sum, { length }) => sum + length, 0)).toBeLessThan(400_000)
})

test('B-03: without a proof of its session a sheet is refused, in another browser, too, and it costs no key', async () => {
  const reelgate = await startReelgate({ video: await makeVideo() })
  const { url, videoId } = reelgate
  await storyboardOf(reelgate, videoId)
  const viewer = await play(reelgate)
  const stranger = await play(reelgate)
  for (const name of ['storyboard', 'storyboard-0']) {
    const path = `/play/${viewer.state.session}/file/${name}`
    expect([400, 401, 403]).toContain((await fetch(url + path)).status)
    const copied = stranger.proof({ operation: 'file', session: viewer.state.session, argument: name })
    expect((await stranger.send('GET', path, copied)).status).toBe(403)
    const another = viewer.proof({ operation: 'file', session: viewer.state.session, argument: 'poster' })
    expect((await viewer.send('GET', path, another)).status).toBe(403)
    expect((await viewer.call('file', name)).status).toBe(200)
  }
  expect(readRows(reelgate, 'select * from key_budget')).toEqual([])
})

test('B-04: what plays has a storyboard of its own: after a trim, an undo, another encryption and a lost sheet', async () => {
  const reelgate = await startReelgate({ video: await makeVideo({ seconds: 12, size: '96x64' }) })
  const { owner, videoId } = reelgate
  const whole = await storyboardOf(reelgate, videoId)
  expect(whole.count).toBe(6)
  const watching = await play(reelgate)
  const bytes = await bytesOf(whole.sheets[0] ?? '')
  const blobs = () => readRows<{ blob: string }>(reelgate, `select blob from file where type = 'storyboard' order by id`)
  const [first] = blobs()

  expect((await owner.call('PUT', `/api/videos/${videoId}/trim`, { body: { startS: 3, endS: 8 } })).status).toBe(200)
  await expect.poll(async () => (await owner.video(videoId)).replacement).toBe(undefined)
  const trimmed = await storyboardOf(reelgate, videoId)
  expect(trimmed.count).toBe(3)
  expect(trimmed.sheets[0]?.split('/').at(-1)).not.toBe(whole.sheets[0]?.split('/').at(-1))
  // The session goes on with what it plays.
  expect(await (await watching.call('file', 'storyboard')).text()).toContain('--> 00:00:12')
  expect((await owner.call('POST', `/api/videos/${videoId}/undo`)).status).toBe(200)
  const again = await storyboardOf(reelgate, videoId)
  expect((await bytesOf(again.sheets[0] ?? '')).equals(bytes)).toBe(true)

  // A sheet that the disk has lost is made again, under another name.
  await blobOf(reelgate, 'posters', first?.blob).write('damaged')
  expect((await fetch(again.sheets[0] ?? '')).status).toBe(503)
  const mended = await storyboardOf(reelgate, videoId)
  expect(mended.sheets[0]?.split('/').at(-1)).not.toBe(again.sheets[0]?.split('/').at(-1))
  expect((await bytesOf(mended.sheets[0] ?? '')).equals(bytes)).toBe(true)

  expect((await reelgate.cli('video', 'reencrypt', videoId)).code).toBe(0)
  await expect
    .poll(() => readRows(reelgate, 'select number from generation where video_id = ? and kept_until_s is null', videoId).length)
    .toBe(2)
  await expect
    .poll(() => readRows(reelgate, 'select number from generation where video_id = ? and kept_until_s is null', videoId).length)
    .toBe(1)
  const rewrapped = await storyboardOf(reelgate, videoId)
  expect((await bytesOf(rewrapped.sheets[0] ?? '')).equals(bytes)).toBe(true)
  expect((await fetch(mended.sheets[0] ?? '')).status).toBe(404)

  expect((await owner.call('DELETE', `/api/videos?videos=${videoId}`)).status).toBe(200)
  await expect.poll(() => blobs()).toEqual([])
})

test('B-04: where a segment is damaged, the storyboard is made once it has been encoded again, and the server stays', async () => {
  const reelgate = await startReelgate({ video: await makeVideo({ seconds: 12, size: '96x64' }) })
  const { videoId } = reelgate
  const before = await bytesOf((await storyboardOf(reelgate, videoId)).sheets[0] ?? '')
  await reelgate.stop()
  const [segment] = readRows<{ file: string }>(reelgate, 'select file from segment where rendition_id = 1 and number = 1')
  await blobOf(reelgate, 'segments', segment?.file).write('damaged')
  changeRows(reelgate, `delete from file where type = 'storyboard'`)
  changeRows(reelgate, 'update generation set storyboard_made_at_s = null')
  await reelgate.restart()
  expect((await bytesOf((await storyboardOf(reelgate, videoId)).sheets[0] ?? '')).equals(before)).toBe(true)
})

test('B-05: a file with audio only has none', async () => {
  const reelgate = await startReelgate()
  const videoId = await reelgate.owner.readyVideo(await makeSound(3), 'A tone')
  await expect
    .poll(() => readRows(reelgate, 'select storyboard_made_at_s from generation where storyboard_made_at_s is not null'))
    .toHaveLength(1)
  const none = await reelgate.owner.call('GET', `/api/videos/${videoId}/storyboard`)
  expect([none.status, await none.json()]).toEqual([200, expect.objectContaining({ count: 0, sheets: [] })])
  const webVtt = await reelgate.owner.call('GET', `/api/videos/${videoId}/storyboard?format=vtt`)
  expect((await webVtt.text()).trim()).toBe('WEBVTT')
  const viewer = await play({ ...reelgate, videoId })
  expect((await viewer.reopen()).body).not.toHaveProperty('video.storyboard')
  expect((await viewer.call('file', 'storyboard')).status).toBe(404)
})

draw()

everyTest.each([
  { shape: 'upright', size: [240, 426], tile: [90, 160] },
  { shape: 'square', size: [240, 240], tile: [120, 120] },
  { shape: 'as wide as a strip', size: [1920, 16], tile: [240, 2] },
  { shape: 'a column of one pixel', size: [2, 1080], tile: [2, 240] },
  { shape: 'tiny', size: [16, 16], tile: [16, 16] },
])('B-05: the pictures of a video that is $shape have its shape, and never more pixels than it', ({ size, tile }) => {
  const [widthPx = 0, heightPx = 0] = size
  const rendition = { id: 1, widthPx, heightPx, maxBitrateBps: 1, level: 30 }
  const track = { rateNum: 25, rateDen: 1, timescale: 25, frameCount: 1000, gopFrames: 100, interlaced: false, aspectRatio: 1 }
  const storyboard = planStoryboard({ durationS: 40, isSeekable: true, videoTrack: { ...track, renditions: [rendition] } })
  expect([storyboard?.widthPx, storyboard?.heightPx]).toEqual(tile)
})

everyTest('B-05: there are at most 400 pictures, none for less than a second, and always one', () => {
  const rendition = { id: 1, widthPx: 426, heightPx: 240, maxBitrateBps: 1, level: 30 }
  const track = { rateNum: 25, rateDen: 1, timescale: 25, frameCount: 1000, gopFrames: 100, interlaced: false, aspectRatio: 1 }
  const planned = (durationS: number) =>
    planStoryboard({ durationS, isSeekable: true, videoTrack: { ...track, renditions: [rendition] } })
  const shown = [0.04, 2, 2.9, 3, 799.9, 800, 801, 3600, 36_000].map((durationS) => {
    const { tileCount, sheetCount, columns, rows } = planned(durationS) ?? {}
    return [durationS, tileCount, sheetCount, columns, rows]
  })
  expect(shown).toEqual([
    [0.04, 1, 1, 1, 1],
    [2, 1, 1, 1, 1],
    [2.9, 1, 1, 1, 1],
    [3, 2, 1, 2, 1],
    [799.9, 400, 4, 10, 10],
    [800, 400, 4, 10, 10],
    [801, 400, 4, 10, 10],
    [3600, 400, 4, 10, 10],
    [36_000, 400, 4, 10, 10],
  ])
})
