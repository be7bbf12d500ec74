import './player.css'
import { createElements, hideBarLater, labelElements, type PlayerElements } from './elements.ts'
import { sha256Base64url } from './encoding.ts'
import { type Floating, keepInPage } from './floating.ts'
import { createFullscreen, type Fullscreen } from './fullscreen.ts'
import { listenToGestures } from './gestures.ts'
import { createHelp, type Help } from './help.ts'
import { openKeyStore } from './key-store.ts'
import { actionForKey } from './keyboard.ts'
import { chooseLanguage, useLanguage, useOwnersSentences } from './language.ts'
import { loadWhenUsed } from './load-when-used.ts'
import { readPosition } from './memory.ts'
import { type PageValues, type PlayerOptions, parseOptions, parsePageValues, searchOfSession } from './options.ts'
import { isFramingOrigin, servePage } from './page-api.ts'
import { openPage, type PlayResult, redeem } from './play-client.ts'
import { type Playback, type Start, startPlayback } from './playback.ts'
import { agreeProofKey, createSigner, type ProofKey, type Signer } from './proof.ts'
import { loadPublicMeta } from './public-meta.ts'
import { raiseCaptions } from './raised-captions.ts'
import type { Refusal, Waiting } from './refusals.ts'
import { createScreen, type Screen } from './screen.ts'
import { createSettings, type Settings } from './settings-button.ts'
import { decodedFormats, hasMediaSource } from './stream.ts'
import { type Theme, themeProperties } from './theme.ts'
import { createViewerActions, type ViewerAction } from './viewer-actions.ts'
import { isDrawn } from './watermark-overlay.ts'
import type { SessionAnswer } from './wire.ts'

/** For a frame that is not shown. */
const LOOK_EVERY_MS = 250

type Opened = { ok: true; proofKey: ProofKey; signer: Signer; answer: SessionAnswer } | { ok: false; refusal: Refusal }

void start()

async function start() {
  const options = parseOptions(location.search)
  const wanted = [...(options.language ? [options.language] : []), ...navigator.languages]
  Object.assign(document.documentElement, await useLanguage(chooseLanguage(wanted)))
  const container = document.querySelector<HTMLElement>('#player')
  if (!container) throw new Error('The page has no place for the player')
  const elements = createElements(container, options)
  raiseCaptions(elements.controller, elements.video)
  const screen = createScreen(elements)
  screen.show({ state: 'loading' })
  const setTheme = createThemeSetter()
  setTheme(options.theme)
  elements.controller.addEventListener('contextmenu', (event) => event.preventDefault()) // "save video as", and others
  const floating = keepInPage(elements.video)
  const refusal = refusalOfBrowser()
  if (refusal) {
    screen.show({ state: 'refused', refusal, onAction: () => location.reload() })
    servePage({ elements, screen, setTheme, playback: () => undefined }).refused(refusal)
  } else {
    const page = parsePageValues(document.querySelector('#reelgate-page')?.textContent ?? '')
    const fullscreen = createFullscreen(elements, isFramingOrigin)
    runPlayer(page, options, { elements, screen, floating, fullscreen, help: createHelp(container), setTheme })
  }
}

/** Why no video can play here, found before its OTP is spent. */
function refusalOfBrowser(): Refusal | undefined {
  if (!isSecureContext || !globalThis.crypto?.subtle) return { code: 'insecure-page', page: insecurePage() }
  if (self.origin === 'null') return { code: 'sandboxed-frame' } // an opaque origin: every request of ours would be foreign to our own server
  return hasMediaSource() ? undefined : { code: 'unsupported-browser', lacks: 'Media Source Extensions' }
}

type Parts = {
  elements: PlayerElements
  screen: Screen
  floating: Floating
  fullscreen: Fullscreen
  help: Help
  setTheme(changed: Theme): void
}

function runPlayer(page: PageValues, options: PlayerOptions, parts: Parts) {
  const { elements, screen, fullscreen, help, setTheme } = parts
  const root = new URL(page.rootPath, location.href)
  const settings = createSettings(elements)
  const loadCaptionStyle = loadWhenUsed(async () => (await import('./caption-style-settings.ts')).createCaptionStyleSettings())
  const onWaiting = (waiting: Waiting | undefined) => screen.show(waiting ? { state: 'waiting', waiting } : { state: 'loading' })
  let playback: Playback | undefined
  let askedMs: number | undefined
  elements.video.addEventListener('play', ({ timeStamp }) => (askedMs = timeStamp))
  const run = createViewerActions(elements, fullscreen, () => playback)
  listenToKeys({ elements, settings, help, run })
  listenToGestures(elements, run)
  const pageApi = servePage({ elements, screen, setTheme, playback: () => playback })
  if (options.litemode && options.otp) openOnPlay()
  else if (options.autoplay) openWhenDrawn()
  else openFirst()

  /** Loads nothing but the poster before the viewer presses play: a page may hold many videos. */
  function openOnPlay() {
    showPublicPoster(elements.video, root, options.videoId)
    screen.show({ state: 'ready' })
    const press = () => void elements.video.play().catch(() => {})
    elements.bigPlay.addEventListener('click', press, { once: true })
    elements.video.addEventListener('play', () => openFirst(), { once: true })
  }

  /** Spends no OTP on a video that would start by itself where it cannot be seen, unless a script of the page around waits for it. */
  async function openWhenDrawn() {
    while (!isDrawn(elements.video) && !pageApi.isConnected()) await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS))
    await openFirst()
  }

  async function openFirst() {
    await playOrShowRefusal(
      () => openSession(page, options, root, onWaiting),
      undefined,
      () => openFirst(),
    )
  }

  async function openHere(proofKey: ProofKey, session: string, nonce: string, atS: number) {
    const open = async (): Promise<Opened> => {
      const signer = createSigner(proofKey, nonce) // a page that was replaced never comes back, so this is another
      return toOpened(proofKey, signer, await openPage(signer, root, session, onWaiting))
    }
    await playOrShowRefusal(open, atS, () => openHere(proofKey, session, nonce, atS))
  }

  async function playOrShowRefusal(open: () => Promise<Opened>, atS: number | undefined, again: () => void) {
    screen.show({ state: 'loading' })
    const outcome = await open().catch((): Opened => ({ ok: false, refusal: { code: 'internal' } }))
    if (!outcome.ok) {
      const { refusal } = outcome
      const reload = refusal.code === 'internal'
      screen.show({ state: 'refused', refusal, onAction: reload ? () => location.reload() : again })
      pageApi.refused(refusal)
      return
    }
    const { proofKey, signer, answer } = outcome
    useOwnersSentences(answer.sentences ?? {})
    labelElements(elements)
    const playHere = (fromS: number) => openHere(proofKey, answer.session, page.proofNonce, fromS)
    playback = startPlayback(
      {
        ...{ ...parts, menu: settings, loadCaptionStyle, options, root, playHere, streamChanged: pageApi.streamChanged },
        askedMs: () => (elements.video.paused ? undefined : askedMs),
      },
      signer,
      answer,
      atS === undefined ? findStart(answer, options, pageApi.leftAtS(answer.video.id)) : { atS, isResumed: false },
    )
    pageApi.opened(answer)
    if (atS !== undefined) elements.video.play().catch(() => {}) // the viewer has just asked for it
    offerNextLesson(answer.video.id)
  }

  /** Off unless the page around asks for it. */
  async function offerNextLesson(videoId: string) {
    const nextId = options.lessons[options.lessons.indexOf(videoId) + 1]
    if (nextId === undefined || options.loop) return
    const { showNextLesson } = await import('./next-lesson.ts')
    showNextLesson(elements, {
      meta: loadPublicMeta(root, nextId),
      choose: () => pageApi.askForNext(nextId),
      hasPage: pageApi.isConnected,
    })
  }
}

/** Redeems the OTP of the address, or opens another page of the session that the address names. */
async function openSession(
  page: PageValues,
  options: PlayerOptions,
  root: URL,
  onWaiting: (waiting: Waiting | undefined) => void,
): Promise<Opened> {
  const opening = openKeyStore()
  if (options.session) {
    const keys = await opening
    const proofKey = await keys.find(options.session)
    if (!proofKey) return { ok: false, refusal: { code: keys.lasts ? 'not-allowed' : 'otp-used' } }
    const signer = createSigner(proofKey, page.proofNonce)
    return toOpened(proofKey, signer, await openPage(signer, root, options.session, onWaiting))
  }
  if (!options.otp) return { ok: false, refusal: { code: 'otp-unknown' } }
  const [keys, otpHash, newKey] = await Promise.all([opening, sha256Base64url(options.otp), agreeProofKey(page)])
  const proofKey = await keys.storeIfAbsent(otpHash, newKey)
  const signer = createSigner(proofKey, page.proofNonce)
  const answer = await redeem(
    signer,
    root,
    {
      otp: options.otp,
      videoId: options.videoId,
      publicKey: proofKey.publicKey,
      serverKeyId: proofKey.serverKeyId,
      ticket: page.ticket,
      ancestors: [...(location.ancestorOrigins ?? [])],
      support: { mse: 'MediaSource' in globalThis, managed: 'ManagedMediaSource' in globalThis, ...decodedFormats() },
    },
    onWaiting,
  )
  if (answer.ok) {
    await keys.storeIfAbsent(answer.value.session, proofKey) // before the address changes: a reload has nothing but the session's id
    history.replaceState(null, '', searchOfSession(location.search, answer.value.session))
  }
  return toOpened(proofKey, signer, answer)
}

/** Where the page around knows that the viewer was, else after a reload where this session was, else where the address says, or where the viewer or this browser left the video. */
function findStart(
  { resumeAtS, keepsPosition, video }: SessionAnswer,
  { session, startAtS }: PlayerOptions,
  leftAtS: number | undefined,
): Start {
  if (leftAtS) return { atS: leftAtS, isResumed: true }
  const hasMoved = session !== undefined && resumeAtS > 0
  if (startAtS !== undefined && !hasMoved) return { atS: Math.min(startAtS, Math.max(0, video.durationS - 1)), isResumed: false }
  const atS = resumeAtS > 0 || keepsPosition ? resumeAtS : (readPosition(video.id) ?? 0)
  return { atS, isResumed: atS > 0 }
}

/** The poster that the page around may show, too; where there is none the player stays dark. */
async function showPublicPoster(video: HTMLVideoElement, root: URL, videoId: string | undefined) {
  if (videoId === undefined) return
  const { posterUrl } = await loadPublicMeta(root, videoId)
  if (posterUrl !== undefined && !video.poster) video.poster = posterUrl
}

function toOpened(proofKey: ProofKey, signer: Signer, answer: PlayResult<SessionAnswer>): Opened {
  return answer.ok ? { ok: true, proofKey, signer, answer: answer.value } : answer
}

/** Changes those of the options that it is called with. */
function createThemeSetter(): (changed: Theme) => void {
  let theme: Theme = {}
  return (changed) => {
    theme = { ...theme, ...changed }
    const { style } = document.documentElement
    for (const [name, value] of Object.entries(themeProperties(theme, toHexColor))) {
      if (value === undefined) style.removeProperty(name)
      else style.setProperty(name, value)
    }
  }
}

/** A colour of CSS as `#rrggbb`; undefined for one that is not opaque, and for no colour. */
function toHexColor(color: string): string | undefined {
  const context = CSS.supports('color', color) ? document.createElement('canvas').getContext('2d') : null
  if (!context) return undefined
  context.fillStyle = color
  return /^#[0-9a-f]{6}$/.exec(context.fillStyle)?.[0]
}

/** The page that needs https: this one, or the first insecure one around it (Firefox names none but the nearest). */
function insecurePage(): string {
  const around = location.ancestorOrigins?.length ? [...location.ancestorOrigins] : [document.referrer]
  return ([location.origin, ...around].find(isInsecure) ?? location.origin).replace(/^http:\/\/([^/]+).*$/, '$1')
}

/** http is secure on the browser's own machine. */
function isInsecure(address: string): boolean {
  return address.startsWith('http:') && !/^http:\/\/(([^/:]+\.)?localhost|127\.[\d.]+|\[::1\])(:|\/|$)/.test(address)
}

type KeyTargets = { elements: PlayerElements; settings: Settings; help: Help; run(action: ViewerAction): void }

function listenToKeys({ elements, settings, help, run }: KeyTargets) {
  document.addEventListener('keydown', (event) => {
    const action = actionForKey(event)
    if (event.defaultPrevented || help.isOpen || settings.isOpen) return
    if (event.key === 'Escape') elements.controller.focus({ preventScroll: true }) // so that the bar hides
    if (!action) return
    if (isControlsOwnKey(event)) return
    event.preventDefault()
    hideBarLater(elements.controller) // which shows it first
    if (action.kind === 'show-keys') help.show()
    else run(action)
  })
}

/** Space and Enter on a focused control, and arrows on a slider, are that control's. The seek bar's own steps would be parts of the video. */
function isControlsOwnKey(event: KeyboardEvent): boolean {
  const target = event.composedPath()[0]
  if (!(target instanceof HTMLElement)) return false
  if (target instanceof HTMLInputElement) {
    const isSeekBar = event.composedPath().some((part) => part instanceof Element && part.localName === 'media-time-range')
    return /^(Arrow|Home|End)/.test(event.key) && !(isSeekBar && /Left|Right/.test(event.key))
  }
  return (
    (event.key === ' ' || event.key === 'Enter') &&
    (target instanceof HTMLButtonElement || target.role === 'button' || target.role === 'switch')
  )
}
