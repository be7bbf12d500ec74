import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect } from 'vitest'
import { untilFinished } from '../data-folder.ts'
import { startSharedReelgate } from '../in-process.ts'
import { audioOf, makeDub } from '../pipeline/dubs.ts'
import { sampledTests } from '../sample.ts'
import { keepVideo, makeVideo } from '../videos.ts'
import { startChromiumWithFrameStorage } from './chromium.ts'
import { readState } from './in-page.ts'
import { openPlayer, openTab, type Player, playerAddress } from './player.ts'
import { startSite } from './site.ts'
import { COMMENTARY, ENGLISH, GERMAN, judgeSwitch, makeLanguages, readTone, recordTones, TONES } from './tones.ts'

// A video in two languages and with a commentary, as viewers choose among them. Each track is a tone.

let reelgate: Awaited<ReturnType<typeof startSharedReelgate>>
let chromium: Browser
const site = startSite()

const { test, draw } = sampledTests('choosing audio tracks', 2)

beforeAll(async () => {
  reelgate = await startSharedReelgate({ video: await makeLanguages(), title: 'Languages' })
  await untilFinished(reelgate, reelgate.videoId)
  chromium = await startChromiumWithFrameStorage()
})

afterAll(async () => {
  await chromium?.close()
  await reelgate?.remove()
  site.close()
})

async function watch(viewport = { width: 854, height: 480 }, from?: Player, videoId = reelgate.videoId): Promise<Player> {
  const otp = await reelgate.owner.issueOtp(videoId)
  const context = from?.page.context() ?? (await chromium.newContext({ viewport }))
  const player = await openPlayer(context, playerAddress(reelgate.url, otp))
  await player.shows('ready')
  return player
}

const toneNow = ({ frame }: Player) => frame.evaluate(readTone)
/** But for the tests' own: browsers without it need a file of its own for what records the sound. */
const complaintsOf = ({ complaints }: Player) => complaints.filter((text) => !text.includes('ScriptProcessorNode'))

async function audioChoices(player: Player): Promise<string[]> {
  await player.openSettings()
  await player.openChoices('Audio')
  const labels = await player.frame.getByRole('group', { name: 'Audio' }).getByRole('menuitemradio').allTextContents()
  for (const menu = player.frame.locator('.settings'); await menu.isVisible(); ) await player.page.keyboard.press('Escape')
  return labels
}
const HZ = TONES.map(({ hz }) => hz)

async function startListening(player: Player) {
  await player.play()
  await player.playsPast(0.3)
  await player.frame.evaluate(recordTones, HZ)
}

/** Where there is a picture, it is the first rendition. */
const [PICTURE, NO_PICTURE] = [1, 0]

/** Chooses the next track by its key, and waits until a second of it was audible. */
async function switchTo(player: Player, tone: number, pictureId = PICTURE) {
  await player.page.keyboard.press('a')
  await expect.poll(() => toneNow(player)).toBe(tone)
  await player.playsPast((await player.video()).timeS + 1)
  const { gapS, wrongS, loadedS } = await player.frame.evaluate(judgeSwitch, { to: tone, pictureId })
  expect(loadedS).toBeGreaterThan(0)
  expect(gapS).toBeLessThan(0.25)
  expect(wrongS - loadedS).toBeLessThan(1)
}

test('T-05: another audio track is audible within a second of its key, without a gap, and remembered by its language', async () => {
  const player = await watch()
  await startListening(player)
  await expect.poll(() => toneNow(player)).toBe(ENGLISH)
  for (const [tone, name] of [
    [GERMAN, 'Deutsch'],
    [COMMENTARY, 'Commentary'],
    [ENGLISH, 'English'],
    [GERMAN, 'Deutsch'],
  ] as const) {
    await switchTo(player, tone)
    expect(await player.frame.locator('.sign').textContent()).toMatch(new RegExp(`^(Audio: ${name})?$`))
  }
  expect(complaintsOf(player)).toEqual([])
  const next = await watch(undefined, player)
  await startListening(next)
  await expect.poll(() => toneNow(next)).toBe(GERMAN)
})

test.each([1440, 390, 320])('T-05: the menu lists the audio tracks and marks the chosen one, %i pixels wide', async (width) => {
  const player = await watch({ width, height: Math.round((width * 9) / 16) })
  await startListening(player)
  await player.page.keyboard.press('k')
  await player.openSettings()
  await player.keepPicture(`audio-${width}-settings`)
  await player.openChoices('Audio')
  await player.keepPicture(`audio-${width}`)
  const choices = player.frame.getByRole('group', { name: 'Audio' }).getByRole('menuitemradio')
  expect(await choices.allTextContents()).toEqual(['English', 'Deutsch', 'Commentary'])
  expect(await choices.first().getAttribute('aria-checked')).toBe('true')
  await choices.nth(1).click()
  expect(await choices.nth(1).getAttribute('aria-checked')).toBe('true')
  for (const menu = player.frame.locator('.settings'); await menu.isVisible(); ) await player.page.keyboard.press('Escape')
  await player.page.keyboard.press('k')
  await expect.poll(() => toneNow(player)).toBe(GERMAN)
  expect(complaintsOf(player)).toEqual([])
})

test('T-05: a page reads and changes the audio track, and is notified; a video with one has one', async () => {
  const otp = await reelgate.owner.issueOtp(reelgate.videoId)
  const html = `<script src="${reelgate.url}/v2/api.js"></script><iframe src="${playerAddress(reelgate.url, otp)}" width="560" height="315" allow="encrypted-media; autoplay; fullscreen"></iframe>`
  const page = await openTab(await chromium.newContext())
  await page.goto(site.put(html))
  const read = await page.evaluate(useAudioTracks, null)
  expect(read).toEqual({
    before: [
      { id: 0, lang: 'en', label: 'English', active: true },
      { id: 1, lang: 'de', label: 'Deutsch', active: false },
      { id: 2, lang: 'en', label: 'Commentary', active: false },
    ],
    active: ['Deutsch', 'Commentary'],
    unknown: 'RangeError',
    changes: [0, 1, 2],
  })
})

test('T-05: of sound alone the track is changed in mid-play, too', async () => {
  const videoId = await reelgate.owner.upload('Talk', await makeLanguages(TONES.slice(0, 2), 20, false))
  await untilFinished(reelgate, videoId)
  const player = await watch(undefined, undefined, videoId)
  await startListening(player)
  await expect.poll(() => toneNow(player)).toBe(ENGLISH)
  for (const tone of [GERMAN, ENGLISH]) {
    await switchTo(player, tone, NO_PICTURE)
  }
  expect(complaintsOf(player)).toEqual([])
})

test('T-17, T-25: an audio track that was added is audible within a second of its choice, without a gap; removed, the default one plays on, also for who has the page open', async () => {
  const videoId = await reelgate.owner.upload('With a dub', await makeLanguages(TONES.slice(0, 2), 40))
  await untilFinished(reelgate, videoId)
  const audio = audioOf({ owner: reelgate.owner, videoId })
  const sound = ['-f', 'lavfi', '-i', `aevalsrc=0.2*sin(2*PI*${HZ[COMMENTARY]}*t):s=48000:d=40`, '-c:a', 'aac']
  const file = await keepVideo(sound.join(' '), '.m4a', (made) =>
    promisify(execFile)('ffmpeg', ['-nostdin', '-v', 'error', ...sound, '-y', made]),
  )
  const id = await audio.add(file, 'language=fr')
  await audio.until(id, 'ready')
  const player = await watch(undefined, undefined, videoId)
  await startListening(player)
  await expect.poll(() => toneNow(player)).toBe(ENGLISH)
  await player.page.keyboard.press('a')
  await expect.poll(() => toneNow(player)).toBe(GERMAN)
  await switchTo(player, COMMENTARY)
  expect(complaintsOf(player)).toEqual([])
  const other = await watch(undefined, undefined, videoId)
  await startListening(other)
  expect((await audio.remove(id)).status).toBe(200)

  // Beyond what is loaded of it, the default one plays.
  await player.seekNear(32)
  await expect.poll(() => toneNow(player)).toBe(ENGLISH)
  await player.playsPast(34)
  expect(await audioChoices(player)).toEqual(['English', 'Deutsch'])
  // A page that still lists it plays on, and lists it no more.
  await other.chooseSetting('Audio', 'Français')
  await expect.poll(() => audioChoices(other)).toEqual(['English', 'Deutsch'])
  expect(await toneNow(other)).toBe(ENGLISH)
  await other.playsPast((await other.video()).timeS + 1)
  const next = await watch(undefined, player, videoId)
  await startListening(next)
  await expect.poll(() => toneNow(next)).toBe(ENGLISH)
  expect(complaintsOf(next)).toEqual([])
})

test('T-25: a video whose only audio track was added plays on without sound when that is removed', async () => {
  const videoId = await reelgate.owner.upload('Silent', await makeVideo({ audioTrack: false, seconds: 40 }))
  await untilFinished(reelgate, videoId)
  const audio = audioOf({ owner: reelgate.owner, videoId })
  const id = await audio.add(await makeDub({ fromS: 0, toS: 40, seconds: 40 }))
  await audio.until(id, 'ready')
  const player = await watch(undefined, undefined, videoId)
  await player.play()
  await player.playsPast(0.3)
  expect((await audio.remove(id)).status).toBe(200)
  await player.seekNear(32)
  await player.playsPast(33)
  expect(await player.frame.evaluate(readState)).toMatchObject({ state: 'playing' })
})

draw()

// What follows runs in the page, so it uses nothing of this module.

type Track = { id: number; lang: string; label: string; active: boolean }
declare const document: { querySelector(name: 'iframe'): unknown }
declare const VdoPlayer: new (
  frame: unknown,
) => {
  api: {
    addEventListener(name: 'audioTrackChange', listener: (id: number) => void): void
    getAudioTracks(): Promise<Track[]>
    setAudioTrack(track: string | { id: number }): Promise<void>
  }
}

async function useAudioTracks() {
  const { api } = new VdoPlayer(document.querySelector('iframe'))
  const changes: number[] = []
  api.addEventListener('audioTrackChange', (id) => changes.push(id))
  const before = await api.getAudioTracks()
  const activeAfter = async (track: string | { id: number }) => {
    await api.setAudioTrack(track)
    return (await api.getAudioTracks()).find(({ active }) => active)?.label
  }
  const active = [await activeAfter('de'), await activeAfter(before[2] ?? '')]
  const unknown = await api.setAudioTrack('tlh').catch(({ name }) => name)
  return { before, active, unknown, changes }
}
