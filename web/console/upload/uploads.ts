import type { whyNoVideo } from '../../upload/file-kinds.ts'
import type { FileSender, SendEvents, SendFailure, Sending, UploadTarget } from '../../upload/send-file.ts'
import type { claimUnfinished, UnfinishedUpload } from '../../upload/unfinished.ts'
import { ApiFailure, callApi, mayPass } from '../api.ts'
import { connection } from '../connection.ts'
import { sentenceOfProxy } from '../proxy-refusal.ts'
import { isMissingScript } from '../ui/missing-script.tsx'
import { apiUrl } from '../urls.ts'
import type { ChosenFile } from './dropped-files.ts'

/** `pausing`: it failed, and is tried again by itself. */
type UploadState = 'waiting' | 'sending' | 'pausing' | 'sent' | 'failed'

export type Upload = {
  id: string
  title: string
  /** What was added while others were under way is of their batch. */
  batch: number
  sizeBytes: number
  sentBytes: number
  state: UploadState
  /** Nothing has been sent for a while. */
  isStalled: boolean
  /** While it is pausing; undefined: as soon as the server answers. */
  nextTryAtMs: number | undefined
  /** Known when its turn has come. */
  videoId: string | undefined
  /** Why it failed. */
  problem: string | undefined
}

/** A file that was chosen and is not sent, and why: the end of a sentence that begins with its name. */
export type LeftOut = { name: string; why: string }

export type Uploads = {
  subscribe(onChange: () => void): () => void
  list(): readonly Upload[]
  leftOut(): readonly LeftOut[]
  /** The names of files that seem to be here already: they wait for `answer`. */
  asked(): readonly string[]
  /** Why parts have become smaller, once they have: a proxy refused larger ones. */
  smallerParts(): string | undefined
  /** Whether those that were asked about are uploaded, too. */
  answer(uploadsAgain: boolean): void
  /** Of all that are sent now. */
  bytesPerS(): number
  /** What may be a video, in this order; files in folders go to folders of the same names in this one, which are created. */
  add(chosen: readonly ChosenFile[], folderId: string): Promise<void>
  /** Sends what is to replace the file of a video, if it may be one. */
  replace(video: Replaced, file: File): Promise<void>
  /** Tries one that has failed, or waits to be tried again, now. */
  retry(id: string): void
  /** Stops it, and deletes what has arrived; with the video that was to get the file, unless that has another one. */
  cancel(id: string): void
  /** Takes what is sent or has failed off the list. */
  clear(): void
}

type Replaced = { id: string; title: string }

/** What uploads need of the library. */
type UploadLibrary = {
  /** The id of a folder by its path, which is created where it is missing. */
  findFolder(rootId: string, path: readonly string[]): Promise<string>
  /** Of these, those whose title a video with a file has already, in the folder where they would go. */
  findPresent(chosen: readonly ChosenFile[], folderId: string): Promise<ReadonlySet<ChosenFile>>
  /** A video was added or got its file. */
  onVideo(): void
}

/** Loaded with the first upload. */
type Sender = FileSender & { claimUnfinished: typeof claimUnfinished; whyNoVideo: typeof whyNoVideo }
type Work = {
  file: File
  folders: readonly string[]
  folderId: string
  /** The id of the video whose file it replaces. */
  replaces: string | undefined
  failures: number
  /** How much has arrived for good. */
  keptBytes: number
  /** Where it is sent, once that is known. */
  url: string | undefined
  /** Undefined: not asked for yet, or the same file is under way already. */
  unfinished: UnfinishedUpload | undefined
  sending: Sending | undefined
}

const ENDPOINT = apiUrl('uploads').href
const HEADERS = { 'Reelgate-Console': '1' } // other sites' pages cannot send it

/** More would share the same connection; two hide the time that a finished one takes to be stored. */
const MAX_CONCURRENT = 2
const SPEED_WINDOW_MS = 5_000
const MAX_PAUSE_MS = 60_000
/** One that fails more often, although the server answers, no longer keeps others waiting. */
const MAX_FAILURES_IN_TURN = 3

/** Whether it has not been decided yet what becomes of it. */
export function isUnderWay({ state }: Upload): boolean {
  return state === 'waiting' || state === 'sending' || state === 'pausing'
}

/**
 * Uploads of this tab: a list that components subscribe to. Each gets its credentials, and so its place in the library, when its turn
 * comes. One whose connection or server is lost is tried again until it is cancelled.
 */
export function createUploads({ findFolder, findPresent, onVideo }: UploadLibrary): Uploads {
  let uploads: readonly Upload[] = []
  let leftOut: readonly LeftOut[] = []
  let asked: readonly { chosen: ChosenFile; folderId: string }[] = []
  let askedNames: readonly string[] = []
  let batch = 0
  const work = new Map<string, Work>()
  /** The files that were added to the list, by what tells them apart. */
  const added = new Map<string, string>()
  const listeners = new Set<() => void>()
  const measured: { atMs: number; bytes: number }[] = []
  let smallerParts: string | undefined
  let sender: Promise<Sender> | undefined
  let lastTurn: Promise<unknown> = Promise.resolve()

  function set(next: readonly Upload[]) {
    uploads = next
    for (const listener of listeners) listener()
  }
  const find = (id: string) => uploads.find((upload) => upload.id === id)
  const change = (id: string, changes: Partial<Upload>) =>
    set(uploads.map((upload) => (upload.id === id ? { ...upload, ...changes } : upload)))

  const openSender = () => {
    sender ??= Promise.all([
      import('../../upload/send-file.ts'),
      import('../../upload/unfinished.ts'),
      import('../../upload/file-kinds.ts'),
    ]).then(([{ createFileSender }, { claimUnfinished }, { whyNoVideo }]) => ({
      ...createFileSender(saySmallerParts),
      ...{ claimUnfinished, whyNoVideo },
    }))
    sender.catch(() => (sender = undefined)) // the script could not be loaded: the next upload tries again
    return sender
  }

  function saySmallerParts({ status, server, partBytes }: SendFailure) {
    const refusal = sentenceOfProxy({ status, server, sentBytes: partBytes, isPart: true })
    smallerParts = `${refusal} Until then files are sent in smaller parts.`
    set(uploads)
  }

  const eventsOf = (id: string, files: Work, isWanted: () => boolean): SendEvents => ({
    onBegun({ url, videoId }) {
      if (!isWanted()) return void discard(files, { url, videoId }) // cancelled while it was being begun
      files.url = url
      files.unfinished?.keep({ url })
      change(id, { videoId })
      onVideo()
    },
    onProgress(sentBytes) {
      const before = find(id)?.sentBytes ?? 0
      measured.push({ atMs: Date.now(), bytes: Math.max(0, sentBytes - before) })
      change(id, { sentBytes, isStalled: false })
    },
    onKept(keptBytes) {
      if (keptBytes > files.keptBytes) files.failures = 0
      files.keptBytes = keptBytes
      change(id, { sentBytes: keptBytes })
    },
    async onStalled() {
      change(id, { isStalled: true })
      await connection.whenHere()
      if (!find(id)?.isStalled) return
      files.sending?.stop()
      void start(id) // over another connection: this one may have died in silence, and what has arrived is kept
    },
    onSent() {
      change(id, { state: 'sent', sentBytes: files.file.size, isStalled: false })
      files.unfinished?.forget()
      drop(id)
      onVideo()
      startNext()
    },
    onFailed(failure) {
      if (failure.hasEnded) giveUp(files)
      void fail(id, { message: sentenceOf(failure), mayPass: failure.mayPass })
    },
  })

  /** What had arrived is not there any more: the next attempt begins again. */
  function giveUp(files: Work) {
    files.unfinished?.forget()
    files.url = undefined
    files.keptBytes = 0
  }

  /** One that this page sends no further. */
  function drop(id: string) {
    const files = work.get(id)
    work.delete(id)
    files?.sending?.stop()
    files?.unfinished?.release()
  }

  async function fail(id: string, { message, mayPass }: { message: string; mayPass: boolean }): Promise<void> {
    const files = work.get(id)
    if (!files) return
    if (!mayPass) {
      change(id, { state: 'failed', problem: message, isStalled: false })
      return startNext()
    }
    files.failures += 1
    const { failures } = files
    const isStill = () => work.get(id)?.failures === failures && find(id)?.state === 'pausing'
    change(id, { state: 'pausing', problem: message, sentBytes: files.keptBytes, isStalled: false, nextTryAtMs: undefined })
    startNext()
    if (!(await connection.check())) await connection.whenHere()
    else if (isStill()) {
      const pauseMs = Math.min(MAX_PAUSE_MS, 1_000 * 2 ** failures)
      const problem = failures > MAX_FAILURES_IN_TURN ? SUSPECTED_PROXY : message
      change(id, { problem, nextTryAtMs: Date.now() + pauseMs })
      await new Promise((resolve) => setTimeout(resolve, pauseMs))
    }
    if (isStill()) void start(id)
  }

  function startNext() {
    const busy = uploads.filter(({ id, state }) => {
      const failures = work.get(id)?.failures ?? 0
      return state === 'sending' || (state === 'pausing' && failures <= MAX_FAILURES_IN_TURN)
    })
    const free = Math.max(0, MAX_CONCURRENT - busy.length)
    for (const { id } of uploads.filter(({ state }) => state === 'waiting').slice(0, free)) void start(id)
  }

  async function start(id: string): Promise<void> {
    const upload = find(id)
    const files = work.get(id)
    if (!upload || !files) return
    change(id, { state: 'sending', sentBytes: files.keptBytes, problem: undefined, isStalled: false, nextTryAtMs: undefined })
    try {
      const using = await openSender()
      if (files.url === undefined) await inTurn(() => begin(using, upload, files))
      else send(using, id, files, { begun: { url: files.url, headers: HEADERS, isEarlier: false }, metadata: {} })
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error)
      const isKnown = error instanceof ApiFailure || isMissingScript(error)
      if (!isKnown) throw error
      await fail(id, { message, mayPass: error instanceof ApiFailure ? mayPass(error) : !(await connection.check()) })
    }
  }

  /** One after another, so that videos are in the library in the order of their files. */
  function inTurn<Result>(run: () => Promise<Result>): Promise<Result> {
    const turn = lastTurn.then(run)
    lastTurn = turn.catch(() => undefined)
    return turn
  }

  async function begin(using: Sender, { id, title }: Upload, files: Work): Promise<void> {
    const { file, replaces: videoId } = files
    const place: Record<string, string> =
      videoId === undefined ? { title, folderId: await findFolder(files.folderId, files.folders) } : { videoId }
    files.unfinished ??= await using.claimUnfinished(videoId === undefined ? ENDPOINT : `${ENDPOINT} ${videoId}`, file)
    if (work.get(id) !== files) return files.unfinished?.release()
    const earlier = files.unfinished?.read()
    const begun = earlier && { url: earlier.url, headers: HEADERS, isEarlier: true }
    await send(using, id, files, { begun, metadata: { filename: file.name, ...place } }).begun
  }

  type Beginning = Pick<UploadTarget, 'begun' | 'metadata'>

  function send(using: Sender, id: string, files: Work, beginning: Beginning): Sending {
    files.sending?.stop()
    const isWanted = () => work.get(id) === files && files.sending === sending
    const target = { endpoint: ENDPOINT, headers: HEADERS, ...beginning }
    const sending = using.send(files.file, target, eventsOf(id, files, isWanted))
    files.sending = sending
    return sending
  }

  function enqueue(chosen: readonly { chosen: ChosenFile; folderId: string; replaces?: Replaced }[]) {
    if (chosen.length === 0) return
    const isNewBatch = !uploads.some(isUnderWay)
    if (isNewBatch) batch += 1
    const before = isNewBatch ? uploads.filter(({ state }) => state === 'failed') : uploads
    const next = chosen.map(({ chosen: { file, folders }, folderId, replaces }) => {
      const id = crypto.randomUUID()
      work.set(id, { ...NEW_WORK, file, folders, folderId, replaces: replaces?.id })
      if (!replaces) added.set(identityOf({ file, folders }), id)
      const title = replaces ? `New file of ${replaces.title}` : titleOf(file.name)
      return { ...NEW, id, batch, title, sizeBytes: file.size, videoId: replaces?.id }
    })
    set([...before, ...next])
    startNext()
  }

  return {
    subscribe(onChange) {
      listeners.add(onChange)
      return () => listeners.delete(onChange)
    },
    list: () => uploads,
    leftOut: () => leftOut,
    asked: () => askedNames,
    smallerParts: () => smallerParts,
    answer(uploadsAgain) {
      const files = asked
      asked = []
      askedNames = []
      if (!uploadsAgain)
        leftOut = [...leftOut, ...files.map(({ chosen }) => ({ name: chosen.file.name, why: 'is here already' }))]
      set(uploads)
      if (uploadsAgain) enqueue(files)
    },
    bytesPerS() {
      const sinceMs = Date.now() - SPEED_WINDOW_MS
      while (measured[0] && measured[0].atMs < sinceMs) measured.shift()
      const [first] = measured
      const bytes = measured.reduce((sum, one) => sum + one.bytes, 0)
      return first ? (bytes * 1000) / Math.max(1_000, Date.now() - first.atMs) : 0
    },
    async add(chosen, folderId) {
      const visible = chosen.filter(({ file }) => !file.name.startsWith('.'))
      const using = await openSender().catch(() => undefined) // each file will say what is missing
      const reasons = await Promise.all(visible.map(({ file }) => using?.whyNoVideo(file)))
      const videos = visible.filter((_, index) => reasons[index] === undefined)
      const refused = visible.flatMap(({ file }, index) => {
        const why = reasons[index]
        return why === undefined ? [] : [{ name: file.name, why }]
      })
      if (!uploads.some(isUnderWay)) leftOut = []
      leftOut = [...leftOut, ...refused]
      if (refused.length > 0) set(uploads)
      const present = await findPresent(videos, folderId)
      const seen = new Set<string>()
      const isKnown = (one: ChosenFile) => {
        const identity = identityOf(one)
        const isTwice = seen.has(identity) || isListed(identity)
        seen.add(identity)
        return isTwice || present.has(one)
      }
      const known = new Set(videos.filter(isKnown))
      enqueue(videos.filter((one) => !known.has(one)).map((one) => ({ chosen: one, folderId })))
      if (known.size === 0) return
      asked = [...asked, ...[...known].map((one) => ({ chosen: one, folderId }))]
      askedNames = asked.map(({ chosen: { file } }) => file.name)
      set(uploads)
    },
    async replace(video, file) {
      const using = await openSender().catch(() => undefined)
      const why = await using?.whyNoVideo(file)
      if (why === undefined) return enqueue([{ chosen: { file, folders: [] }, folderId: '', replaces: video }])
      leftOut = [...leftOut, { name: file.name, why }]
      set(uploads)
    },
    retry(id) {
      const files = work.get(id)
      if (files) files.failures = 0
      change(id, { state: 'waiting', nextTryAtMs: undefined })
      startNext()
    },
    cancel(id) {
      const videoId = find(id)?.videoId
      const files = work.get(id)
      const url = files?.url ?? files?.unfinished?.read()?.url
      set(uploads.filter((upload) => upload.id !== id))
      files?.unfinished?.forget()
      drop(id)
      if (files) void discard(files, { url, videoId })
      startNext()
    },
    clear() {
      leftOut = []
      smallerParts = undefined
      for (const { id } of uploads.filter((upload) => !isUnderWay(upload))) drop(id)
      set(uploads.filter(isUnderWay))
    },
  }

  /** Whether this file is in the list, and has not failed. */
  function isListed(identity: string): boolean {
    const upload = find(added.get(identity) ?? '')
    return upload !== undefined && upload.state !== 'failed'
  }

  /**
   * What was begun and will not be finished: the video that will get no file, or of one that has another file only the upload. Where that
   * fails the video stays in the list, in which the owner can delete it, and the upload expires.
   */
  async function discard({ replaces }: Work, { url, videoId }: { url: string | undefined; videoId: string | undefined }) {
    const ends =
      replaces === undefined
        ? videoId && callApi<unknown>('DELETE', 'videos', { body: { videos: [videoId] } })
        : url && openSender().then((using) => using.discard(url, HEADERS))
    await Promise.resolve(ends).catch(() => undefined)
    onVideo()
  }
}

const NEW = {
  sentBytes: 0,
  state: 'waiting',
  isStalled: false,
  nextTryAtMs: undefined,
  videoId: undefined,
  problem: undefined,
} as const

const NEW_WORK = { failures: 0, keptBytes: 0, url: undefined, unfinished: undefined, sending: undefined } as const

function identityOf({ file: { name, size, lastModified }, folders }: ChosenFile): string {
  return JSON.stringify([folders, name, size, lastModified])
}

function sentenceOf({ status, message, server, partBytes }: SendFailure): string {
  if (status === 0) return message ?? 'The connection to the server was lost. What has arrived is kept.'
  return message ?? sentenceOfProxy({ status, server, sentBytes: partBytes, isPart: true })
}

const SUSPECTED_PROXY =
  'The connection breaks off again and again, although the server answers. A proxy in front of it may be the cause: reelgate doctor says whether one limits uploads.'

/** The name without its ending, and with spaces for the underscores of cameras and programs. */
export function titleOf(fileName: string): string {
  const title = fileName
    .replace(/\.[^.]{1,5}$/, '')
    .replaceAll('_', ' ')
    .trim()
  return (title || fileName).slice(0, 500)
}
