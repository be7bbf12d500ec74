import { ApiFailure, callApi } from '../api.ts'
import { installationUrl } from '../app/place.ts'
import { type ChosenFile, sortOut } from './dropped-files.ts'
import type { Sender } from './sender.ts'

export type UploadState = 'waiting' | 'sending' | 'sent' | 'failed'

export type Upload = {
  id: string
  title: string
  sizeBytes: number
  sentBytes: number
  state: UploadState
  /** Nothing has been sent for a while. */
  isStalled: boolean
  /** Known when its turn has come. */
  videoId: string | undefined
  /** Why it failed. */
  problem: string | undefined
}

export type Uploads = {
  subscribe(onChange: () => void): () => void
  list(): readonly Upload[]
  /** The names of files that were chosen and are no videos. */
  leftOut(): readonly string[]
  /** Of all that are sent now. */
  bytesPerS(): number
  /** What looks like a video; files in folders go to folders of the same names in this one, which are created. @returns the ids of the uploads */
  add(chosen: readonly ChosenFile[], folderId: string): string[]
  retry(id: string): void
  /** Stops it, and deletes the video that was to get the file. */
  cancel(id: string): void
  /** Takes what is sent or has failed off the list. */
  clear(): void
}

type Credentials = { clientPayload: Record<string, string>; videoId: string }
type Work = { file: File; folders: readonly string[]; folderId: string; isWithSender: boolean }

/** More would share the same connection; two hide the time that a finished one takes to be stored. */
const MAX_CONCURRENT = 2
const SPEED_WINDOW_MS = 5_000

/**
 * Uploads of this tab: a list that components subscribe to. Each gets its credentials, and so its place in the library, when its turn comes.
 * @param findFolder the id of a folder by its path, which it creates where it is missing
 * @param onVideo when a video was added or got its file
 */
export function createUploads(
  findFolder: (rootId: string, path: readonly string[]) => Promise<string>,
  onVideo: () => void,
): Uploads {
  let uploads: readonly Upload[] = []
  let leftOut: readonly string[] = []
  const work = new Map<string, Work>()
  const listeners = new Set<() => void>()
  const measured: { atMs: number; bytes: number }[] = []
  let sender: Promise<Sender> | undefined

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
    onStalled: (id: string) => change(id, { isStalled: true }),
    onSent(id: string) {
      change(id, { state: 'sent', sentBytes: find(id)?.sizeBytes ?? 0, isStalled: false })
      work.delete(id)
      onVideo()
      startNext()
    },
    onFailed: (id: string, problem: string) => fail(id, problem),
  }

  function fail(id: string, problem: string) {
    change(id, { state: 'failed', problem, isStalled: false })
    startNext()
  }

  function startNext() {
    const free = MAX_CONCURRENT - uploads.filter(({ state }) => state === 'sending').length
    for (const { id } of uploads.filter(({ state }) => state === 'waiting').slice(0, Math.max(0, free))) void start(id)
  }

  async function start(id: string): Promise<void> {
    const upload = find(id)
    const files = work.get(id)
    if (!upload || !files) return
    change(id, { state: 'sending', sentBytes: 0, problem: undefined })
    try {
      const using = await openSender()
      if (files.isWithSender) return using.retry(id)
      const folderId = await findFolder(files.folderId, files.folders)
      const { clientPayload, videoId } = await callApi<Credentials>('PUT', 'videos', { query: { title: upload.title, folderId } })
      if (!find(id)) return void removeVideo(videoId) // cancelled meanwhile
      change(id, { videoId })
      onVideo()
      const { uploadLink: _, ...fields } = clientPayload
      files.isWithSender = true
      using.send(id, files.file, { fields, url: installationUrl('upload').href })
    } catch (error) {
      fail(id, error instanceof ApiFailure ? error.message : 'A script of the console could not be loaded. Try again.')
    }
  }

  return {
    subscribe(onChange) {
      listeners.add(onChange)
      return () => listeners.delete(onChange)
    },
    list: () => uploads,
    leftOut: () => leftOut,
    bytesPerS() {
      const sinceMs = Date.now() - SPEED_WINDOW_MS
      while (measured[0] && measured[0].atMs < sinceMs) measured.shift()
      const [first] = measured
      const bytes = measured.reduce((sum, one) => sum + one.bytes, 0)
      return first ? (bytes * 1000) / Math.max(1_000, Date.now() - first.atMs) : 0
    },
    add(chosen, folderId) {
      const { videos, others } = sortOut(chosen)
      leftOut = [...leftOut, ...others]
      const added = videos.map(({ file, folders }) => {
        const id = crypto.randomUUID()
        work.set(id, { file, folders, folderId, isWithSender: false })
        return { ...NEW, id, title: titleOf(file.name), sizeBytes: file.size }
      })
      set([...uploads, ...added])
      startNext()
      return added.map(({ id }) => id)
    },
    retry(id) {
      change(id, { state: 'waiting' })
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
      set(uploads.filter(({ state }) => state === 'waiting' || state === 'sending'))
    },
  }

  /** One that will get no file. Where that fails it stays in the list, in which the owner can delete it. */
  async function removeVideo(videoId: string) {
    await callApi<unknown>('DELETE', 'videos', { body: { videos: [videoId] } }).catch(() => undefined)
    onVideo()
  }
}

const NEW = { sentBytes: 0, state: 'waiting', isStalled: false, videoId: undefined, problem: undefined } as const

/** The name without its ending, and with spaces for the underscores of cameras and programs. */
export function titleOf(fileName: string): string {
  const title = fileName
    .replace(/\.[^.]{1,5}$/, '')
    .replaceAll('_', ' ')
    .trim()
  return (title || fileName).slice(0, 500)
}
