import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { addFile } from '../../assets/sample-files.ts'
import { markUnfinished, untilFinished, untilStoryboard } from '../../data-folder.ts'
import { footage } from '../../footage.ts'
import { findFreePort } from '../../free-port.ts'
import { startReelgate, startSharedReelgate } from '../../in-process.ts'
import { courseAddress, ofVideo, register } from '../../lti/launch.ts'
import { startPlatform } from '../../lti/platform.ts'
import { startFaultProxy } from '../../s3/fault-proxy.ts'
import { bucketEnvironment, storeEndpoint } from '../../s3.ts'
import { sampledTests, sampleOf } from '../../sample.ts'
import { compareWithSource, findColour, type Rgb, type Spot } from '../frame-pixels.ts'
import { readCaptions, readSeekPreview, tryStoredKeys } from '../in-page.ts'
import { playerAddress } from '../player.ts'
import { startSite } from '../site.ts'
import { testAudioTracks } from './audio-tracks.ts'
import { type Engine, type Tab, VIEWPORT } from './engine.ts'
import {
  addPageClass,
  colourCaptions,
  copyFrame,
  doubleTap,
  findCentre,
  isFullscreen,
  readSearch,
  readSigns,
  readWidth,
  recordSigns,
  seek,
  stopLooping,
  useVdoPlayer,
} from './in-page.ts'
import { testNextLesson } from './next-lesson.ts'
import { testOtherPages } from './other-pages.ts'
import { testPageApi } from './page-api.ts'
import { lookAt } from './player.ts'
import { testPlaying } from './playing.ts'
import { testUploading } from './uploading.ts'

const GREEN = [0, 255, 0] as const
const MAGENTA = [255, 0, 255] as const
const YELLOW = [255, 255, 0] as const
const BLOCKS = '████ █████'
const CAPTIONS = `1\n00:00:00,000 --> 00:00:30,000\n${BLOCKS}\n`
const WATERMARK = { type: 'text', text: 'Ada', alpha: '1', color: '0xff00ff', size: '40', x: '40%', y: '20%' }

/** The smallest rendition, because these browsers decode and draw in software. */
const SMALLEST = { forcedBitrate: 200 }
const FRAME = 'width="560" height="315" allow="encrypted-media; autoplay; fullscreen"'

/** How many of the sampled tests a run has. What an engine has not drawn, `browser` checks in Chromium. */
const SAMPLE = { Chromium: 0, Firefox: 1, WebKit: 1 }
/** Of those of pages around the player, of which Chromium has all. */
const PAGES = { Chromium: Number.POSITIVE_INFINITY, Firefox: 3, WebKit: 3 }

/** A viewer's way through the player, which every engine passes. */
export function testViewersWay(name: 'Chromium' | 'Firefox' | 'WebKit', start: () => Promise<Engine>) {
  const { test: sampled, draw } = sampledTests(`a viewer’s way in ${name}`, SAMPLE[name])
  const inEveryRun = name === 'Chromium' ? sampled : test
  const pages = sampledTests(`pages around players in ${name}`, PAGES[name])
  let reelgate: Awaited<ReturnType<typeof startSharedReelgate>>
  let engine: Engine
  let viewer: Tab
  const school = startSite()

  beforeAll(async () => {
    reelgate = await startSharedReelgate({ video: footage.movieHello, title: 'Hello' })
    await addFile(reelgate.owner, reelgate.videoId, CAPTIONS, 'en')
    await addFile(reelgate.owner, reelgate.videoId, CAPTIONS, 'de')
    const chapters = [1, 3, 6].map((startS) => ({ startS, title: `From ${startS}` }))
    await reelgate.owner.call('PUT', `/api/videos/${reelgate.videoId}/chapters`, { body: { chapters } })
    engine = await start()
    console.log(`${name} ${engine.version}`)
    viewer = await engine.openProfile()
  })

  afterAll(async () => {
    await engine?.close()
    await reelgate?.remove()
    school.close()
  })

  async function newAddress(otp: Record<string, unknown> = SMALLEST, options = '&loop=true'): Promise<string> {
    return playerAddress(reelgate.url, await reelgate.owner.issueOtp(reelgate.videoId, otp), options)
  }

  async function open(address: string) {
    await viewer.goto(address)
    const player = lookAt(viewer)
    await player.shows('ready')
    return player
  }

  inEveryRun('a video plays, shows the source’s frame after a seek, and changes its quality', async () => {
    const player = await open(await newAddress({}))
    await player.click('.big-play')
    const early = await player.playsPast(0.5)
    expect((await player.until(({ timeS }) => timeS > early.timeS + 1)).framesDecoded).toBeGreaterThan(early.framesDecoded + 10)

    await player.click('media-time-range')
    await player.until(({ timeS, seeking }) => Math.abs(timeS - 4) < 1 && !seeking)
    await player.pause()
    await player.click('media-time-range') // a busy browser pauses at a frame from before its time; a seek shows the right one
    await expect
      .poll(async () => {
        const [{ source, neighbour } = { source: 0, neighbour: 1 }] = await compareWithSource(
          [await player.run(copyFrame, null)],
          footage.movieHello,
        )
        return source > 0.85 && source > neighbour
      })
      .toBe(true)

    await player.click('media-play-button')
    for (const heightPx of [240, 480]) {
      await player.moveMouse({ xPx: 20, yPx: 20 })
      await player.click('.settings-button')
      await player.click('[data-item="Quality"]')
      await player.click('[role="menuitemradio"]', `${heightPx}p`)
      if (heightPx === 480) await player.keepPicture(`${name}-settings`)
      for (const _ of ['the page', 'the menu']) await player.tab.press('Escape')
      await player.until((now) => now.heightPx === heightPx)
    }
  })

  sampled(
    'F-210: a video plays and seeks whose segments come straight from a bucket, also by way of the server while it is encoded',
    async () => {
      const store = await startFaultProxy(await storeEndpoint())
      const { env } = await bucketEnvironment(store.endpoint)
      const port = String(await findFreePort())
      const publicUrl = `http://127.0.0.1:${port}`
      const there = await startReelgate({ env: { ...env, PORT: port, REELGATE_PUBLIC_URL: publicUrl, REELGATE_DEMO: 'off' } })
      const videoId = await there.owner.readyVideo(footage.movieHello)
      await untilFinished(there, videoId)
      const sentByStore = () => store.requests().filter((asked) => /^GET .*\.m4s\?.*X-Amz-Signature=/.test(asked)).length
      const openThere = async () => open(playerAddress(publicUrl, await there.owner.issueOtp(videoId, SMALLEST)))

      const finish = markUnfinished(there, videoId)
      const early = await openThere()
      await early.click('.big-play')
      await early.playsPast(0.5)
      expect(await early.run(readSegmentOrigins, null)).toEqual([publicUrl])
      expect(sentByStore()).toBeGreaterThan(1)

      finish()
      const player = await openThere()
      await player.click('.big-play')
      await player.playsPast(0.5)
      await player.run(seek, 6)
      await player.playsPast(6.2)
      // It may have them in its cache: the addresses of an hour are the same.
      expect(await player.run(readSegmentOrigins, null)).toEqual([store.endpoint])
    },
  )

  sampled('F-202: a video plays whose segments come from another origin', async () => {
    const port = String(await findFreePort())
    const origin = `http://localhost:${port}` // this server under another name
    const there = await startReelgate({ video: footage.movieHello, env: { PORT: port, REELGATE_MEDIA_URL: origin } })
    const player = await open(playerAddress(there.url, await there.owner.issueOtp(there.videoId, SMALLEST)))
    await player.click('.big-play')
    await player.playsPast(0.5)
    expect(await player.run(readSegmentOrigins, null)).toEqual([origin])
  })

  inEveryRun('the watermark and the captions are on the screen', async () => {
    const player = await open(
      await newAddress({ ...SMALLEST, annotate: JSON.stringify([WATERMARK]) }, '&loop=true&ccLanguage=en'),
    )
    await player.click('.big-play')
    await player.playsPast(0.5)
    await expect.poll(() => player.run(readCaptions, null)).toEqual([BLOCKS])
    await player.run(colourCaptions, 'rgb(0, 255, 0)')
    await player.pause() // the bar shows, and captions stay above it
    const { yPx } = await player.find('media-play-button')
    const captions = async () => findColour(await player.screenshot(`${name}-overlays`), GREEN)
    await expect.poll(captions).toSatisfy((spot: Spot) => spot.pixels > 300 && spot.bottomPx < yPx - 15)
    const { pixels, leftPx, topPx } = await findColour(await player.screenshot(`${name}-overlays`), MAGENTA)
    expect(pixels).toBeGreaterThan(100)
    expect(Math.abs(leftPx - 0.4 * VIEWPORT.width)).toBeLessThan(10)
    expect(Math.abs(topPx - 0.2 * VIEWPORT.height)).toBeLessThan(20)
  })

  inEveryRun(
    'P-09, P-12: keys show what they change and step frames; a double tap seeks, a double click goes to full screen',
    async () => {
      const player = await open(await newAddress())
      await player.click('.big-play')
      await player.playsPast(0.5)
      await player.pause()
      await player.run(recordSigns, null)
      await player.tab.press('m')
      await player.until(({ muted }) => muted)

      const step = async (key: ',' | '.') => {
        const before = await player.video()
        await player.tab.press(key)
        await player.until(({ timeS, seeking }) => timeS !== before.timeS && !seeking)
      }
      const frame = async () => (await player.run(copyFrame, null)).pngBase64
      await step('.')
      const first = await frame()
      await step('.')
      await expect.poll(async () => (await frame()) !== first).toBe(true)
      await step(',')
      await expect.poll(async () => (await frame()) === first).toBe(true)

      await player.run(stopLooping, null) // WebKit goes from the end to the beginning even while paused
      const { timeS } = await player.video()
      await player.run(doubleTap, { x: 0.9, y: 0.4 })
      await player.until((now) => now.timeS === Math.min(timeS + 10, now.durationS))
      await player.run(doubleTap, { x: 0.1, y: 0.4 })
      await player.until((now) => now.timeS === Math.max(0, now.durationS - 10))
      const middle = { xPx: VIEWPORT.width / 2, yPx: VIEWPORT.height / 3 }
      await player.tab.doubleClick('page', middle)
      await expect.poll(() => player.run(isFullscreen, null)).toBe(true)
      await player.keepPicture(`${name}-double-click`)
      // Elsewhere: at the same place WebKit counts on, to a third and a fourth click.
      await player.tab.doubleClick('page', { ...middle, yPx: VIEWPORT.height / 2 })
      await expect.poll(() => player.run(isFullscreen, null)).toBe(false)
      expect((await player.video()).paused).toBe(true)
      expect(await player.run(readSigns, null)).toEqual([
        ...['Sound off', 'One frame ahead', 'One frame back'],
        ...['10 seconds ahead', '10 seconds back'],
      ])
    },
  )

  inEveryRun('C-05: keys and the menu go to chapters, whose parts are on the seek bar', async () => {
    const player = await open(await newAddress())
    await player.click('.big-play')
    await player.playsPast(0.2)
    await player.pause()
    const isAt = (timeS: number) => player.until((now) => !now.seeking && Math.abs(now.timeS - timeS) < 0.1)
    await player.run(seek, 0.5) // a busy browser may have played past the first chapters
    await isAt(0.5)
    await player.run(recordSigns, null)
    await player.tab.press('n')
    await isAt(1)
    await player.tab.press('n')
    await isAt(3)
    await player.tab.press('p')
    await isAt(1)
    expect(await player.run(readSigns, null)).toEqual(['From 1', 'From 3', 'From 1'])
    await player.moveMouse({ xPx: 20, yPx: 20 })
    await player.click('.settings-button')
    await player.click('[data-item="Chapters"]')
    await player.keepPicture(`${name}-chapters`)
    await player.click('[role="menuitemradio"]', '0:06 From 6')
    await isAt(6)
    await player.find('.chapter')
    await player.keepPicture(`${name}-chapters-bar`)
  })

  sampled('B-06: under a moving pointer the seek bar shows the picture of that time', async () => {
    await untilStoryboard(reelgate, reelgate.videoId)
    const player = await open(await newAddress())
    await player.click('.big-play')
    await player.playsPast(0.2)
    await player.pause()
    await player.moveMouse({ xPx: 20, yPx: 20 })
    const { xPx, yPx } = await player.find('media-time-range')
    const widthPx = await player.run(readWidth, 'media-time-range')
    for (const [share, place] of [
      [0.1, '0 0 160 90'],
      [0.6, '320 0 160 90'],
      [0.9, '480 0 160 90'],
    ] as const) {
      await player.moveMouse({ xPx: xPx + (share - 0.5) * widthPx, yPx })
      await expect
        .poll(() => player.run(readSeekPreview, null))
        .toMatchObject({ isShown: true, isWithin: true, hasPicture: true, place, widerByPx: 0 })
      await player.keepPicture(`${name}-storyboard-${share}`)
    }
  })

  sampled('L-06: the transcript opens by its key, marks the spoken line, and a click on a line seeks', async () => {
    const [times, lines] = [
      [0, 2, 4, 6],
      ['Light', 'leaves', 'the', 'lamp'],
    ]
    const cues = times.map((atS, n) => `${n + 1}\n00:00:0${atS},000 --> 00:00:0${atS + 2},000\n${lines[n]}\n`)
    const added = await addFile(reelgate.owner, reelgate.videoId, cues.join('\n'), 'fr')
    const { id } = (await added.json()) as { id: number }
    onTestFinished(async () => void (await reelgate.owner.call('DELETE', `/api/videos/${reelgate.videoId}/files/${id}`)))
    const player = await open(await newAddress(SMALLEST, '&loop=true&ccLanguage=fr'))
    await player.click('.big-play')
    await player.playsPast(0.2)
    await player.pause()
    await player.tab.press('t')
    await player.click('.transcript li button span', 'the')
    await player.until(({ timeS, seeking }) => !seeking && Math.abs(timeS - 4) < 0.1)
    await player.find('.transcript [aria-current="true"] span', 'the')
    await player.keepPicture(`${name}-transcript`)
    await player.tab.press('Escape')
    await expect.poll(() => player.run(findCentre, { selector: '.transcript' })).toBe(null)
  })

  sampled('captions have the size and the color that the viewer chooses', async () => {
    const player = await open(await newAddress(SMALLEST, '&loop=true&ccLanguage=en'))
    await player.click('.big-play')
    await player.playsPast(0.5)
    await expect.poll(() => player.run(readCaptions, null)).toEqual([BLOCKS])
    await player.pause()
    const look = async (colour: Rgb) => findColour(await player.screenshot(`${name}-caption-style`), colour)
    const choose = async (...items: string[]) => {
      await player.moveMouse({ xPx: 20, yPx: 20 })
      await player.click('.settings-button')
      await player.click('[data-item="Caption style"]')
      for (const item of items) await player.click(`[data-item^="${item}"]`)
      for (const _ of ['the menu', 'its page', ...items.slice(1)]) await player.tab.press('Escape')
    }
    await choose('Color', 'Color 1') // yellow
    await expect.poll(async () => (await look(YELLOW)).pixels).toBeGreaterThan(200)
    const normal = await look(YELLOW)
    await choose('Size', 'Size 2') // large
    const growth = async () => {
      const large = await look(YELLOW)
      return (large.rightPx - large.leftPx) / (normal.rightPx - normal.leftPx)
    }
    await expect.poll(growth).toSatisfy((ratio: number) => ratio > 1.3 && ratio < 1.8)
    await choose('Reset')
    await expect.poll(async () => (await look(YELLOW)).pixels).toBe(0)
  })

  inEveryRun('a second browser is refused, and a reload in the first continues', async () => {
    const address = await newAddress()
    const player = await open(address)

    const other = await engine.openProfile()
    await other.goto(address)
    const refused = lookAt(other)
    await refused.shows('refused', 'otp-used')
    expect(await refused.sentence()).toBe('This link was already used. Reload the page you came from to get a new one.')
    await refused.keepPicture(`${name}-refused`)

    const search = await player.run(readSearch, null)
    await player.tab.reload()
    await player.shows('ready')
    expect(search).toMatch(/^\?session=/)
    expect(await player.run(readSearch, null)).toBe(search)
    await player.click('.big-play')
    await player.playsPast(0.5)
  })

  inEveryRun('the owner stops the video', async () => {
    const player = await open(await newAddress({ ...SMALLEST, userId: `ann-${name}` }))
    await player.click('.big-play')
    await player.playsPast(0.5)
    expect((await reelgate.owner.call('DELETE', `/api/sessions?userId=ann-${name}`)).status).toBe(200)
    await player.shows('refused', 'session-ended.stopped')
    expect(await player.sentence()).toBe(
      'The owner of this video has stopped playback. Ask the owner of this site if you may watch on.',
    )
    await player.keepPicture(`${name}-stopped`)
  })

  sampled('no script of the page can export or derive a stored key', async () => {
    const player = await open(await newAddress())
    const keys = await player.run(tryStoredKeys, null)
    expect(keys.length).toBeGreaterThan(0)
    for (const { usages, outcomes } of keys) {
      expect(usages).toEqual(['sign'])
      for (const outcome of outcomes) expect(outcome).toMatch(/^(InvalidAccessError|NotSupportedError)$/)
    }
  })

  sampled('in a frame of another site it plays, stores its keys apart, and continues after a reload of that site', async () => {
    const countKeys = async () => {
      await viewer.goto(`${reelgate.url}/player/`)
      return (await viewer.run('page', tryStoredKeys, null)).length
    }
    await open(await newAddress())
    const before = await countKeys()
    await viewer.goto(school.put(`<iframe src="${await newAddress()}" ${FRAME}></iframe>`))
    const player = lookAt(viewer, 'frame')
    await player.shows('ready')
    await viewer.reload()
    await player.shows('ready')
    await player.click('.big-play')
    await player.playsPast(0.5)
    await player.keepPicture(`${name}-frame`)
    expect(await countKeys()).toBe(before)
  })

  sampled('N28: a launch plays in the frame of a course, with what the platform stores', async () => {
    const platform = await startPlatform()
    onTestFinished(() => platform.close())
    const own = await startReelgate({ video: footage.movieHello, env: { REELGATE_OUTBOUND_ALLOW: platform.host } })
    const id = await register(own, platform)
    platform.state.next = ofVideo(own, own.videoId)
    await viewer.goto(courseAddress(own, platform, id, { stores: true }))
    const player = lookAt(viewer, 'frame')
    await player.shows('ready')
    await player.click('.big-play')
    await player.playsPast(0.5)
  })

  sampled('a page of another site plays, seeks and pauses by script, and its listeners are called', async () => {
    const response = await reelgate.owner.call('POST', `/api/videos/${reelgate.videoId}/otp`, { body: SMALLEST })
    const { otp, playbackInfo } = (await response.json()) as { otp: string; playbackInfo: string }
    await viewer.goto(
      school.put(`<script src="${reelgate.url}/v2/api.js"></script>
        <iframe src="${reelgate.url}/v2/?otp=${otp}&playbackInfo=${playbackInfo}" ${FRAME}></iframe>`),
    )
    const report = await viewer.run('page', useVdoPlayer, null)
    expect(report).toMatchObject({ title: 'Hello', wasPaused: true, seekedToS: 4, isPaused: true, isSame: true })
    expect(report.durationS).toBeCloseTo(8.34, 1)
    expect(report.events).toEqual(['loadedmetadata', 'pause', 'play', 'playing', 'seeked', 'timeupdate'])
    const { timeS, paused } = await lookAt(viewer, 'frame').video()
    expect({ timeS, paused }).toEqual({ timeS: report.pausedAtS, paused: true })
  })

  sampled('the element takes the colors of the page around it, and follows when they change', async () => {
    const otp = await reelgate.owner.issueOtp(reelgate.videoId, SMALLEST)
    await viewer.goto(
      school.put(`<style>html { --reelgate-primary-color: rgb(255 0 255) } html.dark { --reelgate-primary-color: yellow }</style>
        <script src="${reelgate.url}/v2/player.js"></script><reelgate-player otp="${otp}"></reelgate-player>`),
    )
    const pixels = async (color: Rgb) => (await findColour(await viewer.screenshot(), color)).pixels
    await expect.poll(() => pixels(MAGENTA)).toBeGreaterThan(1000) // the large play button
    await viewer.run('page', addPageClass, 'dark')
    await expect.poll(() => pixels(YELLOW)).toBeGreaterThan(1000)
    expect(await pixels(MAGENTA)).toBe(0)
  })

  if (name !== 'Chromium') testAudioTracks(() => ({ tab: viewer, reelgate }))
  testPlaying(name, sampled, () => ({ tab: viewer, reelgate }))
  // The driver of WebKitGTK does not find the frame in the element.
  if (name === 'Firefox') testNextLesson(name, sampled, () => ({ tab: viewer, reelgate, putPage: school.put }))
  testOtherPages(name, pages.test, () => ({ tab: viewer, reelgate, putPage: school.put }))
  testUploading(pages.test, () => ({ tab: viewer, reelgate, putPage: school.put }))

  pages.draw()

  // In Chromium in every run, in the engine drawn besides it in every second one.
  if (name === 'Chromium' || sampleOf(`the JavaScript API in ${name}`, [true, false], 1).includes(true))
    testPageApi('Hello', () => ({
      ...{ tab: viewer, url: reelgate.url, newOtp: () => reelgate.owner.issueOtp(reelgate.videoId), putPage: school.put },
    }))

  draw()
}

function readSegmentOrigins(): string[] {
  const segments = performance.getEntriesByType('resource').filter(({ name }) => name.includes('.m4s'))
  return [...new Set(segments.map(({ name }) => new URL(name).origin))]
}
