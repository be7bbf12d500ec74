import type { Browser, BrowserContext, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startSharedReelgate } from '../in-process.ts'
import { sampleOf } from '../sample.ts'
import { type PersonsChromium, startChromiumWithFrameStorage, startChromiumWithoutStorage } from './chromium.ts'
import { lookAtPlayer, openPlayer, openTab, type Player, playerAddress } from './player.ts'
import { startSite } from './site.ts'
import { makeSmallVideo } from './videos.ts'

// Browsers keep the storage of a frame apart for each site around it, and let a viewer deny it.

let reelgate: Awaited<ReturnType<typeof startSharedReelgate>>
let chromium: Browser
let browser: BrowserContext
let blocking: PersonsChromium
const school = startSite()

beforeAll(async () => {
  reelgate = await startSharedReelgate({ video: await makeSmallVideo(), title: 'Small video' })
  chromium = await startChromiumWithFrameStorage()
  browser = await chromium.newContext()
  blocking = await startChromiumWithoutStorage()
})

afterAll(async () => {
  await chromium?.close()
  await blocking?.remove()
  await reelgate?.remove()
  school.close()
})

/** For the storage of the browser. */
const PLAYER_WAITS_MS = 10_000

test('P01, P13: in the frame of one site the video plays, breaks no policy, and plays again after a reload; in that of another site the same link does not', async () => {
  const otp = await newOtp()
  const page = await openLesson(browser, otp, 'one.localhost')
  const first = framedPlayer(page)
  await first.play()
  await first.playsPast(0.5)
  const address = first.frame.url()
  expect(address).toContain('?session=')
  await page.reload()
  const again = framedPlayer(page)
  await again.play()
  await again.playsPast(0.5)
  expect([...first.complaints, ...again.complaints]).toEqual([])

  const elsewhere = await openLesson(browser, otp, 'other.localhost')
  const refused = framedPlayer(elsewhere)
  await refused.shows('refused', 'otp-used')
  expect(await refused.sentence()).toBe('This link was already used.')
  await expect.poll(() => statuses(elsewhere)).toContain('otpNeeded')

  const alone = await openPlayer(browser, address)
  await alone.shows('refused', 'not-allowed')
  const { timeS } = await again.video()
  await again.playsPast(timeS + 0.5) // its session is not disturbed
})

const FRAMES = [
  ['', 'a frame'],
  ['sandbox="allow-scripts allow-same-origin"', 'a sandboxed frame'],
] as const

test.each(sampleOf('frames without storage', FRAMES, 1))(
  'where storage is denied the video plays (%s %s); a reload says what to do, and the page gets `otpNeeded`',
  async (sandbox) => {
    const page = await openLesson(blocking.browser, await newOtp(), 'localhost', sandbox)
    const player = framedPlayer(page)
    await player.play()
    await player.playsPast(0.5)
    expect(await player.frame.evaluate(storageAnswers)).toEqual({ indexedDb: 'denied', localStorage: 'denied' })

    await player.frame.evaluate('location.reload()')
    await player.shows('refused', 'otp-used')
    expect(await player.sentence()).toBe('This link was already used.')
    await player.frame.getByRole('button', { name: 'Continue' }).waitFor()
    await expect.poll(() => statuses(page)).toContain('otpNeeded')
    await page.evaluate(`player.api.loadVideo({ otp: '${await newOtp()}' })`)
    await player.play()
    await player.playsPast(0.5)
  },
)

test('where the storage of the browser does not answer, the video plays all the same', async () => {
  const page = await openTab(browser)
  await page.addInitScript('IDBFactory.prototype.open = () => { globalThis.isAsked = true; return new EventTarget() }')
  await page.clock.install()
  const player = lookAtPlayer(page)
  const load = async (loading: Promise<unknown>) => {
    await loading
    await page.waitForFunction('globalThis.isAsked')
    await page.clock.fastForward(PLAYER_WAITS_MS)
  }
  await load(page.goto(playerAddress(reelgate.url, await newOtp())))
  await player.play()
  await player.playsPast(0.5)
  await load(page.reload())
  await player.shows('refused', 'otp-used')
})

const newOtp = () => reelgate.owner.issueOtp(reelgate.videoId)

/** A page of a site, with the player in a frame; its script notes each status. */
async function openLesson(browser: BrowserContext, otp: string, host: string, sandbox = ''): Promise<Page> {
  const page = await openTab(browser)
  await page.goto(
    school.put(
      `<script src="${reelgate.url}/v2/api.js"></script>
      <iframe src="${playerAddress(reelgate.url, otp)}" width="640" height="360" ${sandbox}></iframe>
      <script>const player = VdoPlayer.getInstance(document.querySelector('iframe'))
        globalThis.statuses = []
        player.api.addEventListener('statusChange', (status) => statuses.push(status))</script>`,
      host,
    ),
  )
  return page
}

const statuses = (page: Page) => page.evaluate('statuses') as Promise<string[]>

function framedPlayer(page: Page): Player {
  const frame = page.frames().at(1)
  if (!frame) throw new Error('The page has no frame')
  return lookAtPlayer(page, frame)
}

/** Runs in the frame; Chromium gets it as text. */
const storageAnswers = `new Promise((resolve) => {
  let localStorage = 'denied'
  try { globalThis.localStorage.setItem('a', 'b'); localStorage = 'given' } catch {}
  try {
    const opening = indexedDB.open('other')
    opening.onsuccess = () => resolve({ indexedDb: 'given', localStorage })
    opening.onerror = () => resolve({ indexedDb: 'denied', localStorage })
  } catch { resolve({ indexedDb: 'denied', localStorage }) }
})`
