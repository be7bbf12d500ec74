import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { request as openRequest } from 'node:http'
import { join } from 'node:path'
import { createOwner } from '../test/client.ts'
import { createTusClient } from '../test/ingest/tus-client.ts'
import { measureInterleaved, timeMs } from './interleaved.ts'
import { measureMaxMb } from './process.ts'
import type { Row, Scope } from './row.ts'
import { firstApiKey, ROOT, startBuild, startPeer, startService } from './service.ts'

const PAIRS = 3
const FILE_BYTES = 256 * 2 ** 20
const PART_BYTES = 50_000_000
const UPLOADS = 20

export const UPLOAD_ROWS: readonly Row[] = [
  {
    name: 'tus',
    what: '256 MiB in parts of 50 MB, sealed, hashed and durable; peer: @tus/server with its file store, without fsync',
    unit: 'MB per s',
    aim: { ratioAtLeast: 0.5 },
    measure: async (scope) => {
      const service = await startService(scope, join(scope.folder, 'data'))
      const peer = await startPeer(scope, 'tus.ts', scope.folder)
      const apiKey = firstApiKey(service)
      return compare(
        () => sendByTus(service.url, apiKey),
        () => sendByTus(peer.url, apiKey),
      )
    },
  },
  {
    name: 'upload-form',
    what: '256 MiB by the form; peer: the build in REELGATE_BENCH_BEFORE, or this one',
    unit: 'MB per s',
    aim: { ratioAtLeast: 1 },
    measure: async (scope) => {
      const ours = await startForms(scope, ROOT, 'ours')
      const peer = await startForms(scope, process.env.REELGATE_BENCH_BEFORE ?? ROOT, 'peer')
      return compare(ours, peer)
    },
  },
  {
    name: 'memory-uploads',
    what: `anonymous memory, its maximum while ${UPLOADS} resumable uploads of ${PART_BYTES / 1e6} MB arrive concurrently`,
    unit: 'MB',
    aim: { oursAtMost: 150 },
    measure: async (scope) => {
      const service = await startService(scope, join(scope.folder, 'data'))
      const apiKey = firstApiKey(service)
      await (await sendByTus(service.url, apiKey))()
      const uploads = () => Promise.all(Array.from({ length: UPLOADS }, () => sendByTus(service.url, apiKey, PART_BYTES)))
      return { ours: await measureMaxMb(service.pid, 'RssAnon', uploads) }
    },
  },
]

/** @returns what removes the file again */
type Send = () => Promise<() => Promise<unknown>>

async function compare(ours: Send, peer: Send) {
  const megabytesPerS = (send: Send) => async () => {
    let remove = async (): Promise<unknown> => undefined
    const ms = await timeMs(async () => {
      remove = await send()
    })
    await remove()
    return FILE_BYTES / 1e3 / ms
  }
  for (const send of [ours, peer]) await (await send())() // the first requests of a process are slow
  return measureInterleaved(PAIRS, megabytesPerS(ours), megabytesPerS(peer))
}

const part = randomBytes(PART_BYTES)

async function sendByTus(url: string, apiKey: string, fileBytes = FILE_BYTES): ReturnType<Send> {
  const tus = createTusClient({ url, apiKey })
  const { address, videoId } = await tus.create(fileBytes)
  for (let sent = 0; sent < fileBytes; sent += PART_BYTES) {
    const length = Math.min(PART_BYTES, fileBytes - sent)
    const headers = {
      Authorization: tus.authorization,
      'Tus-Resumable': '1.0.0',
      'Upload-Offset': sent,
      'Content-Type': 'application/offset+octet-stream',
    }
    await send('PATCH', address, headers, [part.subarray(0, length)])
  }
  return () => (videoId ? createOwner(url, apiKey).delete([videoId]) : tus.remove(address))
}

async function startForms(scope: Scope, root: string, name: string): Promise<Send> {
  const service = await startBuild(scope, root, join(scope.folder, name))
  return sendByForm(service.url, firstApiKey(service), FILE_BYTES)
}

export function sendByForm(url: string, apiKey: string, fileBytes: number): Send {
  const owner = createOwner(url, apiKey)
  return async () => {
    const { videoId, clientPayload } = await owner.credentials('A video')
    const { uploadLink, ...fields } = clientPayload
    const boundary = 'reelgate-bench'
    const head = (disposition: string) => `--${boundary}\r\nContent-Disposition: form-data; ${disposition}\r\n\r\n`
    const named = Object.entries(fields).map(([field, value]) => `${head(`name="${field}"`)}${value}\r\n`)
    const file = Array.from({ length: Math.ceil(fileBytes / PART_BYTES) }, (_, index) =>
      part.subarray(0, Math.min(PART_BYTES, fileBytes - index * PART_BYTES)),
    )
    const body = [
      Buffer.from(`${named.join('')}${head('name="file"; filename="video.mp4"')}`),
      ...file,
      Buffer.from(`\r\n--${boundary}--\r\n`),
    ]
    await send('POST', uploadLink, { 'Content-Type': `multipart/form-data; boundary=${boundary}` }, body)
    return () => owner.delete([videoId])
  }
}

/** @throws when the answer is not one of success */
async function send(method: string, url: string, headers: Record<string, string | number>, body: readonly Buffer[]) {
  const length = body.reduce((sum, { length }) => sum + length, 0)
  const request = openRequest(url, { method, headers: { ...headers, 'Content-Length': length } })
  const responded = once(request, 'response')
  for (const bytes of body) if (!request.write(bytes)) await once(request, 'drain')
  request.end()
  const [response] = await responded
  response.resume()
  if (response.statusCode >= 300) throw new Error(`${method} was answered with ${response.statusCode}`)
}
