import type { Browser, BrowserContext, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startSharedReelgate } from '../in-process.ts'
import { sampledTests } from '../sample.ts'
import { makeVideo } from '../videos.ts'
import { startChromiumWithFrameStorage } from './chromium.ts'
import { lookAtPlayer, openTab, type Player } from './player.ts'
import { startSite } from './site.ts'

// Pages written for the hosted service hold the player's frame and its scripts by their addresses: after a change of host name they play
// (wire-contract.md, section 8). The forms of embedding are those of its plug-ins for WordPress and Moodle. The video is 4:3.

let reelgate: Awaited<ReturnType<typeof startSharedReelgate>>
let chromium: Browser
let browser: BrowserContext
let durationS = 0
const site = startSite()

beforeAll(async () => {
  reelgate = await startSharedReelgate({ video: await makeVideo({ seconds: 30, size: '320x240', rate: 10 }), title: 'Lesson 7' })
  const meta = await fetch(`${reelgate.url}/api/meta/${reelgate.videoId}`)
  durationS = ((await meta.json()) as { duration: number }).duration
  chromium = await startChromiumWithFrameStorage()
  browser = await chromium.newContext()
})

afterAll(async () => {
  await chromium?.close()
  await reelgate?.remove()
  site.close()
})

async function newOtp() {
  const answer = await reelgate.owner.call('POST', `/api/videos/${reelgate.videoId}/otp`, { body: {} })
  return (await answer.json()) as { otp: string; playbackInfo: string }
}

async function openPage(body: string): Promise<{ page: Page; player: Player }> {
  const page = await openTab(browser)
  await page.goto(site.put(body))
  await expect.poll(() => page.frames().length).toBe(2)
  const frame = page.frames().at(1)
  if (!frame) throw new Error('The page has no frame')
  return { page, player: lookAtPlayer(page, frame) }
}

/** What a script of the page says; it runs in the page, not in the frame. */
const inPage = <T>(page: Page, script: string) => page.evaluate(script) as Promise<T>

async function frameHtml(options = '', attributes = 'width="640" height="360"') {
  const { otp, playbackInfo } = await newOtp()
  const address = `${reelgate.url}/v2/?otp=${otp}&playbackInfo=${playbackInfo}${options}`
  return `<script src="${reelgate.url}/v2/api.js"></script><iframe src="${address}" id="video" ${attributes} allow="encrypted-media; autoplay" allowfullscreen></iframe>
    <script>const iframe = document.querySelector('#video'); const player = VdoPlayer.getInstance(iframe)</script>`
}

describe('a page with the frame and api.js', () => {
  const { test: sampled, draw } = sampledTests('pages with the frame and api.js', 1)

  test('gives the frame the video’s height, as the plug-ins do, and plays at a click; onVdoPlayerV2APIReady is called once', async () => {
    const ready = `<script>window.ready = 0; function onVdoPlayerV2APIReady() { ready += 1 }</script>`
    const plugIn = `<script>
      iframe.style.cssText = 'height:auto;width:480px;max-width:100%;border:0;display:block'
      player.video.addEventListener('loadstart', async () => {
        iframe.style.aspectRatio = (await player.api.getMetaData()).aspectRatio
        player.api.updatePlayerConfig({ playbackSpeedOptions: [0.75, 1, 1.1] })
      })</script>`
    const { page, player } = await openPage(ready + (await frameHtml()) + plugIn)
    expect(await inPage(page, 'ready')).toBe(1)
    await expect.poll(() => page.locator('#video').boundingBox()).toMatchObject({ width: 480, height: 360 })
    await player.play()
    await player.playsPast(0.5)
    await player.keepPicture('plug-in-frame')
    await player.openSettings()
    await player.openChoices('Speed')
    expect(await player.frame.getByRole('menuitemradio', { name: /×|Normal/ }).allTextContents()).toEqual([
      '0.75 ×',
      'Normal',
      '1.1 ×',
    ])
    expect(player.complaints).toEqual([])
  })

  sampled('plays, seeks and pauses by script; what it reads are values, and its listeners hear what happens', async () => {
    const listeners = `<script>
      window.received = []
      for (const name of ['loadedmetadata', 'play', 'playing', 'seeked', 'timeupdate', 'pause', 'ended'])
        player.video.addEventListener(name, () => received.includes(name) || received.push(name))
      window.read = () => ({ at: player.video.currentTime, duration: player.video.duration, paused: player.video.paused,
        ended: player.video.ended, rate: player.video.playbackRate, buffered: player.video.buffered.length })</script>`
    const { page, player } = await openPage((await frameHtml()) + listeners)
    const read = () => inPage<Record<string, number | boolean>>(page, 'read()')
    const received = () => inPage<string[]>(page, 'received')

    await expect.poll(received).toEqual(['loadedmetadata'])
    expect(await read()).toEqual({ at: 0, duration: durationS, paused: true, ended: false, rate: 1, buffered: 0 })
    expect(await inPage(page, 'player.api.getMetaData()')).toEqual({
      title: 'Lesson 7',
      duration: durationS,
      aspectRatio: 4 / 3,
    })
    expect(await inPage(page, 'player.video.currentTime = 10, player.video.currentTime')).toBe(10)
    await inPage(page, 'player.video.play()')
    await player.until(({ timeS }) => timeS > 10.5)
    await expect.poll(read).toMatchObject({ paused: false, buffered: 1 })

    await inPage(page, 'player.video.pause()')
    const { timeS, paused } = await player.video()
    expect(paused).toBe(true)
    await expect.poll(read).toMatchObject({ paused: true, at: timeS })
    // A listener that comes late is given what happened while the video loaded.
    await inPage(page, `new Promise((loaded) => player.video.addEventListener('loadedmetadata', loaded))`)
    await inPage(page, `player.video.currentTime = ${durationS - 1}, player.video.playbackRate = 2, player.video.play()`)
    await expect.poll(read).toMatchObject({ ended: true, rate: 2 })
    await expect
      .poll(async () => (await received()).sort())
      .toEqual(['ended', 'loadedmetadata', 'pause', 'play', 'playing', 'seeked', 'timeupdate'])
    expect(player.complaints).toEqual([])
  })

  sampled('has one VdoPlayer for a frame, before it has loaded, too, and again after it has loaded another video', async () => {
    const { page } = await openPage(await frameHtml())
    expect(await inPage(page, 'VdoPlayer.getInstance(iframe) === player')).toBe(true)
    await expect(inPage(page, 'void new VdoPlayer(iframe)')).rejects.toThrow('This frame has its VdoPlayer.')
    await expect(inPage(page, 'void VdoPlayer.getInstance(document.body)')).rejects.toThrow('VdoPlayer needs an <iframe>')
    expect(await inPage(page, 'player.api.getMetaData().then(({ title }) => title)')).toBe('Lesson 7')

    const { otp } = await newOtp()
    await inPage(
      page,
      `window.again = new Promise((received) => iframe.addEventListener('load', received)), iframe.src = '${reelgate.url}/v2/?otp=${otp}'`,
    )
    await inPage(page, 'again')
    const played = inPage(
      page,
      `new Promise((received) => player.video.addEventListener('playing', received)), player.video.play()`,
    )
    await played
    await expect.poll(() => inPage<number>(page, 'player.video.currentTime')).toBeGreaterThan(0.5)
  })

  sampled('gets the current values of a player that it connects to later', async () => {
    const { otp } = await newOtp()
    const { page, player } = await openPage(
      `<iframe src="${reelgate.url}/v2/?otp=${otp}" width="640" height="360" allow="autoplay"></iframe>`,
    )
    await player.play()
    await page.addScriptTag({ url: `${reelgate.url}/v2/api.js` })
    await inPage(
      page,
      `{ window.reported = {}
      const { api } = VdoPlayer.getInstance(document.querySelector('iframe'))
      for (const name of ['statusChange', 'captionVisibilityChange', 'captionLanguageChange', 'videoAdaptivenessChange'])
        api.addEventListener(name, (value) => { reported[name] = value }) }`,
    )
    await expect
      .poll(() => inPage(page, 'reported'))
      .toEqual({
        statusChange: 'playing',
        captionVisibilityChange: false,
        captionLanguageChange: null,
        videoAdaptivenessChange: true,
      })
  })

  sampled('in lite mode redeems when the page plays it, not before', async () => {
    const { page, player } = await openPage(await frameHtml('&litemode=true'))
    await player.shows('ready')
    expect(player.frame.url()).toContain('otp=')
    await inPage(page, 'player.video.play()')
    await player.playsPast(0.5)
    expect(player.frame.url()).not.toContain('otp=')
  })

  test('gets a refusal from every call that needs the video, whether it calls before or after it', async () => {
    const { page, player } = await openPage(
      `<script src="${reelgate.url}/v2/api.js"></script><iframe src="${reelgate.url}/v2/?otp=${'x'.repeat(64)}"></iframe>
      <script>
        const player = VdoPlayer.getInstance(document.querySelector('iframe'))
        player.video.muted = true
        const calls = () => [player.api.getMetaData(), player.video.play(), player.api.updatePlayerConfig({ playbackSpeedOptions: [1] })]
        const outcomes = () => Promise.all(calls().map((call) => call.catch(({ name, message }) => [name, message])))
        const early = outcomes()
      </script>`,
    )
    const refusal = ['NotAllowedError', 'This link is not valid. Reload the page you came from to get a new one.']
    expect(await inPage(page, 'early')).toEqual([refusal, refusal, refusal])
    await player.shows('refused')
    expect(await inPage(page, 'outcomes()')).toEqual([refusal, refusal, refusal])
  })

  draw()
})

test('only the page that contains the frame is accepted, and messages to it name neither OTP nor session', async () => {
  const { page, player } = await openPage(
    `<script>window.received = []; addEventListener('message', ({ data }) => received.push(JSON.stringify(data)))</script>${await frameHtml()}`,
  )
  await inPage(page, 'player.api.getMetaData()')
  // Another window of the page speaks to the player, which answers only the window that holds it.
  const outcome = await inPage<string>(
    page,
    `new Promise((decided) => {
      const other = document.body.appendChild(document.createElement('iframe'))
      other.contentWindow.eval(\`
        const { port1, port2 } = new MessageChannel()
        port1.onmessage = () => parent.decided('received')
        parent.frames[0].postMessage({ reelgate: 'connect' }, '*', [port2])\`)
      window.decided = decided
      player.api.getMetaData().then(() => player.video.pause()).then(() => decided('not received'))
    })`,
  )
  expect(outcome).toBe('not received')
  const session = new URL(player.frame.url()).searchParams.get('session')
  const sent = await inPage<string[]>(page, 'received')
  expect(session).toHaveLength(22)
  expect(sent.length).toBeGreaterThan(0)
  for (const message of sent) expect(message).toMatch(/^\{"reelgate":"ready","pageLoad":"[\w-]{22}"\}$/)
})

test('player.js: <vdocipher-player otp> plays, is as high as its width makes it, and gives its player to the page', async () => {
  const { otp, playbackInfo } = await newOtp()
  const { page, player } = await openPage(
    `<script src="${reelgate.url}/v2/player.js"></script>
    <vdocipher-player otp="${otp}" playbackInfo="${playbackInfo}" style="width:480px"></vdocipher-player>`,
  )
  await expect.poll(() => page.locator('vdocipher-player').boundingBox()).toMatchObject({ width: 480, height: 360 })
  await inPage(page, `document.querySelector('vdocipher-player').getPlayer().then(({ video }) => video.play())`)
  await player.playsPast(0.5)
  expect(
    await inPage(
      page,
      `(async (element) => VdoPlayer.getInstance(element) === (await element.getPlayer()))(document.querySelector('vdocipher-player'))`,
    ),
  ).toBe(true)
})

describe('vdo.js', () => {
  const { test: sampled, draw } = sampledTests('versions of vdo.js', 1)

  /** The snippet of those days, which loads the script and collects what the page asks of it meanwhile. */
  const loader = (path: string) => `(function(v,i,d,e,o){v[o]=v[o]||{}; v[o].add = v[o].add || function V(a){
    (v[o].d=v[o].d||[]).push(a);};if(!v[o].l) { v[o].l=1*new Date(); a=i.createElement(d), m=i.getElementsByTagName(d)[0];
    a.async=1; a.src=e; m.parentNode.insertBefore(a,m);}})(window,document,"script","${reelgate.url}${path}","vdo");`

  sampled(
    'of version 1, in a container without a height: as high as the video makes it; getObjects and onVdoCipherAPIReady',
    async () => {
      const { otp, playbackInfo } = await newOtp()
      const { page, player } = await openPage(`<div id="vdo${otp}" style="height:auto;width:480px;max-width:100%"></div>
      <script>${loader('/playerAssets/1.6.10/vdo.js')}
      vdo.add({ otp: "${otp}", playbackInfo: "${playbackInfo}", theme: "9ae8bbe8dd964ddc9bdb932cca1cb59a", plugins: [{ name: 'keyboard' }],
        container: document.querySelector('#vdo${otp}') })
      var index = vdo.d.length - 1
      window.loaded = 0
      window.onVdoCipherAPIReady = () => {
        window.older = vdo.getObjects()[index]
        older.addEventListener('load', () => { loaded += 1; older.availablePlaybackRates = [0.5, 1] })
      }</script>`)
      await expect.poll(() => page.locator(`#vdo${otp} iframe`).boundingBox()).toMatchObject({ width: 480, height: 360 })
      await expect.poll(() => inPage(page, 'loaded')).toBe(1)
      expect(await inPage(page, '[older.duration, older.video.duration, older.ended, vdo.getObjects().length]')).toEqual([
        durationS,
        durationS,
        false,
        1,
      ])
      await player.play()
      await player.playsPast(0.5)
      await player.keepPicture('plug-in-vdo-1')
      await player.openSettings()
      await player.openChoices('Speed')
      expect(await player.frame.getByRole('menuitemradio', { name: /×|Normal/ }).allTextContents()).toEqual(['0.5 ×', 'Normal'])
    },
  )

  sampled('of version 0, from the root: vdo.add({o: OTP}) in an element of 640 × 360', async () => {
    const { otp } = await newOtp()
    const { page, player } = await openPage(
      `<div id="vdo${otp}" style="height:360px;width:640px;max-width:100%"></div><script>${loader('/vdo.js')} vdo.add({ o: "${otp}" })</script>`,
    )
    expect(await page.locator(`#vdo${otp} iframe`).boundingBox()).toMatchObject({ width: 640, height: 360 })
    await player.play()
    await player.playsPast(0.5)
    await player.keepPicture('plug-in-vdo-0')
  })

  draw()
})
