// What a page of another site does with the player's API, in every engine: its browser gets the function as text, so it uses nothing of
// this module, and what it returns is JSON.

type Listener = (event: { type: string }) => void
type Ranges = { readonly length: number; start(at: number): number; end(at: number): number }
type Quality = { id: number; label: string; width: number; height: number; bitrate: number; active: boolean }
type Language = { id: number; lang: string; label: string; active: boolean }
type Settable = {
  currentTime: number
  volume: number
  muted: boolean
  loop: boolean
  playbackRate: number
  preservesPitch: boolean
}
type Player = {
  readonly video: Settable & {
    readonly [name: string]: unknown
    readonly duration: number
    readonly paused: boolean
    readonly buffered: Ranges
    readonly played: Ranges
    readonly seekable: Ranges
    play(): Promise<void>
    pause(): Promise<void>
    fastSeek(seconds: number): Promise<void>
    addEventListener(name: string, listener: Listener): void
    removeEventListener(name: string, listener: Listener): void
  }
  readonly api: {
    getMetaData(): Promise<{ title: string; duration: number; aspectRatio: number }>
    getTotalPlayed(): Promise<number>
    getTotalCovered(): Promise<number>
    getTotalCoveredArray(): Promise<number[]>
    getCaptionLanguages(): Promise<{ visible: boolean; languages: Language[] }>
    setCaptionLanguage(language: string | Language): Promise<void>
    hideCaptions(): Promise<void>
    getVideoQualities(): Promise<{ adaptive: boolean; qualities: Quality[] }>
    setVideoQuality(id: number): Promise<void>
    enableAdaptiveVideo(): Promise<void>
    setFullscreen(fullscreen: boolean): Promise<boolean>
    loadVideo(video: { otp?: string; playbackInfo?: string }): Promise<void>
    updatePlayerConfig(config: unknown): Promise<void>
    addEventListener(name: string, listener: (value: unknown) => void): () => void
    removeEventListener(name: string, listener: (value: unknown) => void): void
  }
}
declare const document: { querySelector(name: 'iframe'): object }
declare const VdoPlayer: { getInstance(frame: object): Player }

export type ApiUse = Awaited<ReturnType<typeof useWholeApi>>

/** Makes every call and listens to every event. @param otp a second one of the same account */
export async function useWholeApi({ otp, videoEvents }: { otp: string; videoEvents: readonly string[] }) {
  const player = VdoPlayer.getInstance(document.querySelector('iframe'))
  const { video, api } = player
  const outcome = (call: Promise<unknown>) =>
    call.then(
      (value) => (value === undefined ? 'done' : value),
      (error: Error) => `${error.name}: ${error.message}`,
    )
  const thrown = (run: () => unknown) => {
    try {
      return String(run())
    } catch (error) {
      return (error as Error).name
    }
  }
  const received = new Set<string>()
  for (const name of videoEvents) video.addEventListener(name, ({ type }) => received.add(type))
  const reported: Record<string, unknown[]> = {}
  for (const name of [
    'videoAdaptivenessChange',
    'videoQualityChange',
    'statusChange',
    'captionVisibilityChange',
    'captionLanguageChange',
  ])
    api.addEventListener(name, (value) => {
      reported[name] = [...(reported[name] ?? []), value]
    })
  const until = async (name: string, isReached: () => boolean) => {
    while (!isReached()) await new Promise<void>((resolve) => video.addEventListener(name, () => resolve()))
  }

  const metaData = await api.getMetaData()
  const beforePlay = { captions: await api.getCaptionLanguages(), qualities: await api.getVideoQualities() }
  const totalsBefore = [await api.getTotalPlayed(), await api.getTotalCovered(), (await api.getTotalCoveredArray()).length]
  const unusable = [
    thrown(() => api.addEventListener('load', () => {})),
    thrown(() => video.buffered.start(5)),
    await outcome(api.setVideoQuality(99)),
    await outcome(api.setCaptionLanguage('tlh')),
    await outcome(api.updatePlayerConfig(7)),
    await outcome(api.loadVideo({})),
  ]

  video.muted = true
  video.volume = 0.5
  video.loop = true
  video.preservesPitch = false
  const setHere = [video.muted, video.volume, video.loop, video.preservesPitch]
  const playing = await outcome(video.play())
  await until('timeupdate', () => video.currentTime > 1.2)
  await video.pause()
  const properties = Object.fromEntries(
    ['muted', 'volume', 'loop', 'preservesPitch', 'paused', 'ended', 'seeking', 'playbackRate', 'defaultPlaybackRate'].map(
      (name) => [name, video[name]],
    ),
  )
  const media = ['readyState', 'networkState', 'videoWidth', 'videoHeight'].map((name) => Number(video[name]) > 0)
  const ranges = [video.buffered, video.played, video.seekable].map((range) => range.length > 0 && range.end(0) > range.start(0))
  const totals = [await api.getTotalPlayed(), await api.getTotalCovered(), (await api.getTotalCoveredArray())[0]]

  const captions: unknown[] = [await outcome(api.setCaptionLanguage('de'))]
  captions.push((await api.getCaptionLanguages()).languages.find(({ active }) => active)?.lang)
  captions.push(await outcome(api.hideCaptions()), (await api.getCaptionLanguages()).visible)
  const lowest = beforePlay.qualities.qualities.at(-1)
  const qualities: unknown[] = [await outcome(api.setVideoQuality(lowest?.id ?? -1)), (await api.getVideoQualities()).adaptive]
  qualities.push(await outcome(api.enableAdaptiveVideo()), (await api.getVideoQualities()).adaptive)
  const configured = await outcome(api.updatePlayerConfig({ primaryColor: 'ff8800', playbackSpeedOptions: [0.5, 1, 2] }))

  video.loop = false
  video.playbackRate = 2
  await video.fastSeek(metaData.duration - 1)
  await video.play()
  await until('ended', () => video.ended === true)
  // A listener also gets the current status.
  await new Promise<void>((resolve) => api.addEventListener('statusChange', (status) => status === 'ended' && resolve()))
  const removed: string[] = []
  const listener = () => removed.push('received')
  video.addEventListener('volumechange', listener)
  video.removeEventListener('volumechange', listener)
  const cancel = api.addEventListener('statusChange', listener)
  cancel()

  const loading = outcome(api.loadVideo({ otp }))
  const emptied = [video.currentTime, video.paused, Number.isNaN(video.duration)]
  const loaded = await loading
  const titleAgain = (await api.getMetaData()).title
  const playedAgain = await outcome(video.play())
  await until('timeupdate', () => video.currentTime > 0.3 && video.currentTime < 5)
  const refusedAgain = await outcome(api.loadVideo({ otp: 'x'.repeat(64) }))
  await api.loadVideo({ otp }).catch(() => {}) // the browser that redeemed it opens its session again
  return {
    ...{ metaData, beforePlay, totalsBefore, unusable, setHere, playing, properties, media, ranges, totals, captions, qualities },
    ...{ configured, removed, emptied, loaded, titleAgain, playedAgain, refusedAgain, reported, events: [...received].sort() },
  }
}
