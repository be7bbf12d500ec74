import { randomFillSync } from 'node:crypto'
import type { Browser, Route } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startSharedReelgate } from '../in-process.ts'
import { sampleOf } from '../sample.ts'
import { startChromium } from './chromium.ts'
import { lookAtPlayer, openTab, playerAddress } from './player.ts'
import { makeSmallVideo } from './videos.ts'

// A segment that was damaged on the server comes back in its playlist as <n>.<r>.m4s, and its old line is gone (playback protocol, 8).

let reelgate: Awaited<ReturnType<typeof startSharedReelgate>>
let chromium: Browser

beforeAll(async () => {
  reelgate = await startSharedReelgate({ video: await makeSmallVideo(), title: 'Small video' })
  chromium = await startChromium()
})

afterAll(async () => {
  await chromium?.close()
  await reelgate?.remove()
})

/** The segment that is shown from second 20 on. */
const DAMAGED = /\/(\d+)\/5\.m4s$/

const isGone = (route: Route) => route.fulfill({ status: 404, headers: { 'Cache-Control': 'no-store' } })

const DAMAGES = [
  ['is gone', isGone],
  ['has lost its end', (route: Route) => changeBody(route, (body) => body.subarray(0, body.length - 100))],
  ['has become noise', (route: Route) => changeBody(route, (body) => randomFillSync(Buffer.alloc(body.length)))],
  ['has a changed beginning', (route: Route) => changeBody(route, (body) => body.fill(0, 64, 96))],
] as const

async function changeBody(route: Route, change: (body: Buffer) => Buffer): Promise<void> {
  const response = await route.fetch()
  await route.fulfill({ response, body: change(await response.body()) })
}

/** A player right before a segment that is damaged in every rendition, and repaired in the playlists that it reads from then on. */
async function openAtDamage(damage: (route: Route) => Promise<void>, { isRepaired }: { isRepaired: boolean }) {
  const page = await openTab(await chromium.newContext())
  const playlists: string[] = []
  let isFound = false
  await page.route('**/media/**', async (route) => {
    const url = route.request().url()
    if (!DAMAGED.test(url)) return route.continue({ url: url.replace(/\.1\.m4s$/, '.m4s') })
    isFound = true
    await damage(route)
  })
  await page.route('**/playlist/*', async (route) => {
    const response = await route.fetch()
    if (!route.request().url().endsWith('/main')) playlists.push(route.request().url())
    const text = await response.text()
    await route.fulfill({ response, body: isFound && isRepaired ? text.replaceAll(/\/5\.m4s/g, '/5.1.m4s') : text })
  })
  const player = lookAtPlayer(page)
  await page.goto(playerAddress(reelgate.url, await reelgate.owner.issueOtp(reelgate.videoId), '&t=19'))
  await player.play()
  return { player, playlists }
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

test('F-47: for a segment that is gone and was not repaired the playlist is read once more, and the player says that the video is gone', async () => {
  const { player, playlists } = await openAtDamage(isGone, { isRepaired: false })
  await player.shows('refused', 'video-gone')
  expectReadOnceMore(playlists)
})

/** Video and audio each have a playlist, and a damaged segment in it. */
function expectReadOnceMore(playlists: readonly string[]) {
  const times = [...new Set(playlists)].map((playlist) => playlists.filter((one) => one === playlist).length)
  expect(Math.max(...times)).toBe(2)
}
