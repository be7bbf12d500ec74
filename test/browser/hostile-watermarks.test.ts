import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startSharedReelgate } from '../in-process.ts'
import { startChromium } from './chromium.ts'
import { lookAtPlayer, openTab, type Player, playerAddress } from './player.ts'
import { makeSmallVideo } from './videos.ts'

// Marks whose words come from a viewer who means harm.

let reelgate: Awaited<ReturnType<typeof startSharedReelgate>>
let chromium: Browser
let video: string
let canary: Server
let canaryUrl: string
const received: string[] = []

beforeAll(async () => {
  canary = createServer((request, response) => {
    received.push(request.url ?? '')
    response.end()
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => canary.once('listening', resolve))
  canaryUrl = `http://127.0.0.1:${(canary.address() as AddressInfo).port}`
  reelgate = await startSharedReelgate({ video: await makeSmallVideo(), title: 'Small video' })
  video = reelgate.videoId
  chromium = await startChromium()
})

afterAll(async () => {
  await chromium?.close()
  await reelgate?.remove()
  canary?.close()
})

/** Marks lie in closed shadow roots: the tests look in by keeping each as it is made. */
const KEEP_ROOTS = `
  globalThis.closedRoots = []
  const attachShadow = Element.prototype.attachShadow
  Element.prototype.attachShadow = function (how) {
    const root = attachShadow.call(this, how)
    if (how.mode === 'closed') closedRoots.push(root)
    return root
  }`

test('X05: a watermark is text, whatever it looks like: it makes no element, runs nothing and sends no request', async () => {
  const texts = [
    `<img src=x onerror="globalThis.ran=1"><svg onload="globalThis.ran=1">`,
    'javascript:globalThis.ran=1',
    '</script><script>globalThis.ran=1</script>',
    '"}],"marks":[{"type":"image","image":"x',
    `url(${canaryUrl}/css) expression(globalThis.ran=1); } * { background: url(${canaryUrl}/css) }`,
    '\u2028\u2029 {{7*7}} &lt;b&gt;',
  ]
  const annotate = [...texts, 'by {name} {email}'].map((text) => ({ type: 'text', text }))
  const viewer = { name: '<b>Ada</b>', email: `"><img src=${canaryUrl}/mail>` }
  const player = await watch({ annotate, viewer })
  expect(
    await player.page.evaluate(
      '[...closedRoots.at(-1).children].map((line) => [line.localName, line.children.length, line.textContent])',
    ),
  ).toEqual([...texts, `by ${viewer.name} ${viewer.email}`].map((text) => ['div', 0, text]))
  expect(await player.page.evaluate('globalThis.ran')).toBeUndefined()
  expect(player.complaints).toEqual([])
  await player.keepPicture('hostile-marks')

  // The wall behind it: what gets into the page as HTML all the same does not run either, and requests nothing.
  const html = `<img src=x onerror="globalThis.ran=1"><img src="${canaryUrl}/image"><style>body { background: url(${canaryUrl}/css) }</style>`
  await player.page.evaluate(`document.body.insertAdjacentHTML('beforeend', ${JSON.stringify(html)})`)
  await expect.poll(() => player.complaints.join('\n')).toMatch(/script-src-attr forbids inline/)
  await expect.poll(() => player.complaints.join('\n')).toMatch(/img-src forbids http:\/\/127\.0\.0\.1/)
  expect(await player.page.evaluate('globalThis.ran')).toBeUndefined()
  expect(received).toEqual([])
})

test('X06: under the most and largest marks there can be, the player is still used by mouse and keyboard', async () => {
  const most = { type: 'rtext', text: 'W'.repeat(500), size: 1e9, alpha: 99, interval: 0, skip: -5, color: '0xff00ff' }
  const player = await watch({ annotate: Array(20).fill(most) })
  await player.keepPicture('most-marks')
  await player.page.keyboard.press('k')
  await player.until(({ paused }) => paused)
  await player.page.mouse.move(300, 300)
  await player.press('play')
  const { timeS } = await player.video()
  await player.playsPast(timeS + 0.5)
  await player.openSettings()
  await player.frame.getByRole('menuitemradio', { name: 'Normal' }).waitFor()
})

async function watch(options: Record<string, unknown>): Promise<Player> {
  const page = await openTab(await chromium.newContext({ viewport: { width: 1280, height: 720 } }))
  await page.addInitScript(KEEP_ROOTS)
  const player = lookAtPlayer(page)
  await page.goto(playerAddress(reelgate.url, await reelgate.owner.issueOtp(video, options)))
  await player.play()
  await player.playsPast(0.3)
  return player
}
