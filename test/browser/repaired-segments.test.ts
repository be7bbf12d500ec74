import { hash, randomFillSync } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Response, Route } from 'playwright-core'
import { expect, test } from 'vitest'
import { listSegments, type StoredSegment } from '../data-folder.ts'
import { type Reelgate, startReelgate } from '../in-process.ts'
import { sampleOf } from '../sample.ts'
import { readMediaPlaylist } from '../viewer.ts'
import { compareWithSource } from './frame-pixels.ts'
import { claimEnd } from './in-page.ts'
import { lookAtPlayer, openTab, playerAddress } from './player.ts'
import { makeSmallVideo, startWithSmallVideo } from './videos.ts'

// A segment that was damaged on the server comes back in its playlist as <n>.<r>.m4s, and its old line is gone (playback protocol, 8).

const shared = startWithSmallVideo()

/** The segment that is shown from second 20 on. */
const DAMAGED = /\/(\d+)\/5\.m4s$/

const isGone = (route: Route) => route.fulfill({ status: 404, headers: { 'Cache-Control': 'no-store' } })

const DAMAGES = [
  ['is gone', isGone],
  ['has lost its end', (route: Route) => changeBody(route, (body) => body.subarray(0, body.length - 100))],
  ['has become noise', (route: Route) => changeBody(route, (body) => randomFillSync(Buffer.alloc(body.length)))],
  ['has a changed beginning', (route: Route) => changeBody(route, (body) => body.fill(0, 64, 96))],
] as const

/** What parses and appends, and only the decoders of pictures and sound notice. */
const DAMAGED_FRAMES = [
  ['in one place', (route: Route) => changeBody(route, (body) => body.fill(0, body.length >> 1, (body.length >> 1) + 64))],
  [
    'in its second half',
    (route: Route) => changeBody(route, (body) => randomFillSync(body, body.length >> 1, 0.4 * body.length)),
  ],
  ['throughout', (route: Route) => changeBody(route, flipBytes)],
] as const

function flipBytes(body: Buffer): Buffer {
  for (let at = 1500; at < body.length; at += 700) body.writeUInt8(body.readUInt8(at) ^ 255, at)
  return body
}

async function changeBody(route: Route, change: (body: Buffer) => Buffer): Promise<void> {
  const response = await route.fetch()
  await route.fulfill({ response, body: change(await response.body()) })
}

/** A player right before a segment that is damaged in every rendition, and repaired in the playlists that it reads from then on. */
async function openAtDamage(damage: (route: Route) => Promise<void>, { isRepaired }: { isRepaired: boolean }) {
  const page = await openTab(await shared.chromium.newContext())
  const playlists: string[] = []
  const requested = new Set<number>()
  let sentDamaged = 0
  await page.route('**/media/**', async (route) => {
    const url = route.request().url()
    const [, number] = /\/(\d+)(\.1)?\.m4s$/.exec(url) ?? []
    if (number !== undefined) requested.add(Number(number))
    if (!DAMAGED.test(url)) return route.continue({ url: url.replace(/\.1\.m4s$/, '.m4s') })
    sentDamaged++
    await damage(route)
  })
  await page.route('**/playlist/*', async (route) => {
    const response = await route.fetch()
    if (!route.request().url().endsWith('/main')) playlists.push(route.request().url())
    const text = await response.text()
    await route.fulfill({ response, body: sentDamaged > 0 && isRepaired ? text.replaceAll(/\/5\.m4s/g, '/5.1.m4s') : text })
  })
  const player = lookAtPlayer(page)
  await page.goto(playerAddress(shared.reelgate.url, await shared.reelgate.owner.issueOtp(shared.reelgate.videoId), '&t=19'))
  await player.play()
  return { player, playlists, requested, sentDamaged: () => sentDamaged }
}

test.each(sampleOf('damages of a segment', DAMAGES, 1))(
  'F-47: after a segment that %s the player reads the playlist once more, and plays on with the repaired one',
  async (_, damage) => {
    const { player, playlists } = await openAtDamage(damage, { isRepaired: true })
    await player.playsPast(22)
    expect(await player.video()).toMatchObject({ widthPx: 320 })
    expectReadOnceMore(playlists)
  },
)

test.each(sampleOf('damaged frames', DAMAGED_FRAMES, 1))(
  'F-47: after a segment whose frames are damaged %s, so that only a decoder notices, the player plays on with the repaired one by itself',
  async (_, damage) => {
    const { player, playlists, requested } = await openAtDamage(damage, { isRepaired: true })
    await player.playsPast(22)
    expect(Math.min(...requested)).toBe(4) // where it was, not from the beginning
    expect(mostReadings(playlists)).toBeLessThanOrEqual(3) // once more each, for pictures and sound
  },
)

test('F-47: a segment that no decoder can read, and that was not repaired, is tried a few times, and the player says that something went wrong', async () => {
  const { player, playlists, sentDamaged } = await openAtDamage((route) => changeBody(route, flipBytes), { isRepaired: false })
  await player.shows('refused', 'internal')
  expect(mostReadings(playlists)).toBeLessThanOrEqual(5)
  expect(sentDamaged()).toBeLessThanOrEqual(2 * 4) // pictures and sound, for each media source
})

test('F-47: what a browser shows as the end of a video, before it reports that a decoder failed, is not taken for its end', async () => {
  const player = lookAtPlayer(await openTab(await shared.chromium.newContext()))
  await player.page.goto(playerAddress(shared.reelgate.url, await shared.reelgate.owner.issueOtp(shared.reelgate.videoId)))
  await player.play()
  await player.playsPast(1)
  await player.frame.evaluate(claimEnd)
  expect(await player.frame.locator('body').getAttribute('data-code')).not.toBe('ended')
  await player.playsPast(2)
})

test('F-47: for a segment that is gone and was not repaired the playlist is read once more, and the player says that the video is gone', async () => {
  const { player, playlists } = await openAtDamage(isGone, { isRepaired: false })
  await player.shows('refused', 'video-gone')
  expectReadOnceMore(playlists)
})

/** Video and audio each have a playlist, and a damaged segment in it. */
function expectReadOnceMore(playlists: readonly string[]) {
  expect(mostReadings(playlists)).toBe(2)
}

function mostReadings(playlists: readonly string[]): number {
  return Math.max(...[...new Set(playlists)].map((playlist) => playlists.filter((one) => one === playlist).length))
}

const CHANGES = [
  { when: 'before it was ever sent', isSentBefore: false },
  { when: 'after it was sent to another viewer', isSentBefore: true },
]
const SEGMENT_S = 4
/** SSIM; measured: 0.72 and better, and 0.58 for other frames. */
const ALIKE = 0.65

// Each with a server of its own: the third request of a segment would be answered from memory.
test.each(sampleOf('changes on the disk', CHANGES, 1))(
  'F-65: a video plays across a segment whose bytes changed on the disk $when: they are never sent, it is encoded again, and its frames are shown',
  async ({ isSentBefore }) => {
    const number = 5
    const reelgate = await startReelgate({ video: await makeSmallVideo() })
    const segments = listSegments(reelgate, reelgate.videoId).filter((segment) => segment.number === number)
    expect(segments).toHaveLength(2) // pictures and sound
    const files = segments.map(({ file }) => join(reelgate.dataDir, 'segments', file))
    const whole = await Promise.all(files.map((file) => readFile(file)))
    if (isSentBefore) expect(await downloadSegments(reelgate, segments)).toEqual(whole)
    await Promise.all(files.map((file, at) => writeFile(file, flipBytes(Buffer.from(whole[at] ?? '')))))

    const page = await openTab(await shared.chromium.newContext())
    const responses: Response[] = []
    page.on('response', (response) => {
      if (/\/(\d+)(\.\d+)?\.m4s$/.exec(response.url())?.[1] === String(number)) responses.push(response)
    })
    const player = lookAtPlayer(page)
    const placeS = number * SEGMENT_S
    await page.goto(playerAddress(reelgate.url, await reelgate.owner.issueOtp(reelgate.videoId), `&t=${placeS - 1}`))
    await player.play()
    const shown = await player.takeFrames(placeS + 0.5, placeS + 3)
    await player.playsPast(placeS + SEGMENT_S)

    for (const { source } of await compareWithSource(shown, await makeSmallVideo())) expect(source).toBeGreaterThan(ALIKE)
    expect(new Set(responses.map((response) => response.status()))).toEqual(new Set([503, 404, 200]))
    const sent = responses.filter((response) => response.ok())
    expect(await hashesOf(sent.map((response) => response.body()))).toEqual(await hashesOf(whole))
    expect(await hashesOf(files.map((file) => readFile(file)))).toEqual(await hashesOf(whole))
    for (const url of sent.map((response) => response.url())) {
      expect(url).toContain(`/${number}.1.m4s`)
      const old = await fetch(url.replace('.1.m4s', '.m4s'))
      expect([old.status, old.headers.get('cache-control')]).toEqual([404, 'no-store'])
    }
  },
)

/** As another viewer's player does. */
async function downloadSegments(reelgate: Reelgate, segments: readonly StoredSegment[]): Promise<Buffer[]> {
  const viewer = reelgate.newViewer()
  await viewer.redeem(await reelgate.owner.issueOtp(reelgate.videoId))
  return Promise.all(
    segments.map(async ({ rendition_id, number }) => {
      const { uri = '' } = readMediaPlaylist(await viewer.playlist(String(rendition_id))).segments[number] ?? {}
      const response = await fetch(new URL(uri, `${reelgate.url}/play/${viewer.state.session}/playlist/`))
      return Buffer.from(await response.arrayBuffer())
    }),
  )
}

async function hashesOf(bodies: readonly (Buffer | Promise<Buffer>)[]): Promise<string[]> {
  return (await Promise.all(bodies)).map((body) => hash('sha256', body)).sort()
}
