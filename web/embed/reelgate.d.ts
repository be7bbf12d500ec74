// Types of `/v2/api.js`, `/v2/player.js` and `/v2/uploader.js`, for your pages. Keep a copy next to your own sources: it declares the global
// `VdoPlayer` and the elements <reelgate-player> and <reelgate-uploader>, and exports its types. https://YOUR_SERVER/v2/reelgate.d.ts is the one of your server.

/** What the viewer sees. `playing` includes a paused video, `waiting` ends by itself; `otpNeeded`: refused, and a new OTP helps; `refused`: none helps. */
export type PlayerStatus = 'loading' | 'ready' | 'playing' | 'ended' | 'waiting' | 'otpNeeded' | 'refused'

/** `duration` in seconds, `aspectRatio` width ÷ height. */
export type MetaData = { title: string; duration: number; aspectRatio: number }

/** `adaptive`: the player chooses. `active`: on the screen now. `bitrate` in bit/s. */
export type VideoQualities = {
  adaptive: boolean
  qualities: { id: number; label: string; width: number; height: number; bitrate: number; active: boolean }[]
}

/** `lang`: empty where it is not known. `active`: the one that plays. Empty: a silent video, or one of sound alone with a single track. */
export type AudioTrackList = { id: number; lang: string; label: string; active: boolean }[]

/** `active`: chosen, and shown if `visible`. */
export type CaptionLanguages = {
  visible: boolean
  languages: { id: number; lang: string; label: string; active: boolean }[]
}

/** `startTime` in seconds; a chapter ends where the next one begins. */
export type Chapter = { startTime: number; title: string }

/** In the order of the video. `active`: the one that plays. */
export type ChapterList = (Chapter & { active: boolean })[]

/** How the player looks, as far as the page decides. */
export type ThemeOption = 'primaryColor' | 'surfaceColor' | 'borderRadius' | 'fontFamily'

/**
 * `playbackSpeedOptions`: the speeds that the viewer may choose from, such as `[0.75, 1, 1.5]`. `messages`: sentences in place of the player's
 * own, by their names, such as `{ 'watch-again': 'Once more' }`.
 */
export type PlayerConfig = { playbackSpeedOptions?: number[]; messages?: { [name: string]: string } } & {
  [Option in ThemeOption]?: string
}

/** Events of `api`, each with what its listeners get. */
export type ApiEvents = {
  fullscreenChange: boolean
  videoAdaptivenessChange: boolean
  /** The `id` of the quality on the screen. */
  videoQualityChange: number
  statusChange: PlayerStatus
  captionVisibilityChange: boolean
  /** null: no captions show. */
  captionLanguageChange: string | null
  /** null: the first chapter has not begun. Never of a video without chapters. */
  chapterchange: Chapter | null
  /** The `id` of the audio track that plays. Never of a video with fewer than two. */
  audioTrackChange: number
  /** The id of the lesson that the viewer asks for on the card of `next`: load it with `loadVideo` and an OTP. */
  nextLesson: string
}

/** Events of `video`: those of a video element. */
export type VideoEventName =
  | ('loadstart' | 'progress' | 'suspend' | 'abort' | 'error' | 'emptied' | 'stalled')
  | ('loadedmetadata' | 'loadeddata' | 'canplay' | 'canplaythrough' | 'playing' | 'waiting')
  | ('seeking' | 'seeked' | 'ended' | 'durationchange' | 'timeupdate' | 'play' | 'pause' | 'ratechange')
  | ('resize' | 'volumechange')

/** The frame's video element, as the player last reported it; what is set can be read immediately. */
export interface PlayerVideo {
  currentTime: number
  muted: boolean
  volume: number
  playbackRate: number
  defaultPlaybackRate: number
  preservesPitch: boolean
  loop: boolean
  readonly duration: number
  readonly paused: boolean
  readonly ended: boolean
  readonly seeking: boolean
  readonly readyState: number
  readonly networkState: number
  readonly videoWidth: number
  readonly videoHeight: number
  readonly error: { code: number; message: string } | null
  readonly buffered: TimeRanges
  readonly played: TimeRanges
  readonly seekable: TimeRanges
  /** @throws DOMException `NotAllowedError` if the viewer may not watch, or the browser wants a click first */
  play(): Promise<void>
  pause(): Promise<void>
  fastSeek(seconds: number): Promise<void>
  /** A loading event that has happened is delivered to a listener that comes after it. */
  addEventListener(name: VideoEventName, listener: (event: Event) => void, options?: AddEventListenerOptions | boolean): void
  removeEventListener(name: VideoEventName, listener: (event: Event) => void, options?: EventListenerOptions | boolean): void
}

/** What a page can do with a player that a video element cannot. Every call rejects with a `NotAllowedError` if the viewer may not watch. */
export interface PlayerApi {
  getMetaData(): Promise<MetaData>
  /** Seconds of video that were played, repeated ones each time. */
  getTotalPlayed(): Promise<number>
  /** Different seconds of video that were played. */
  getTotalCovered(): Promise<number>
  /** For each second of the video, how many times it was played. */
  getTotalCoveredArray(): Promise<number[]>
  getCaptionLanguages(): Promise<CaptionLanguages>
  /** @param language such as `de`, or an element of `languages`. @throws RangeError for one that the video does not have */
  setCaptionLanguage(language: string | { id: number }): Promise<void>
  hideCaptions(): Promise<void>
  getAudioTracks(): Promise<AudioTrackList>
  /** @param track such as `de`, or an element of `getAudioTracks`. @throws RangeError for one that the video does not have */
  setAudioTrack(track: string | { id: number }): Promise<void>
  /** Shows the captions' text next to the picture, or over it. @throws RangeError for a video without captions */
  setTranscript(shown: boolean): Promise<void>
  getVideoQualities(): Promise<VideoQualities>
  /** @throws RangeError for an `id` that is none of `qualities` */
  setVideoQuality(id: number): Promise<void>
  enableAdaptiveVideo(): Promise<void>
  /** Empty: the video has none. */
  getChapters(): Promise<ChapterList>
  /**
   * @returns whether the player is now in full screen
   * @throws DOMException `NotAllowedError` without a click or key press in the page just before
   */
  setFullscreen(fullscreen: boolean): Promise<boolean>
  /** Replaces the video in this frame. Resolves when the new one can be played. @throws TypeError without an OTP */
  loadVideo(video: { otp: string; playbackInfo?: string }): Promise<void>
  /** Changes what `config` contains. An empty text: the player's own color, radius or font. */
  updatePlayerConfig(config: PlayerConfig): Promise<void>
  /**
   * A listener of `statusChange` also gets the status at that time.
   * @returns a function that removes the listener
   * @throws TypeError for a name that is no event
   */
  addEventListener<Name extends keyof ApiEvents>(name: Name, listener: (value: ApiEvents[Name]) => void): () => void
  removeEventListener<Name extends keyof ApiEvents>(name: Name, listener: (value: ApiEvents[Name]) => void): void
}

/** A page's hold on the player in one of its frames. Calls that are made before the frame has loaded wait for it. */
export interface VdoPlayer {
  readonly video: PlayerVideo
  readonly api: PlayerApi
  /** Resolves to this player when the frame has answered. */
  readonly ready: Promise<VdoPlayer>
  /** Ends the connection of a frame that was removed: open calls are rejected. */
  close(): void
}

export interface VdoPlayerConstructor {
  /** @throws TypeError for an element that is no frame and holds none; Error for one that has its player already */
  new (element: Element): VdoPlayer
  /** The player of a frame or of a <reelgate-player>. @throws TypeError for an element that is no frame and holds none */
  getInstance(element: Element): VdoPlayer
}

/** Attributes of <reelgate-player> besides those of every element. */
export type ReelgatePlayerAttributes = {
  /** One-time password. A new value loads its video in the same player. */
  otp?: string
  playbackInfo?: string
  autoplay?: boolean | 'true' | 'false'
  loop?: boolean | 'true' | 'false'
  litemode?: boolean | 'true' | 'false'
  controls?: 'on' | 'off' | 'native'
  ccLanguage?: string
  /** The player's language, such as `pt-BR`; without it the page's, else the browser's. */
  lang?: string
  /** Where to start, in seconds. */
  t?: number | string
  /** `off`: no title in the player. */
  title?: string
  /** `on`: the transcript is open from the start, of a video with captions. */
  transcript?: string
  /** Ids of lessons in their order: near the end of one a card offers the one after it, with the event `nextLesson`. */
  next?: string
} & { [Option in ThemeOption]?: string }

type VideoEventMap = { [Name in VideoEventName]: Event }
type ApiEventMap = { [Name in keyof ApiEvents]: CustomEvent<ApiEvents[Name]> }
/** Events of <reelgate-player>; those of `api` have their value in `detail`. */
export interface ReelgatePlayerEventMap extends VideoEventMap, ApiEventMap {}

export interface ReelgatePlayerElement extends HTMLElement {
  /** Resolves when the player in it has answered, so never without the attribute `otp`. */
  getPlayer(): Promise<VdoPlayer>
  addEventListener<Name extends keyof ReelgatePlayerEventMap>(
    name: Name,
    listener: (event: ReelgatePlayerEventMap[Name]) => void,
    options?: AddEventListenerOptions | boolean,
  ): void
  addEventListener(name: string, listener: EventListenerOrEventListenerObject, options?: AddEventListenerOptions | boolean): void
  removeEventListener<Name extends keyof ReelgatePlayerEventMap>(
    name: Name,
    listener: (event: ReelgatePlayerEventMap[Name]) => void,
    options?: EventListenerOptions | boolean,
  ): void
  removeEventListener(name: string, listener: EventListenerOrEventListenerObject, options?: EventListenerOptions | boolean): void
}

/**
 * Of a file in a <reelgate-uploader>. `waiting`: for its turn, or for a token. `retrying`: the connection was lost, and it is tried again by
 * itself. `checking`: it was just added.
 */
export type UploadState = 'checking' | 'waiting' | 'sending' | 'retrying' | 'paused' | 'sent' | 'failed'

/** `videoId`: once the upload exists. `problem`: why it has failed, or is tried again. */
export type UploaderFile = {
  readonly file: File
  readonly state: UploadState
  readonly sentBytes: number
  readonly videoId: string | undefined
  readonly problem: string | undefined
}

/** What the element says, whole sentences with places for `{name}`, `{size}`, `{percent}` and `{problem}`. */
export type UploaderTexts = {
  [Name in
    | ('choose' | 'chooseSeveral' | 'drop' | 'dropSeveral' | 'list')
    | (UploadState | 'stalled')
    | ('sentAnnouncement' | 'failedAnnouncement' | 'retryingAnnouncement')
    | ('pause' | 'resume' | 'retry' | 'cancel' | 'remove')]: string
}

/** Attributes of <reelgate-uploader> besides those of every element. */
export type ReelgateUploaderAttributes = {
  /** What `POST /api/upload-tokens` returned. A new one continues what waited for it. */
  token?: string
  /** Reelgate's address, where the script is not loaded from it. */
  server?: string
  /** Several files may be chosen. */
  multiple?: boolean
  /** As of a file input; videos if absent. */
  accept?: string
}

/** Events of <reelgate-uploader>. `status`: of the answer; 0: there was none. */
export interface UploaderEventMap {
  /** The upload exists, or was found again. */
  uploadstart: CustomEvent<UploaderFile>
  /** Anything of a file has changed. */
  uploadprogress: CustomEvent<UploaderFile>
  uploadcomplete: CustomEvent<UploaderFile>
  /** With `willRetry` it continues by itself. */
  uploaderror: CustomEvent<UploaderFile & { status: number; willRetry: boolean }>
  /** Files wait, and there is no token or it is not accepted any more. */
  tokenneeded: CustomEvent<undefined>
}

export interface ReelgateUploaderElement extends HTMLElement {
  readonly files: readonly UploaderFile[]
  /** What is left out of an assignment is in English. */
  get texts(): UploaderTexts
  set texts(texts: Partial<UploaderTexts>)
  addFiles(files: Iterable<File>): void
  addEventListener<Name extends keyof UploaderEventMap>(
    name: Name,
    listener: (event: UploaderEventMap[Name]) => void,
    options?: AddEventListenerOptions | boolean,
  ): void
  addEventListener(name: string, listener: EventListenerOrEventListenerObject, options?: AddEventListenerOptions | boolean): void
  removeEventListener<Name extends keyof UploaderEventMap>(
    name: Name,
    listener: (event: UploaderEventMap[Name]) => void,
    options?: EventListenerOptions | boolean,
  ): void
  removeEventListener(name: string, listener: EventListenerOrEventListenerObject, options?: EventListenerOptions | boolean): void
}

declare global {
  /** Defined by `/v2/api.js` and `/v2/player.js`. */
  const VdoPlayer: VdoPlayerConstructor
  interface Window {
    VdoPlayer?: VdoPlayerConstructor
    /** Called by `/v2/api.js` when it has loaded. */
    onVdoPlayerV2APIReady?: () => void
  }
  interface HTMLElementTagNameMap {
    'reelgate-player': ReelgatePlayerElement
    'vdocipher-player': ReelgatePlayerElement
    'reelgate-uploader': ReelgateUploaderElement
  }
}
