import type { Browser, BrowserContext, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { addFile } from '../assets/sample-files.ts'
import { footage } from '../footage.ts'
import { startSharedReelgate } from '../in-process.ts'
import { sampledTests, sampleOf } from '../sample.ts'
import { startChromiumWithFrameStorage } from './chromium.ts'
import { lookAtPlayer, openTab } from './player.ts'
import { startSite } from './site.ts'

// What a page of another origin does with the JavaScript API (wire-contract.md, section 8), in Chromium. Every call, property and event, in
// every engine: engines/page-api.ts.

const { test: sampled, draw } = sampledTests('other videos in the same frame', 2)

let reelgate: Awaited<ReturnType<typeof startSharedReelgate>>
let chromium: Browser
let browser: BrowserContext
const site = startSite()
const CAPTIONS = 'WEBVTT\n\n00:00.000 --> 00:30.000\nHello\n'

beforeAll(async () => {
  reelgate = await startSharedReelgate({ video: footage.movieHello, title: 'Hello' })
  await addFile(reelgate.owner, reelgate.videoId, CAPTIONS, 'en')
  await addFile(reelgate.owner, reelgate.videoId, CAPTIONS, 'de')
  chromium = await startChromiumWithFrameStorage()
  browser = await chromium.newContext()
})

afterAll(async () => {
  await chromium?.close()
  await reelgate?.remove()
  site.close()
})

const newOtp = () => reelgate.owner.issueOtp(reelgate.videoId)
const inPage = <T>(page: Page, script: string) => page.evaluate(script) as Promise<T>

async function open(body: string) {
  const page = await openTab(browser)
  await page.goto(site.put(body))
  await expect.poll(() => page.frames().length).toBe(2)
  const frame = page.frames().at(1)
  if (!frame) throw new Error('The page has no frame')
  return { page, player: lookAtPlayer(page, frame) }
}

const frameHtml = (otp: string) =>
  `<script src="${reelgate.url}/v2/api.js"></script>
  <button>Button</button><iframe src="${reelgate.url}/v2/?otp=${otp}" width="640" height="360" allow="encrypted-media; autoplay; fullscreen"></iframe>
  <script>const iframe = document.querySelector('iframe'); const player = VdoPlayer.getInstance(iframe)</script>`

test('setFullscreen after a click in the page, not without one, and fullscreenChange', async () => {
  const { page } = await open(
    `${frameHtml(await newOtp())}<script>const unasked = player.api.setFullscreen(true).catch(({ name }) => name)</script>`,
  )
  expect(await inPage(page, 'unasked')).toBe('NotAllowedError')
  await inPage(
    page,
    `window.changes = [], player.api.addEventListener('fullscreenChange', (value) => changes.push(value)),
    document.querySelector('button').onclick = async () => { window.entered = await player.api.setFullscreen(true) }, 0`,
  )
  await page.getByRole('button').click()
  await expect.poll(() => inPage(page, '[window.entered, changes]')).toEqual([true, [true]])
  expect(await inPage(page, 'player.api.setFullscreen(false)')).toBe(false)
  await expect.poll(() => inPage(page, 'changes')).toEqual([true, false])
})

sampled('after a refusal the page gets otpNeeded, whenever it listens, and loadVideo plays in the same frame', async () => {
  const { page, player } = await open(frameHtml('x'.repeat(64)))
  await player.shows('refused', 'otp-unknown')
  const otpNeeded = `new Promise((resolve) => player.api.addEventListener('statusChange', (status) => status === 'otpNeeded' && resolve(status)))`
  expect(await inPage(page, otpNeeded)).toBe('otpNeeded')
  const lengthBefore = await inPage(page, 'history.length')
  await inPage(page, `player.api.loadVideo({ otp: '${await newOtp()}' })`)
  await inPage(page, `player.video.muted = true, player.video.play()`)
  await player.playsPast(0.3)
  expect(await inPage(page, '[history.length, VdoPlayer.getInstance(iframe) === player]')).toEqual([lengthBefore, true])
})

sampled('loadVideo before the frame has loaded, and twice in a row, plays the last video', async () => {
  const otp = await newOtp()
  const { page, player } = await open(
    `${frameHtml(await newOtp())}<script>
    player.api.loadVideo({ otp: '${await newOtp()}' }).catch(({ name }) => { window.first = name })
    player.api.loadVideo({ otp: '${otp}' }).then(() => { window.second = 'done' })
    player.video.muted = true
    player.video.play()</script>`,
  )
  await expect.poll(() => inPage(page, 'window.second')).toBe('done')
  await player.playsPast(0.3)
  expect(await inPage(page, '[first, second]')).toEqual(['AbortError', 'done'])
})

describe('<reelgate-player>', () => {
  const element = (otp: string, name = 'reelgate-player') =>
    `<script src="${reelgate.url}/v2/player.js"></script><script>window.received = []</script>
    <${name} otp="${otp}" loop controls="off" primaryColor="ff8800" style="width:480px"></${name}>
    <script>const element = document.querySelector('${name}')
    for (const name of ['loadedmetadata', 'playing', 'statusChange']) element.addEventListener(name, ({ type }) => received.push(type))</script>`

  test.each(sampleOf('elements of the player', ['reelgate-player', 'vdocipher-player'], 1))(
    '<%s> passes its options, and dispatches the video’s events itself',
    async (name) => {
      const { page, player } = await open(element(await newOtp(), name))
      expect(player.frame.url()).toMatch(/loop=&controls=off&primaryColor=ff8800/)
      await inPage(page, `element.getPlayer().then(({ video }) => (video.muted = true, video.play()))`)
      await player.playsPast(0.3)
      await expect
        .poll(() => inPage<string[]>(page, '[...new Set(received)].sort()'))
        .toEqual(['loadedmetadata', 'playing', 'statusChange'])
    },
  )

  sampled('loads another video when its attribute otp changes, with the same player', async () => {
    const { page, player } = await open(element('x'.repeat(64)))
    await player.shows('refused')
    await inPage(page, `element.getPlayer().then((player) => { window.before = player })`)
    await inPage(page, `element.setAttribute('otp', '${await newOtp()}')`)
    await player.shows('ready')
    expect(await inPage(page, 'element.getPlayer().then((player) => player === before)')).toBe(true)
  })

  sampled('ends when it is removed, and plays again in another place', async () => {
    const { page } = await open(element(await newOtp()))
    await inPage(page, `element.getPlayer().then((player) => { window.before = player; return player.api.getMetaData() })`)
    const pending = `Promise.all([before.api.getVideoQualities(), element.remove()]).catch(({ name }) => name)`
    expect(await inPage(page, pending)).toBe('AbortError')
    await expect.poll(() => page.frames().length).toBe(1)
    await inPage(page, `element.setAttribute('otp', '${await newOtp()}'), document.body.prepend(element)`)
    expect(await inPage(page, `element.getPlayer().then(({ api }) => api.getMetaData()).then(({ title }) => title)`)).toBe(
      'Hello',
    )
  })
})

test('a hostile script around the player reaches no method but its own, and other frames reach none', async () => {
  const { page } = await open(frameHtml(await newOtp()))
  await inPage(page, 'player.api.getMetaData()')
  // The page itself, without api.js: methods that are not in the table, properties that are not for it, arguments of the wrong type.
  const responses = await inPage<{ error?: { name: string } }[]>(
    page,
    `new Promise((done) => {
      const { port1, port2 } = new MessageChannel()
      const responses = []
      port1.onmessage = ({ data }) => {
        if (data.answer !== undefined) responses.push(data)
        if (responses.length === 5) done(responses)
      }
      iframe.contentWindow.postMessage({ reelgate: 'connect' }, '*', [port2])
      const values = [['src', 'https://example.org/'], ['onerror', 'alert(1)'], ['innerHTML', '<b>'], ['currentTime', '1'], ['volume', NaN]]
      for (const [set, value] of values) port1.postMessage({ set, value })
      for (const [call, method] of ['constructor', '__proto__', 'toString', 'fetch', 'requestFullscreen'].entries())
        port1.postMessage({ call, method, argument: {} })
    })`,
  )
  expect(responses.map(({ error }) => error?.name)).toEqual(Array(5).fill('TypeError'))

  // Another frame of another origin knocks on the player, and pretends to the page to be the player.
  const outcome = await inPage(
    page,
    `new Promise((decided) => {
      const other = document.createElement('iframe')
      other.sandbox = 'allow-scripts'
      other.srcdoc = \`<script>
        const { port1, port2 } = new MessageChannel()
        port1.onmessage = () => parent.postMessage('player', '*')
        addEventListener('message', () => parent.postMessage('page', '*'))
        parent.frames[0].postMessage({ reelgate: 'connect' }, '*', [port2])
        parent.postMessage({ reelgate: 'ready', pageLoad: 'x' }, '*')
        parent.postMessage('sent', '*')
      <\\/script>\`
      addEventListener('message', async ({ data, source }) => {
        if (source !== other.contentWindow || typeof data !== 'string') return
        if (data !== 'sent') decided(data)
        await player.api.getMetaData()
        await player.video.pause()
        decided('neither')
      })
      document.body.append(other)
    })`,
  )
  expect(outcome).toBe('neither')
})

draw()
