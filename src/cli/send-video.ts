import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createReadStream } from 'node:fs'
import { type IncomingMessage, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { Failure } from '../errors.ts'

type VideoUpload = { url: string; form: Record<string, string>; path: string; fileName: string; sizeBytes: number }

/**
 * Sends a file with an upload form like any client, and reports how many bytes were sent.
 * Resolves when the server has stored it durably.
 * @throws Failure with the server's message; the signal's reason when aborted
 */
export async function uploadVideo(upload: VideoUpload, onProgress: (sentBytes: number) => void, signal: AbortSignal) {
  const boundary = `reelgate-${randomBytes(16).toString('hex')}`
  const head = Buffer.from(formHead(upload, boundary))
  const tail = Buffer.from(`\r\n--${boundary}--\r\n`)
  const call = request(upload.url, {
    method: 'POST',
    agent: false,
    signal,
    headers: {
      'Content-Type': `multipart/form-data; boundary=${boundary}`,
      'Content-Length': head.length + upload.sizeBytes + tail.length,
    },
  })
  const response = new Promise<IncomingMessage>((resolve, reject) => call.once('response', resolve).once('error', reject))
  const responded = response.catch(() => undefined) // an upload that is too large is rejected before its end
  let hasResponse = false
  void responded.then(() => {
    hasResponse = true
  })

  call.write(head)
  let sentBytes = 0
  for await (const bytes of createReadStream(upload.path, { end: upload.sizeBytes - 1, highWaterMark: 2 ** 18, signal })) {
    if (hasResponse) break
    if (!call.write(bytes)) await Promise.race([once(call, 'drain').catch(() => undefined), responded])
    sentBytes += bytes.length
    onProgress(sentBytes)
  }
  if (sentBytes < upload.sizeBytes && !hasResponse) {
    call.destroy()
    await responded
    throw new Failure('conflict', 'The file became shorter while it was read. Try again when no program writes to it.')
  }
  call.end(tail)

  const received = await response.catch((cause: unknown) => {
    signal.throwIfAborted()
    throw new Failure('unavailable', 'The connection to the server broke off while the video was being sent. Try again.', {
      cause,
    })
  })
  const body = await text(received)
  if (received.statusCode !== 201) throw new Failure('invalid', readMessage(body))
}

function formHead({ form, fileName }: VideoUpload, boundary: string): string {
  const fields = Object.entries({ ...form, success_action_status: '201' }).map(
    ([name, value]) => `--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`,
  )
  const name = fileName.replace(/[\r\n"]/g, '_')
  return `${fields.join('')}--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="${name}"\r\nContent-Type: application/octet-stream\r\n\r\n`
}

/** The `Message` of the server's XML. */
function readMessage(xml: string): string {
  const [, message] = /<Message>([^<]*)<\/Message>/.exec(xml) ?? []
  return message?.replaceAll('&quot;', '"').replaceAll('&apos;', "'").replaceAll('&amp;', '&') ?? 'The server rejected the video.'
}
