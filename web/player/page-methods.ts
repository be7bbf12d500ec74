import type { PlayerMethod } from '../embed/messages.ts'
import type { AudioTrackList, CaptionLanguages, ChapterList, MetaData, VideoQualities } from '../embed/reelgate.d.ts'
import { NO_CAPTIONS } from './captions.ts'
import type { Playback } from './playback.ts'
import { countPlayedSeconds } from './played-seconds.ts'
import { AUTOMATIC } from './stream.ts'
import { readTheme, type Theme } from './theme.ts'

type PageMethodDeps = {
  video: HTMLVideoElement
  /** Undefined until the session is open. */
  playback(): Playback | undefined
  setTheme(changed: Theme): void
  /** Sentences of the page, by their names. */
  setMessages(messages: Readonly<Record<string, unknown>>): void
  /** Resolves when the session is open. @throws DOMException with the sentence that the viewer reads instead of the video */
  opened(): Promise<{ metaData: MetaData; playback: Playback }>
  /** Never resolves. @throws as `opened` does */
  refused(): Promise<never>
  /** Resolves when its qualities and captions are known. @throws as `opened` does */
  openedStream(): Promise<Playback['stream']>
  /** Resolves when the viewer can play. @throws as `opened` does */
  untilReady(): Promise<void>
}

type PageMethods = Record<PlayerMethod, (argument: unknown) => unknown>

/** What a page may call; arguments are whatever it sends. */
export function createPageMethods(deps: PageMethodDeps): PageMethods {
  const { video, opened, openedStream } = deps
  const playedSeconds = countPlayedSeconds(video)

  async function readCounts(): Promise<number[]> {
    const { metaData } = await opened()
    return playedSeconds.counts(metaData.duration)
  }

  return {
    play: () => Promise.race([play(deps), deps.refused()]),
    pause: () => (deps.playback() ?? video).pause(),
    untilReady: deps.untilReady,
    getMetaData: async () => (await opened()).metaData,
    getTotalPlayed: () => playedSeconds.totalS(),
    getTotalCovered: async () => (await readCounts()).filter((count) => count > 0).length,
    getTotalCoveredArray: readCounts,
    async getCaptionLanguages(): Promise<CaptionLanguages> {
      const { captions } = await openedStream()
      const chosen = captions.chosen()
      const languages = captions
        .list()
        .map(({ index: id, label, language: lang }) => ({ id, lang, label, active: id === chosen }))
      return { visible: chosen !== NO_CAPTIONS, languages }
    },
    async setCaptionLanguage(requested) {
      const { captions } = await openedStream()
      const id = isObject(requested) ? requested.id : undefined
      const found = captions.list().find(({ index, language }) => index === id || language === requested)
      if (!found) throw new RangeError('The video has no captions in this language.')
      captions.choose(found.index)
    },
    hideCaptions: async () => (await openedStream()).captions.choose(NO_CAPTIONS),
    async getAudioTracks(): Promise<AudioTrackList> {
      const { audio } = await openedStream()
      const chosen = audio.chosen()
      return audio.list().map(({ index: id, label, language: lang }) => ({ id, lang, label, active: id === chosen }))
    },
    async setAudioTrack(requested) {
      const { audio } = await openedStream()
      const id = isObject(requested) ? requested.id : undefined
      const found = audio.list().find(({ index, language }) => index === id || language === requested)
      if (!found) throw new RangeError('The video has no such audio track.')
      audio.choose(found.index)
    },
    async setTranscript(isShown) {
      const { captions } = await openedStream()
      if (isShown && captions.list().length === 0) throw new RangeError('The video has no captions.')
      await (await opened()).playback.showTranscript(Boolean(isShown))
    },
    async getVideoQualities(): Promise<VideoQualities> {
      const stream = await openedStream()
      const shown = stream.shownQuality()?.index
      const qualities = stream.qualities().map(({ index: id, label, widthPx: width, heightPx: height, bitrateBps: bitrate }) => {
        return { id, label, width, height, bitrate, active: id === shown }
      })
      return { adaptive: stream.chosenQuality() === AUTOMATIC, qualities }
    },
    async setVideoQuality(id) {
      const stream = await openedStream()
      const found = stream.qualities().find(({ index }) => index === id)
      if (!found) throw new RangeError('The video has no quality with this id.')
      stream.chooseQuality(found.index)
    },
    async getChapters(): Promise<ChapterList> {
      const { playback } = await opened()
      return playback.chapters.map((chapter) => ({ ...chapter, active: chapter === playback.currentChapter() }))
    },
    enableAdaptiveVideo: async () => (await openedStream()).chooseQuality(AUTOMATIC),
    async updatePlayerConfig(config) {
      if (!isObject(config)) throw new TypeError('The configuration is not an object.')
      deps.setTheme(readTheme(config)) // also of a player that refuses
      const { messages, playbackSpeedOptions } = config
      if (isObject(messages)) deps.setMessages(messages)
      if (playbackSpeedOptions !== undefined) (await opened()).playback.offerRates(readRates(playbackSpeedOptions))
    },
  }
}

async function play({ video, playback }: Pick<PageMethodDeps, 'video' | 'playback'>): Promise<void> {
  const waits = () => playback()?.playWhenDrawn()
  try {
    if (!waits()) return await video.play()
  } catch (error) {
    // WebKit rejects a call that precedes the stream, though the video plays as soon as it is there.
    if (!video.paused) return video.play()
    if (!waits()) throw error
  }
  await new Promise((resolve) => video.addEventListener('playing', resolve, { once: true }))
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

function readRates(rates: unknown): number[] {
  return Array.isArray(rates) ? rates.filter((rate) => typeof rate === 'number' && rate >= 0.25 && rate <= 4) : []
}
