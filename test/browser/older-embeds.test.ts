import type { Browser, BrowserContext, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startSharedReelgate } from '../in-process.ts'
import { sampledTests } from '../sample.ts'
import { startChromiumWithFrameStorage } from './chromium.ts'
import { lookAtPlayer, openTab } from './player.ts'
import { startSite } from './site.ts'
import { makeSmallVideo } from './videos.ts'

// Pages written for the earlier interface, on a site of their own: the script `vdo.js` puts the player into them
// (wire-contract.md, section 8). Other ways to use it, from plug-ins: page-api.test.ts.

const { test: sampled, draw } = sampledTests('pages of the earlier interface', 1)

let reelgate: Awaited<ReturnType<typeof startSharedReelgate>>
let chromium: Browser
let browser: BrowserContext
let video: string
const site = startSite()

beforeAll(async () => {
  reelgate = await startSharedReelgate({ video: await makeSmallVideo(), title: 'Small video' })
  chromium = await startChromiumWithFrameStorage()
  browser = await chromium.newContext()
  video = reelgate.videoId
})

afterAll(async () => {
  await chromium?.close()
  await reelgate?.remove()
  site.close()
})

/** The OTP of the earlier interface, cut out of its answer as its clients do. */
async function issueOtp(): Promise<string> {
  const body = new URLSearchParams({ clientSecretKey: reelgate.owner.apiKey })
  const answer = await fetch(`${reelgate.url}/v2/otp?video=${video}`, { method: 'POST', body })
  return (await answer.text()).slice(8, 8 + 64)
}

async function openLesson(body: string): Promise<Page> {
  const page = await openTab(browser)
  await page.goto(site.put(body))
  await expect.poll(() => page.frames().length).toBe(2)
  return page
}

async function expectPicture(page: Page) {
  const frame = page.frames().at(1)
  if (!frame) throw new Error('The page has no frame')
  const player = lookAtPlayer(page, frame)
  await player.play()
  await player.playsPast(0.5)
}

/** The snippet of those days, which asks for the script and remembers what the page wants of it. */
const loader = (version: string) => `(function(v,i,d,e,o){v[o]=v[o]||{}; v[o].add = v[o].add || function V(a){
  (v[o].d=v[o].d||[]).push(a);};if(!v[o].l) { v[o].l=1*new Date(); a=i.createElement(d), m=i.getElementsByTagName(d)[0];
  a.async=1; a.src=e; m.parentNode.insertBefore(a,m);}})(window,document,"script","${reelgate.url}/playerAssets/${version}/vdo.js","vdo");`

sampled('an OTP alone plays: vdo.add({o: OTP}) fills the element of that name', async () => {
  const otp = await issueOtp()
  const page = await openLesson(
    `<div id="vdo${otp}" style="height:400px;width:640px;max-width:100%;"></div><script>${loader('1.1.0')} vdo.add({ o: "${otp}" });</script>`,
  )
  expect(await page.locator(`#vdo${otp} > iframe`).boundingBox()).toMatchObject({ width: 640, height: 400 })
  await expectPicture(page)
})

sampled('vdo.add with otp, playbackInfo, theme and container plays, in a container without a height as well', async () => {
  const answer = await reelgate.owner.call('POST', `/api/videos/${video}/otp`, { body: {} })
  const { otp, playbackInfo } = (await answer.json()) as { otp: string; playbackInfo: string }
  const page =
    await openLesson(`<div id="embedBox" style="width:640px;max-width:100%;height:auto;"></div><script>${loader('1.6.10')}
    vdo.add({ otp: "${otp}", playbackInfo: "${playbackInfo}", theme: "9ae8bbe8dd964ddc9bdb932cca1cb59a",
      container: document.querySelector("#embedBox") });</script>`)
  expect(await page.locator('#embedBox > iframe').boundingBox()).toMatchObject({ width: 640, height: 360 })
  await expectPicture(page)
})

sampled(
  'a page that loads the script first, in its head, may name an element that comes later; options of the player go with it',
  async () => {
    const otp = await issueOtp()
    const page = await openLesson(
      `<script src="${reelgate.url}/playerAssets/playerv2/1.x/vdo.js?v=3"></script><script>vdo.add({ o: "${otp}", litemode: true });</script>
    <div id="vdo${otp}"></div>`,
    )
    expect(new URL(page.frames().at(1)?.url() ?? '').searchParams.get('litemode')).toBe('true')
    await expectPicture(page)
  },
)

test('the script leaves nothing in the page but vdo, sets no cookie, and is kept for minutes only', async () => {
  const page = await openLesson(`<script>const before = new Set(Object.getOwnPropertyNames(window))</script>
    <script src="${reelgate.url}/playerAssets/1.6.10/vdo.js"></script><script>document.title =
    Object.getOwnPropertyNames(window).filter((name) => !before.has(name)).join()</script><iframe></iframe>`)
  expect(await page.title()).toBe('vdo')
  const { status, headers } = await fetch(`${reelgate.url}/playerAssets/1.6.10/vdo.js`)
  expect([status, headers.get('content-type'), headers.get('cache-control'), headers.get('set-cookie')]).toEqual([
    200,
    'text/javascript; charset=utf-8',
    'public, max-age=300',
    null,
  ])
  for (const path of ['vdo.js.map', '1.6.10/other.js', '1.6.10/vdo.js/x', '..%2f..%2freelgate.db', 'evilvdo.js'])
    expect((await fetch(`${reelgate.url}/playerAssets/${path}`)).status, path).toBe(404)
})

draw()
