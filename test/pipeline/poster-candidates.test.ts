import { join } from 'node:path'
import { expect, test } from 'vitest'
import { listFiles } from '../assets/sample-files.ts'
import { blobOf, untilFinished, untilStoryboardMade } from '../data-folder.ts'
import { ffmpeg } from '../encode/videos.ts'
import { type Reelgate, startReelgate } from '../in-process.ts'
import { readRows } from '../rows.ts'
import { keepVideo } from '../videos.ts'
import { newFolder } from './videos.ts'

// The best of twelve frames as the poster, and three to choose from: GET /api/videos/{id}/poster-candidates.

type Candidate = { time: number; width: number; height: number; url: string }

async function candidatesOf({ owner }: Reelgate, videoId: string): Promise<Candidate[]> {
  const response = await owner.call('GET', `/api/videos/${videoId}/poster-candidates`)
  return ((await response.json()) as { candidates: Candidate[] }).candidates
}

const bytesOf = async (url: string) => Buffer.from(await (await fetch(url)).arrayBuffer())

/** What a video shows one after another: seconds, and an input of ffmpeg with filters. */
const SCENES = [
  [10, 'color=black'],
  [10, 'testsrc2,gblur=6'],
  [12, 'testsrc2'],
  [8, 'color=gray'],
  // Sharp and with more contrast than all others, but with a cut in each second, then in a fade throughout.
  ...Array.from({ length: 5 }, () => [1, 'cellauto=rule=110'] as const).flatMap((cut) => [cut, [1, 'color=white'] as const]),
  [10, 'cellauto=rule=110,fade=out:d=10'],
  [12, 'testsrc'],
] as const

/** When the two good scenes begin and end. */
const GOOD = [
  [20, 32],
  [60, 72],
] as const

function makeScenes(): Promise<string> {
  const inputs = SCENES.flatMap(([seconds, scene]) => {
    const [source, ...filters] = scene.split(',')
    const graph = `${source}${source?.includes('=') ? ':' : '='}s=160x90:r=10,trim=duration=${seconds},format=yuv420p`
    return ['-f', 'lavfi', '-i', [graph, ...filters].join(',')]
  })
  const encode = ['-filter_complex', `concat=n=${SCENES.length}:v=1`, '-c:v', 'libx264', '-preset', 'veryfast', '-crf', '16']
  return keepVideo(`poster candidates ${JSON.stringify(SCENES)}`, '.mp4', (file) => ffmpeg(...inputs, ...encode, file))
}

test('B-10: of black, blurred, flat, fading and quickly cut scenes and two sharp ones, the poster and its candidates show the sharp ones, a second from each cut', async () => {
  const reelgate = await startReelgate()
  const { owner } = reelgate
  const videoId = await owner.readyVideo(await makeScenes(), 'Scenes')
  const { posters } = await owner.video(videoId)
  await untilFinished(reelgate, videoId)
  const candidates = await candidatesOf(reelgate, videoId)
  expect(candidates).toMatchObject([
    { width: 160, height: 90 },
    { width: 160, height: 90 },
    { width: 160, height: 90 },
  ])
  const isGood = ({ time }: Candidate) => GOOD.some(([start, end]) => time >= start + 1 && time <= end - 1)
  expect(candidates.filter((candidate) => !isGood(candidate))).toEqual([])
  // The first two show different things.
  expect(new Set(candidates.slice(0, 2).map(({ time }) => time < 40)).size).toBe(2)

  // The best is the poster now, at the address that it had when the video became ready.
  const best = await bytesOf(candidates[0]?.url ?? '')
  expect((await owner.video(videoId)).posters).toEqual(posters)
  for (const { posterUrl } of posters) {
    const poster = await fetch(posterUrl)
    expect(poster.headers.get('cache-control')).toBe('public, max-age=86400')
    expect(Buffer.from(await poster.arrayBuffer()).equals(best)).toBe(true)
  }
  expect(best.toString('hex', 0, 3)).toBe('ffd8ff')

  // Sealed on the disk, counted, and no files of a list that callers have known for long.
  const rows = readRows<{ blob: string; size: number }>(
    reelgate,
    `select blob, size_bytes as size from file where type = 'poster-candidate' order by id`,
  )
  expect(rows).toHaveLength(3)
  for (const { blob, size } of rows) {
    const stored = await blobOf(reelgate, 'posters', blob).read()
    expect([stored.includes('JFIF'), stored.length > size, size > 0]).toEqual([false, true, true])
  }
  expect((await listFiles(owner, videoId)).map(({ type }) => type)).not.toContain('poster-candidate')

  // One that the disk has lost is made again; another account's owner gets none.
  await blobOf(reelgate, 'posters', rows[0]?.blob).write('damaged')
  expect((await fetch(candidates[0]?.url ?? '')).status).toBe(503)
  await untilStoryboardMade(reelgate, videoId)
  expect((await bytesOf((await candidatesOf(reelgate, videoId))[0]?.url ?? '')).equals(best)).toBe(true)
  const stranger = await reelgate.newOwner('Another')
  expect((await stranger.call('GET', `/api/videos/${videoId}/poster-candidates`)).status).toBe(404)

  // What the owner chooses stays.
  const body = { type: 'poster', time: candidates[1]?.time }
  expect((await owner.call('POST', `/api/videos/${videoId}/files`, { body })).status).toBe(200)
  const chosen = (await owner.video(videoId)).poster
  expect(posters.map(({ posterUrl }) => posterUrl)).not.toContain(chosen)

  // A part of the video has candidates of its own, and an undo those of before.
  expect((await owner.call('PUT', `/api/videos/${videoId}/trim`, { body: { startS: 56 } })).status).toBe(200)
  await expect.poll(async () => (await owner.video(videoId)).replacement).toBe(undefined)
  await untilStoryboardMade(reelgate, videoId)
  const ofPart = await candidatesOf(reelgate, videoId)
  expect(ofPart.filter(({ time }) => time < 5 || time > 15)).toEqual([])
  expect((await owner.video(videoId)).poster).toBe(chosen)

  // What is kept counts all that was made of it.
  const [{ bytes = 0 } = {}] = readRows<{ bytes: number }>(
    reelgate,
    `select segment_bytes + (select sum(size_bytes) from file where generation = number) as bytes
      from generation where kept_until_s is not null`,
  )
  expect(await (await owner.call('GET', `/api/videos/${videoId}`)).json()).toMatchObject({ kept: [{ sizeBytes: bytes }] })
  expect((await owner.call('POST', `/api/videos/${videoId}/undo`)).status).toBe(200)
  expect((await candidatesOf(reelgate, videoId)).map(({ time }) => time)).toEqual(candidates.map(({ time }) => time))

  expect((await owner.call('DELETE', `/api/videos?videos=${videoId}`)).status).toBe(200)
  await expect.poll(() => readRows(reelgate, `select * from file where type = 'poster-candidate'`)).toEqual([])
})

test('B-10: a video of one color keeps its first poster, and has no candidates', async () => {
  const reelgate = await startReelgate()
  const file = join(await newFolder(), 'red.mp4')
  await ffmpeg('-f', 'lavfi', '-i', 'color=red:s=64x64:r=10:d=3', '-c:v', 'libx264', file)
  const videoId = await reelgate.owner.readyVideo(file, 'Red')
  const { poster } = await reelgate.owner.video(videoId)
  const first = await bytesOf(poster)
  await untilFinished(reelgate, videoId)
  expect(await candidatesOf(reelgate, videoId)).toEqual([])
  expect((await bytesOf((await reelgate.owner.video(videoId)).poster)).equals(first)).toBe(true)
})
