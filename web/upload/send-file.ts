import { DetailedError, Upload } from 'tus-js-client'
import { isReadable } from './file-kinds.ts'

// Sends files in parts, by tus (docs/resumable-uploads.md), for the console and for <reelgate-uploader>. tus-js-client does one attempt;
// when the next one is due its caller decides, who knows what else waits.

/** Where a file goes. */
export type UploadTarget = {
  endpoint: string
  /** Sent with each request: the credential of the page. */
  headers: Headers
  metadata: Readonly<Record<string, string>>
  /** The upload that was begun before: it continues. */
  begun: BegunUpload | undefined
}

type Headers = Readonly<Record<string, string>>

type BegunUpload = {
  url: string
  headers: Headers
  /** By an earlier page: when it has ended meanwhile, or its credential has, the file is begun again without a question. */
  isEarlier: boolean
}

export type SendFailure = {
  /** 0: there was no answer. */
  status: number
  /** In the server's words, or about the file. Undefined: the answer, if any, is that of a proxy. */
  message: string | undefined
  /** The header `Server`, where the page may read it. */
  server: string | null
  /** Of the part that was being sent, if it was one. */
  partBytes: number
  /** Whether the same may succeed later: no answer, another connection that has the upload, too many calls, or a server that is not ready. */
  mayPass: boolean
  /** Whether there is no such upload any more. */
  hasEnded: boolean
  /** Whether it may not be continued with this credential. */
  isRefused: boolean
}

export type SendEvents = {
  /** The upload exists, or was found again. */
  onBegun(upload: { url: string; videoId: string | undefined }): void
  onProgress(sentBytes: number): void
  /** So many bytes have arrived for good, at the beginning of an attempt and after each part. */
  onKept(keptBytes: number): void
  onStalled(): void
  onSent(): void
  onFailed(failure: SendFailure): void
}

/** A file on its way. */
export type Sending = {
  /** Stops; what has arrived stays. Nothing is reported any more but `onBegun`, if the upload is being begun. */
  stop(): void
  /** Resolves when the upload exists or has failed. */
  begun: Promise<void>
}

export type FileSender = {
  send(file: File, target: UploadTarget, events: SendEvents): Sending
  /** Ends an upload that was begun: the server deletes what has arrived. A connection that was just stopped may hold it for a moment. */
  discard(url: string, headers: Headers): Promise<void>
}

/** Passes Cloudflare's limit, which is 100 MB, in a time that a lost connection may cost. */
const LARGEST_PART_BYTES = 50_000_000
/** No proxy has a lower limit for any upload. */
const SMALLEST_PART_BYTES = 64_000
/** Where connections break off, shorter parts would cost more time than they save. */
const SMALLEST_BROKEN_PART_BYTES = 1_000_000
const STALLED_AFTER_MS = 20_000
const DISCARD_RETRIES_MS = [500, 2_000, 5_000]

/**
 * Parts begin large. They are halved where a proxy refuses them, which the page of another site sees as a connection that breaks off; and
 * where one does, since a proxy that collects a part before it passes it on has kept nothing of it then. All files of a page share the
 * size, for they take the same way.
 * @param onSmallerParts called once, with the first part that a proxy refused
 */
export function createFileSender(onSmallerParts: (refusal: SendFailure) => void): FileSender {
  let partBytes = LARGEST_PART_BYTES
  let isSaid = false

  /** @returns whether smaller ones than this may pass */
  function halve(failedBytes: number, smallestBytes: number): boolean {
    if (failedBytes <= smallestBytes) return false
    partBytes = Math.min(partBytes, Math.max(smallestBytes, Math.ceil(failedBytes / 2)))
    return true
  }

  /** @returns whether the file goes on immediately */
  function makeSmaller(failure: SendFailure): boolean {
    if (failure.status === 0) return halve(failure.partBytes, SMALLEST_BROKEN_PART_BYTES)
    if (failure.status !== 413 || failure.message !== undefined || !halve(failure.partBytes, SMALLEST_PART_BYTES)) return false
    if (!isSaid) onSmallerParts(failure)
    isSaid = true
    return true
  }

  return {
    send(file, target, events) {
      const begun = Promise.withResolvers<void>()
      let { begun: earlier } = target
      let isBegun = false
      let isStopped = false
      let keptBytes = 0
      let attempt = createAttempt()
      let stalled: ReturnType<typeof setTimeout> | undefined

      function createAttempt(): Upload {
        const chunkSize = partBytes
        let videoId: string | undefined
        const upload = new Upload(file, {
          ...(earlier === undefined ? { endpoint: target.endpoint } : { uploadUrl: earlier.url }),
          ...{ headers: { ...(earlier ?? target).headers }, metadata: { ...target.metadata }, chunkSize },
          ...{ retryDelays: null, storeFingerprintForResuming: false },
          onBeforeRequest(request) {
            if (isStopped && request.getMethod() !== 'POST') throw new Error('stopped')
            watch()
          },
          onAfterResponse(_request, response) {
            videoId = response.getHeader('Reelgate-Video-Id') ?? videoId
            const offset = response.getHeader('Upload-Offset')
            if (isStopped || !offset) return
            keptBytes = Number(offset)
            events.onKept(keptBytes)
          },
          onUploadUrlAvailable() {
            isBegun = true
            if (upload.url === null) return
            earlier ??= { url: upload.url, headers: target.headers, isEarlier: false }
            events.onBegun({ url: upload.url, videoId })
            begun.resolve()
          },
          onProgress(sentBytes) {
            watch()
            if (!isStopped) events.onProgress(sentBytes)
          },
          onSuccess: () => end(() => events.onSent()),
          onError: (error) => end(() => void fail(error, Math.min(chunkSize, file.size - keptBytes))),
        })
        return upload
      }

      function start() {
        attempt = createAttempt()
        attempt.start()
      }

      /** What waits for an answer, or for room in the connection, is stalled after a while. */
      function watch() {
        clearTimeout(stalled)
        if (!isStopped) stalled = setTimeout(() => events.onStalled(), STALLED_AFTER_MS)
      }

      function end(report: () => void) {
        clearTimeout(stalled)
        if (!isStopped) report()
      }

      async function fail(error: Error, partBytes: number) {
        const failure = readFailure(error, partBytes, target.endpoint)
        if (failure.status === 0 && !(await isReadable(file))) {
          const message = 'The file was moved, changed or deleted on your disk. Add it again.'
          return report({ ...failure, message, mayPass: false })
        }
        if (isStopped) return
        if ((failure.hasEnded || failure.isRefused) && earlier?.isEarlier && !isBegun) {
          earlier = undefined
          return start()
        }
        if (makeSmaller(failure)) return start()
        report(failure)
      }

      function report(failure: SendFailure) {
        begun.resolve()
        if (!isStopped) events.onFailed(failure)
      }

      attempt.start()
      return {
        stop() {
          isStopped = true
          clearTimeout(stalled)
          begun.resolve()
          if (earlier) void attempt.abort()
        },
        begun: begun.promise,
      }
    },
    discard: (url, headers) => Upload.terminate(url, { headers: { ...headers }, retryDelays: DISCARD_RETRIES_MS }),
  }
}

function readFailure(error: Error, partBytes: number, endpoint: string): SendFailure {
  const response = error instanceof DetailedError ? error.originalResponse : null
  const method = error instanceof DetailedError ? error.originalRequest.getMethod() : undefined
  const status = response?.getStatus() ?? 0
  const isOwn = new URL(endpoint).origin === location.origin
  return {
    status,
    mayPass: status === 0 || status === 409 || status === 423 || status === 429 || status >= 500,
    hasEnded: method !== 'POST' && (status === 404 || status === 410),
    isRefused: status === 401 || status === 403,
    message: response ? readMessage(response.getBody()) : undefined,
    server: isOwn ? (response?.getHeader('Server') ?? null) : null, // of another origin it cannot be read
    partBytes: method === 'PATCH' ? partBytes : 0,
  }
}

/** The sentence of Reelgate's errors. */
function readMessage(body: string): string | undefined {
  try {
    const reply: { message?: unknown } | null = JSON.parse(body)
    return typeof reply?.message === 'string' ? reply.message : undefined
  } catch {
    return undefined
  }
}
