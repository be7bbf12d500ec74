import { beforeAll, describe, expect, test } from 'vitest'
import { VIDEO_EVENTS } from '../../../web/embed/messages.ts'
import type { Tab } from './engine.ts'
import { readSearch } from './in-page.ts'
import { type ApiUse, useWholeApi } from './page-api-page.ts'

const REFUSED = 'NotAllowedError: This link is not valid. Reload the page you came from to get a new one.'

/** Where the page is opened, and with what; it is asked for when the tests run. */
export type PageApiSetup = {
  tab: Tab
  url: string
  newOtp(): Promise<string>
  /** @returns the address of a page of another origin with this body */
  putPage(body: string): string
}

/** Every call, property and event of the JavaScript API, in a page of another origin (wire-contract.md, section 8). */
export function testPageApi(title: string, location: () => PageApiSetup) {
  describe('every call and event of the API from a page of another origin', () => {
    let use: ApiUse
    let messages: string[]
    let session: string | null

    beforeAll(async () => {
      const { tab, url, newOtp, putPage } = location()
      await tab.goto(
        putPage(`<script>
        window.messages = []
        addEventListener('message', ({ data }) => messages.push(JSON.stringify(data)))
        const { set } = Object.getOwnPropertyDescriptor(MessagePort.prototype, 'onmessage')
        Object.defineProperty(MessagePort.prototype, 'onmessage', {
          set(listener) { set.call(this, (event) => { messages.push(JSON.stringify(event.data)); listener(event) }) } })
        </script>
        <script src="${url}/v2/api.js"></script>
        <iframe src="${url}/v2/?otp=${await newOtp()}" width="640" height="360" allow="encrypted-media; autoplay; fullscreen"></iframe>`),
      )
      use = await tab.run('page', useWholeApi, { otp: await newOtp(), videoEvents: VIDEO_EVENTS })
      messages = await tab.run('page', readMessages, null)
      session = new URLSearchParams(await tab.run('frame', readSearch, null)).get('session')
    })

    test('metadata, captions and qualities are known before the video plays', () => {
      expect(use.metaData).toMatchObject({
        title: title,
        duration: expect.any(Number),
        aspectRatio: expect.closeTo(16 / 9, 1),
      })
      expect(use.beforePlay.captions).toEqual({
        visible: false,
        languages: expect.arrayContaining([
          expect.objectContaining({ lang: 'de', label: expect.any(String), active: false }),
          expect.objectContaining({ lang: 'en', active: false }),
        ]),
      })
      const { adaptive, qualities } = use.beforePlay.qualities
      expect(adaptive).toBe(true)
      expect(qualities.map(({ label }) => label)).toEqual(['720p', '480p', '240p'])
      for (const { height, width, bitrate } of qualities)
        expect([height > 0, width > height, bitrate > 0]).toEqual([true, true, true])
    })

    test.each<[string, (use: ApiUse) => unknown, unknown]>([
      ['totals before', (use) => use.totalsBefore.slice(0, 2), [0, 0]],
      ['what is set is read immediately', (use) => use.setHere, [true, 0.5, true, false]],
      ['play()', (use) => use.playing, 'done'],
      [
        'properties from the frame',
        (use) => use.properties,
        {
          ...{ muted: true, volume: 0.5, loop: true, preservesPitch: false, paused: true, ended: false, seeking: false },
          ...{ playbackRate: 1, defaultPlaybackRate: 1 },
        },
      ],
      ['readyState, networkState, videoWidth, videoHeight', (use) => use.media, [true, true, true, true]],
      ['buffered, played, seekable', (use) => use.ranges, [true, true, true]],
      ['setCaptionLanguage, hideCaptions', (use) => use.captions, ['done', 'de', 'done', false]],
      ['setVideoQuality, enableAdaptiveVideo', (use) => use.qualities, ['done', false, 'done', true]],
      ['updatePlayerConfig', (use) => use.configured, 'done'],
      ['a removed listener', (use) => use.removed, []],
      ['the properties while another video loads', (use) => use.emptied, [0, true, true]],
      ['loadVideo', (use) => [use.loaded, use.titleAgain, use.playedAgain], ['done', title, 'done']],
      ['loadVideo with an OTP that does not play', (use) => use.refusedAgain, REFUSED],
      ['captionLanguageChange', (use) => use.reported.captionLanguageChange?.slice(0, 3), [null, 'de', null]],
      ['captionVisibilityChange', (use) => use.reported.captionVisibilityChange?.slice(0, 3), [false, true, false]],
      ['videoAdaptivenessChange', (use) => use.reported.videoAdaptivenessChange?.slice(0, 3), [true, false, true]],
      ['videoQualityChange', (use) => use.reported.videoQualityChange?.every((id) => typeof id === 'number'), true],
    ])('%s', (_name, read, expected) => {
      expect(read(use)).toEqual(expected)
    })

    test('the totals count what was played', () => {
      const [playedS = 0, coveredS, firstSecond] = use.totals
      expect(playedS).toBeGreaterThan(1.1) // it was paused after 1.2 s
      expect(playedS).toBeLessThan(use.metaData.duration)
      expect(coveredS).toBe(Math.floor(playedS + 0.5))
      expect(firstSecond).toBe(1)
      expect(use.totalsBefore[2]).toBe(Math.ceil(use.metaData.duration))
    })

    test('what cannot be done is refused with its reason', () => {
      expect(use.unusable).toEqual([
        'TypeError',
        'IndexSizeError',
        'RangeError: The video has no quality with this id.',
        'RangeError: The video has no captions in this language.',
        'TypeError: The configuration is not an object.',
        'TypeError: loadVideo needs an otp.',
      ])
    })

    test('statusChange follows the player from loading to the end, and reports that a new OTP is needed', () => {
      const statuses = use.reported.statusChange ?? []
      for (const status of ['ready', 'playing', 'ended', 'otpNeeded']) expect(statuses).toContain(status)
    })

    test('the events of a video that loads, plays, is changed and ends are delivered', () => {
      const exceptional = ['abort', 'error', 'stalled', 'suspend'] // of failures, and of what a browser may do
      expect(VIDEO_EVENTS.filter((name) => !exceptional.includes(name) && !use.events.includes(name))).toEqual([])
    })

    test('no message to the page contains an OTP, the session or an address', () => {
      expect(messages.length).toBeGreaterThan(20)
      expect(
        messages.filter((message) => /otp=|https?:|[A-Za-z0-9]{64}/.test(message) || message.includes(session ?? '-')),
      ).toEqual([])
    })
  })
}

declare const window: { readonly messages: string[] }

const readMessages = (): string[] => window.messages
