import { ApiFailure, callApi, mayPass } from '../api.ts'
import { connection } from '../connection.ts'
import { isMissingScript } from '../ui/missing-script.tsx'
import { formatBytes } from '../units.ts'
import { installationUrl } from '../urls.ts'
import type { ChosenFile } from './dropped-files.ts'
import { isReadable, whyNoVideo } from './file-kinds.ts'
import type { Form, Sender, SendFailure } from './sender.ts'

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
  /** Whether those that were asked about are uploaded, too. */
  answer(uploadsAgain: boolean): void
  /** Of all that are sent now. */
  bytesPerS(): number
  /** What may be a video, in this order; files in folders go to folders of the same names in this one, which are created. */
  add(chosen: readonly ChosenFile[], folderId: string): Promise<void>
  /** Tries one that has failed, or waits to be tried again, now. */
  retry(id: string): void
  /** Stops it, and deletes the video that was to get the file. */
  cancel(id: string): void
  /** Takes what is sent or has failed off the list. */
  clear(): void
}

/** What uploads need of the library. */
type UploadLibrary = {
  /** The id of a folder by its path, which is created where it is missing. */
  findFolder(rootId: string, path: readonly string[]): Promise<string>
  /** Of these, those whose title a video with a file has already, in the folder where they would go. */
  findPresent(chosen: readonly ChosenFile[], folderId: string): Promise<ReadonlySet<ChosenFile>>
  /** A video was added or got its file. */
  onVideo(): void
}

type Credentials = { clientPayload: Record<string, string>; videoId: string }
type Work = { file: File; folders: readonly string[]; folderId: string; form: Form | undefined; failures: number }

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
    sender ??= import('./sender.ts').then(({ createSender }) => createSender(events, MAX_CONCURRENT))
    sender.catch(() => (sender = undefined)) // the script could not be loaded: the next upload tries again
    return sender
  }
  const events = {
    onProgress(id: string, sentBytes: number) {
      const before = find(id)?.sentBytes ?? 0
      measured.push({ atMs: Date.now(), bytes: Math.max(0, sentBytes - before) })
      change(id, { sentBytes, isStalled: false })
    },
    async onStalled(id: string) {
      change(id, { isStalled: true })
      if (await connection.check()) return // it is slow, or busy with the file
      await connection.whenHere()
      if (find(id)?.isStalled) void start(id) // a connection to a server that was away does not go on
    },
    onSent(id: string) {
      change(id, { state: 'sent', sentBytes: find(id)?.sizeBytes ?? 0, isStalled: false })
      work.delete(id)
      onVideo()
      startNext()
    },
    onFailed: (id: string, failure: SendFailure) => void fail(id, failure),
  }

  async function fail(id: string, { message, mayPass }: SendFailure): Promise<void> {
    const files = work.get(id)
    if (!files) return
    if (!mayPass || !(await isReadable(files.file))) {
      const problem = mayPass ? 'The file was moved, changed or deleted on your disk. Add it again.' : message
      change(id, { state: 'failed', problem, isStalled: false })
      return startNext()
    }
    files.failures += 1
    const { failures } = files
    const isStill = () => work.get(id)?.failures === failures && find(id)?.state === 'pausing'
    change(id, { state: 'pausing', problem: message, sentBytes: 0, isStalled: false, nextTryAtMs: undefined })
    startNext()
    if (!(await connection.check())) await connection.whenHere()
    else if (isStill()) {
      const pauseMs = Math.min(MAX_PAUSE_MS, 1_000 * 2 ** failures)
      const problem = failures > MAX_FAILURES_IN_TURN ? suspectProxy(files.file.size) : message
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
    change(id, { state: 'sending', sentBytes: 0, problem: undefined, isStalled: false })
    try {
      const using = await openSender()
      files.form ??= await inTurn(() => createVideo(upload, files))
      if (files.form) using.send(id, files.file, files.form)
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

  /** @returns undefined when the upload was cancelled meanwhile */
  async function createVideo({ id, title }: Upload, { folderId, folders }: Work): Promise<Form | undefined> {
    const query = { title, folderId: await findFolder(folderId, folders) }
    const { clientPayload, videoId } = await callApi<Credentials>('PUT', 'videos', { query })
    if (!find(id)) return void removeVideo(videoId)
    change(id, { videoId })
    onVideo()
    const { uploadLink: _, ...fields } = clientPayload
    return { fields, url: installationUrl('upload').href }
  }

  function enqueue(chosen: readonly { chosen: ChosenFile; folderId: string }[]) {
    if (chosen.length === 0) return
    const isNewBatch = !uploads.some(isUnderWay)
    if (isNewBatch) batch += 1
    const before = isNewBatch ? uploads.filter(({ state }) => state === 'failed') : uploads
    const next = chosen.map(({ chosen: { file, folders }, folderId }) => {
      const id = crypto.randomUUID()
      work.set(id, { file, folders, folderId, form: undefined, failures: 0 })
      added.set(identityOf({ file, folders }), id)
      return { ...NEW, id, batch, title: titleOf(file.name), sizeBytes: file.size }
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
      const reasons = await Promise.all(visible.map(({ file }) => whyNoVideo(file)))
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
    retry(id) {
      const files = work.get(id)
      if (files) files.failures = 0
      change(id, { state: 'waiting', nextTryAtMs: undefined })
      startNext()
    },
    cancel(id) {
      const videoId = find(id)?.videoId
      set(uploads.filter((upload) => upload.id !== id))
      work.delete(id)
      void sender?.then((using) => using.cancel(id))
      if (videoId !== undefined) void removeVideo(videoId)
      startNext()
    },
    clear() {
      leftOut = []
      set(uploads.filter(isUnderWay))
    },
  }

  /** Whether this file is in the list, and has not failed. */
  function isListed(identity: string): boolean {
    const upload = find(added.get(identity) ?? '')
    return upload !== undefined && upload.state !== 'failed'
  }

  /** One that will get no file. Where that fails it stays in the list, in which the owner can delete it. */
  async function removeVideo(videoId: string) {
    await callApi<unknown>('DELETE', 'videos', { body: { videos: [videoId] } }).catch(() => undefined)
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

function identityOf({ file: { name, size, lastModified }, folders }: ChosenFile): string {
  return JSON.stringify([folders, name, size, lastModified])
}

function suspectProxy(sizeBytes: number): string {
  return `The connection breaks off, although the server answers. A proxy in front of it may refuse files of ${formatBytes(sizeBytes)}: reelgate doctor says whether one does.`
}

/** The name without its ending, and with spaces for the underscores of cameras and programs. */
export function titleOf(fileName: string): string {
  const title = fileName
    .replace(/\.[^.]{1,5}$/, '')
    .replaceAll('_', ' ')
    .trim()
  return (title || fileName).slice(0, 500)
}
