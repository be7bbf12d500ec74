import Uppy from '@uppy/core'
import XHRUpload from '@uppy/xhr-upload'
import { sentenceOfProxy } from '../proxy-refusal.ts'

// Uppy's part: it sends a file as a form, and reports how far it is. Loaded with the first upload.

/** The fields of an upload form and where it is sent, as `PUT /videos` answers. */
export type Form = { fields: Readonly<Record<string, string>>; url: string }

export type SendFailure = {
  message: string
  /** Whether the same may succeed later: no answer, too many calls, or a server that is not ready. */
  mayPass: boolean
}

export type SenderEvents = {
  onProgress(uploadId: string, sentBytes: number): void
  onStalled(uploadId: string): void
  onSent(uploadId: string): void
  onFailed(uploadId: string, failure: SendFailure): void
}

export type Sender = {
  /** Sends a file from its start; one that is being sent is cancelled. */
  send(uploadId: string, file: File, form: Form): void
  cancel(uploadId: string): void
}

const FIELDS = ['policy', 'key', 'x-amz-signature', 'x-amz-algorithm', 'x-amz-date', 'x-amz-credential', 'success_action_status']
/** After this long without progress the page says why the upload waits. It is not cancelled. */
const STALLED_AFTER_MS = 20_000

type Meta = { uploadId: string; url: string; relativePath: string; [field: string]: string }
type Reply = Record<string, never>

export function createSender(events: SenderEvents, maxConcurrent: number): Sender {
  const uppy = new Uppy<Meta, Reply>()
  uppy.use(XHRUpload<Meta, Reply>, {
    endpoint: (file) => (Array.isArray(file) ? '' : file.meta.url),
    allowedMetaFields: FIELDS, // in this order, before the file
    limit: maxConcurrent,
    timeout: STALLED_AFTER_MS,
    getResponseData: () => ({}), // the server answers in XML, of which the status is enough
    shouldRetry: () => false, // uploads.ts does, for as long as it takes
  })
  const fileIds = new Map<string, string>()
  uppy.on('upload-progress', (file, { bytesUploaded }) => file && events.onProgress(file.meta.uploadId, bytesUploaded || 0))
  uppy.on('upload-stalled', (_error, files) => {
    for (const file of files) events.onStalled(file.meta.uploadId)
  })
  uppy.on('upload-success', (file) => {
    if (!file) return
    uppy.removeFile(file.id) // its data need not be kept
    events.onSent(file.meta.uploadId)
  })
  uppy.on('upload-error', (file, _error, response) => {
    if (!file) return
    const failure = readFailure(response, file.size ?? undefined) // before its request is aborted, and with it the answer
    uppy.removeFile(file.id)
    events.onFailed(file.meta.uploadId, failure)
  })

  function cancel(uploadId: string) {
    const fileId = fileIds.get(uploadId)
    if (fileId !== undefined && uppy.getFile(fileId)) uppy.removeFile(fileId)
  }

  return {
    send(uploadId, file, { fields, url }) {
      cancel(uploadId)
      const meta: Meta = { ...fields, success_action_status: '201', uploadId, url, relativePath: uploadId }
      fileIds.set(uploadId, uppy.addFile({ name: file.name, type: file.type, data: file, meta, source: 'console' }))
      void uppy.upload().catch(() => undefined) // `upload-error` has said it
    },
    cancel,
  }
}

/** The sentence in S3's error document; else what the answer of a proxy means, or that there was none. */
function readFailure(response: unknown, sentBytes: number | undefined): SendFailure {
  const request = response instanceof XMLHttpRequest ? response : undefined
  const status = request?.status ?? 0
  const mayPass = status === 0 || status === 429 || status >= 500
  if (!request || status === 0)
    return { message: 'The connection to the server was lost. The file is sent from its start.', mayPass }
  const document = new DOMParser().parseFromString(request.responseText, 'application/xml')
  const sentence = document.querySelector('Error > Message')?.textContent
  return { message: sentence ?? sentenceOfProxy({ status, server: request.getResponseHeader('Server'), sentBytes }), mayPass }
}
