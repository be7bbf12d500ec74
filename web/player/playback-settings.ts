import { NO_CAPTIONS } from './captions.ts'
import { selectRates } from './keyboard.ts'
import { message } from './language.ts'
import { readSettings, rememberSettings } from './memory.ts'
import type { Action, Setting, SettingsPage } from './settings.ts'
import type { Settings } from './settings-button.ts'
import { AUTOMATIC, type Stream } from './stream.ts'

const MIN_RATE = 0.25

/** What the viewer chooses while a video plays, and what this browser remembers of it. */
export type PlaybackSettings = {
  /** Speeds on offer to this viewer, ascending. */
  readonly rates: readonly number[]
  /** Other speeds, for the page around the player; none: the usual ones. */
  offerRates(rates: readonly number[]): void
  chooseRate(rate: number): void
  /** As `chooseRate`, for this video alone. */
  useRate(rate: number): void
  /** While a key is held back for pace, playing no faster than keys come hides the wait. */
  setMaxRate(rate: number): void
  toggleCaptions(): void
  chooseAudio(index: number): void
  /** Shows the menu as things are now. */
  show(): void
}

type SettingsDeps = {
  menu: Settings
  loadCaptionStyle(): Promise<SettingsPage>
  /** What else the menu has, below the settings. */
  actions(): readonly Action[]
}

/** @param maxSpeed the most that the server's pace allows */
export function createPlaybackSettings(
  { menu, loadCaptionStyle, actions }: SettingsDeps,
  stream: Stream,
  video: HTMLVideoElement,
  maxSpeed: number,
): PlaybackSettings {
  let rates = selectRates(maxSpeed)
  let chosenRate = rates.find((rate) => rate === readSettings().rate) ?? 1
  let maxRate = Number.POSITIVE_INFINITY
  useRate(chosenRate)

  return {
    get rates() {
      return rates
    },
    offerRates(requested) {
      rates = selectRates(maxSpeed, requested.length > 0 ? requested : undefined)
      show()
    },
    chooseRate,
    useRate: (rate) => useRate(Math.min(Math.max(rate, MIN_RATE), Math.max(1, maxSpeed))),
    setMaxRate(rate) {
      maxRate = rate
      applyRate()
    },
    toggleCaptions() {
      stream.captions.toggle()
      rememberCaptions()
    },
    chooseAudio,
    show,
  }

  function chooseRate(rate: number) {
    rememberSettings({ rate })
    useRate(rate)
  }

  function useRate(rate: number) {
    chosenRate = rate
    video.defaultPlaybackRate = rate
    applyRate()
    show()
  }

  function applyRate() {
    const rate = Math.max(MIN_RATE, Math.min(chosenRate, maxRate))
    if (video.playbackRate !== rate) video.playbackRate = rate
  }

  function rememberCaptions() {
    rememberSettings({ captions: stream.captions.language() ?? '' })
  }

  function chooseAudio(index: number) {
    stream.audio.choose(index)
    const language = stream.audio.list().find((track) => track.index === index)?.language
    if (language) rememberSettings({ audio: language })
  }

  function show() {
    const settings = [qualitySetting(stream), speedSetting(), audioSetting(), captionsSetting()]
    menu.show({ settings, actions: actions() })
  }

  function audioSetting(): Setting {
    return {
      name: message('audio'),
      choices: stream.audio.list().map(({ index, label }) => ({ value: index, label })),
      chosen: stream.audio.chosen(),
      choose: chooseAudio,
    }
  }

  function speedSetting(): Setting {
    return {
      name: message('speed'),
      choices: rates.map((rate) => ({ value: rate, label: rate === 1 ? message('normal-speed') : `${rate} ×` })),
      chosen: chosenRate,
      choose: chooseRate,
    }
  }

  function captionsSetting(): Setting {
    const captions = stream.captions.list().map(({ index, label }) => ({ value: index, label }))
    return {
      name: message('captions'),
      choices: captions.length === 0 ? [] : [{ value: NO_CAPTIONS, label: message('captions.none') }, ...captions],
      chosen: stream.captions.chosen(),
      choose(index) {
        stream.captions.choose(index)
        rememberCaptions()
      },
      page: { title: message('caption-style'), load: loadCaptionStyle },
    }
  }
}

function qualitySetting(stream: Stream): Setting {
  const shown = stream.shownQuality()
  const qualities = stream.qualities().map(({ index, label }) => ({ value: index, label }))
  const automatic = { value: AUTOMATIC, label: shown ? message('automatic-now', { quality: shown.label }) : message('automatic') }
  return {
    name: message('quality'),
    choices: qualities.length < 2 ? [] : [automatic, ...qualities],
    chosen: stream.chosenQuality(),
    choose: (index) => stream.chooseQuality(index),
  }
}
