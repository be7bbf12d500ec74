import { whyNoVideo } from '../upload/file-kinds.ts'
import { createFileSender, type SendEvents, type SendFailure, type Sending } from '../upload/send-file.ts'
import { claimUnfinished, type UnfinishedUpload } from '../upload/unfinished.ts'
import type { UploaderFile } from './reelgate.d.ts'

// The files of a <reelgate-uploader>: which are sent, when one is tried again, and by which token each was begun.

/** A file in the list. `problem`: why it has failed, or is tried again. */
export type QueuedFile = UploaderFile & { readonly isStalled: boolean; readonly isNoVideo: boolean }

type Entry = { -readonly [Key in keyof QueuedFile]: QueuedFile[Key] } & {
  keptBytes: number
  failures: number
  begun: { url: string; token: string } | undefined
  claim: Promise<UnfinishedUpload | undefined> | undefined
  unfinished: UnfinishedUpload | undefined
  sending: Sending | undefined
  timer: ReturnType<typeof setTimeout> | undefined
  /** Its token is not accepted: it continues with the next one. */
  needsToken: boolean
}

export type UploadQueue = {
  list(): readonly QueuedFile[]
  add(files: Iterable<File>): Promise<void>
  pause(file: QueuedFile): void
  /** Continues one that is paused, and tries one again that has failed or waits. */
  resume(file: QueuedFile): void
  /** Takes it off the list; an upload that has not finished is deleted. */
  remove(file: QueuedFile): void
  /** The token has changed, or the network is back. */
  continueAll(): void
  /** The element is gone. */
  pauseAll(): void
}

type QueueEvents = {
  /** Something of the file, or of the list, has changed. */
  onChange(file: QueuedFile): void
  onBegun(file: QueuedFile): void
  onSent(file: QueuedFile): void
  /** It has failed, or is tried again by itself. */
  onFailed(file: QueuedFile, failure: { status: number; willRetry: boolean }): void
  onTokenNeeded(): void
}

const MAX_CONCURRENT = 2
const MAX_PAUSE_MS = 60_000

/** @param page what the element's attributes say now */
export function createUploadQueue(page: { endpoint(): string; token(): string }, events: QueueEvents): UploadQueue {
  const sender = createFileSender(() => undefined)
  let entries: readonly Entry[] = []
  const find = (file: QueuedFile) => entries.find((entry) => entry === file)

  function change(entry: Entry, changes: Partial<Entry>) {
    Object.assign(entry, changes)
    events.onChange(entry)
  }

  function startNext() {
    const free = MAX_CONCURRENT - entries.filter(({ state }) => state === 'sending' || state === 'retrying').length
    const waiting = entries.filter(({ state }) => state === 'waiting')
    if (waiting.length > 0 && page.token() === '') return events.onTokenNeeded()
    for (const entry of waiting.slice(0, Math.max(0, free))) void start(entry)
  }

  async function start(entry: Entry): Promise<void> {
    clearTimeout(entry.timer)
    change(entry, { state: 'sending', problem: undefined, isStalled: false, sentBytes: entry.keptBytes })
    entry.claim ??= claimUnfinished(page.endpoint(), entry.file)
    entry.unfinished = await entry.claim
    if (!find(entry)) return entry.unfinished?.release()
    if (entry.state !== 'sending') return
    entry.sending?.stop()
    const kept = entry.begun ? undefined : entry.unfinished?.read()
    const begun = entry.begun ?? (kept && { url: kept.url, token: kept.token ?? page.token() })
    const token = page.token()
    entry.sending = sender.send(
      entry.file,
      {
        endpoint: page.endpoint(),
        headers: headersOf(token),
        metadata: { filename: entry.file.name },
        begun: begun && { url: begun.url, headers: headersOf(begun.token), isEarlier: kept !== undefined },
      },
      eventsOf(entry, (url) => ({ url, token: begun?.url === url ? begun.token : token })),
    )
  }

  function eventsOf(entry: Entry, beginningAt: (url: string) => { url: string; token: string }): SendEvents {
    return {
      onBegun({ url, videoId }) {
        const begun = beginningAt(url)
        if (!find(entry)) return endUpload(begun) // removed while it was being begun
        entry.unfinished?.keep(begun)
        change(entry, { begun, videoId })
        events.onBegun(entry)
      },
      onProgress: (sentBytes) => change(entry, { sentBytes, isStalled: false }),
      onKept(keptBytes) {
        if (keptBytes > entry.keptBytes) entry.failures = 0
        change(entry, { keptBytes, sentBytes: keptBytes })
      },
      onStalled() {
        change(entry, { isStalled: true })
        entry.sending?.stop()
        void start(entry).then(() => entry.state === 'sending' && change(entry, { isStalled: true }))
      },
      onSent() {
        entry.unfinished?.forget()
        release(entry)
        change(entry, { state: 'sent', sentBytes: entry.file.size, isStalled: false })
        events.onSent(entry)
        startNext()
      },
      onFailed: (failure) => fail(entry, failure),
    }
  }

  function fail(entry: Entry, failure: SendFailure): void {
    const { status, message } = failure
    if (failure.hasEnded) {
      entry.unfinished?.forget()
      Object.assign(entry, { begun: undefined, keptBytes: 0 })
    }
    const willRetry = failure.mayPass
    if (!willRetry) {
      const sentence = message ?? `The server answered with status ${status}.`
      change(entry, { state: 'failed', problem: sentence, isStalled: false, needsToken: status === 401 })
      if (status === 401) entry.begun = undefined // the next token cannot continue what this one began
      events.onFailed(entry, { status, willRetry })
      if (status === 401) events.onTokenNeeded()
      startNext()
      return
    }
    entry.failures += 1
    const pauseMs = Math.min(MAX_PAUSE_MS, 1_000 * 2 ** entry.failures)
    entry.timer = setTimeout(() => entry.state === 'retrying' && void start(entry), pauseMs)
    change(entry, { state: 'retrying', problem: message, isStalled: false, sentBytes: entry.keptBytes })
    events.onFailed(entry, { status, willRetry })
  }

  function stop(entry: Entry) {
    clearTimeout(entry.timer)
    entry.sending?.stop()
  }

  /** Another page may continue it, and this one may claim it again. */
  function release(entry: Entry) {
    entry.unfinished?.release()
    Object.assign(entry, { claim: undefined, unfinished: undefined })
  }

  function pause(entry: Entry) {
    stop(entry)
    change(entry, { state: 'paused', isStalled: false, sentBytes: entry.keptBytes })
  }

  /** Deletes what has arrived, and the video that was to get it; where that fails it expires. */
  function endUpload({ url, token }: { url: string; token: string }) {
    void fetch(url, { method: 'DELETE', headers: { ...headersOf(token), 'Tus-Resumable': '1.0.0' } }).catch(() => undefined)
  }

  return {
    list: () => entries,
    async add(files) {
      const added = [...files].map((file): Entry => ({ ...NEW, file }))
      entries = [...entries, ...added]
      for (const entry of added) {
        const why = await whyNoVideo(entry.file)
        if (!find(entry) || entry.state !== 'checking') continue
        if (why === undefined) change(entry, { state: 'waiting' })
        else {
          change(entry, { state: 'failed', problem: `This file ${why}.`, isNoVideo: true })
          events.onFailed(entry, { status: 0, willRetry: false })
        }
      }
      startNext()
    },
    pause(file) {
      const entry = find(file)
      if (entry) pause(entry)
      startNext()
    },
    resume(file) {
      const entry = find(file)
      if (!entry) return
      clearTimeout(entry.timer)
      entry.failures = 0
      change(entry, { state: 'waiting', needsToken: false })
      startNext()
    },
    remove(file) {
      const entry = find(file)
      if (!entry) return
      entries = entries.filter((other) => other !== entry)
      stop(entry)
      if (entry.state !== 'sent') {
        if (entry.begun) endUpload(entry.begun)
        entry.unfinished?.forget()
        release(entry)
      }
      events.onChange(entry)
      startNext()
    },
    continueAll() {
      for (const entry of entries.filter(({ state, needsToken }) => state === 'retrying' || needsToken)) {
        clearTimeout(entry.timer)
        change(entry, { state: 'waiting', needsToken: false })
      }
      startNext()
    },
    pauseAll() {
      for (const entry of entries.filter(isUnderWay)) {
        pause(entry)
        release(entry)
      }
    },
  }
}

export function isUnderWay({ state }: QueuedFile): boolean {
  return state === 'checking' || state === 'waiting' || state === 'sending' || state === 'retrying'
}

const NEW: Omit<Entry, 'file'> = {
  state: 'checking',
  sentBytes: 0,
  videoId: undefined,
  problem: undefined,
  isStalled: false,
  isNoVideo: false,
  keptBytes: 0,
  failures: 0,
  begun: undefined,
  claim: undefined,
  unfinished: undefined,
  sending: undefined,
  timer: undefined,
  needsToken: false,
}

function headersOf(token: string): Record<string, string> {
  return { Authorization: `Bearer ${token}` }
}
