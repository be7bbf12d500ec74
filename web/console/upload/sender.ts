import Uppy from '@uppy/core'
import XHRUpload from '@uppy/xhr-upload'

// Uppy's part: it sends a file as a form, reports how far it is, and repeats after a lost connection. Loaded with the first upload.

/** The fields of an upload form and where it is sent, as `PUT /videos` answers. */
export type Form = { fields: Readonly<Record<string, string>>; url: string }

export type SenderEvents = {
  onProgress(uploadId: string, sentBytes: number): void
  onStalled(uploadId: string): void
  onSent(uploadId: string): void
  onFailed(uploadId: string, message: string): void
}

export type Sender = {
  send(uploadId: string, file: File, form: Form): void
  /** Sends a file again that has failed. */
  retry(uploadId: string): void
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
    shouldRetry: ({ status }) => status === 0 || status === 429 || status >= 500,
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
  uppy.on('upload-error', (file, _error, response) => file && events.onFailed(file.meta.uploadId, failureOf(response)))

  const start = (sending: Promise<unknown>) => void sending.catch(() => undefined) // `upload-error` has said it
  return {
    send(uploadId, file, { fields, url }) {
      const meta: Meta = { ...fields, success_action_status: '201', uploadId, url, relativePath: uploadId }
      fileIds.set(uploadId, uppy.addFile({ name: file.name, type: file.type, data: file, meta, source: 'console' }))
      start(uppy.upload())
    },
    retry(uploadId) {
      const fileId = fileIds.get(uploadId)
      if (fileId !== undefined) start(uppy.retryUpload(fileId))
    },
    cancel(uploadId) {
      const fileId = fileIds.get(uploadId)
      if (fileId !== undefined && uppy.getFile(fileId)) uppy.removeFile(fileId)
    },
  }
}

/** The sentence in S3's error document; without an answer, that there was none. */
function failureOf(response: unknown): string {
  const text = response instanceof XMLHttpRequest ? response.responseText : ''
  const sentence = new DOMParser().parseFromString(text, 'application/xml').querySelector('Message')?.textContent
  return sentence ?? 'The connection to the server was lost. Check it, then try again: the file is sent from its start.'
}
