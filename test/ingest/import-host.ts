import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { expect } from 'vitest'
import type { Owner, VideoBody } from '../client.ts'
import type { World } from '../ssrf/network-namespace.ts'
import { makeVideo } from '../videos.ts'

/** A web site of a test's own in that world. @returns its address */
export type NewHost = (listener: RequestListener) => Promise<string>

/** @param network the first three numbers of the hosts' addresses */
export function hostsIn(world: World, network: string): NewHost {
  let hosts = 0
  return async (listener) => {
    hosts += 1
    world.names.set(`host-${hosts}.example`, [`${network}.${hosts}`])
    await world.site(`${network}.${hosts}`, listener)
    return `http://host-${hosts}.example`
  }
}

/** What a host sends where the test needs no video that plays: it is received, probed and not encoded. */
export const LETTER = Buffer.from('Dear diary, this is not a video. '.repeat(10))
/** How its video ends. */
export const LETTER_RECEIVED = { status: 'Not a media file', statusReason: expect.stringMatching(/^The file /) }

/** Asks for an import. @returns the video's id */
export async function beginImport(owner: Owner, url: string, title?: string): Promise<string> {
  const answer = await owner.call('PUT', '/api/videos/importUrl', { body: { url, title } })
  if (answer.status !== 200) throw new Error(`${url}: ${answer.status} ${await answer.text()}`)
  return ((await answer.json()) as { id: string }).id
}

/** What has become of an import when it plays, or never will. */
export async function untilDecided(owner: Owner, id: string): Promise<VideoBody> {
  for (;;) {
    const video = await owner.video(id)
    if (!['Queued', 'Processing'].includes(video.status)) return video
    await pause(100)
  }
}

export async function outcomeOf(owner: Owner, url: string): Promise<VideoBody> {
  return untilDecided(owner, await beginImport(owner, url))
}

/** An import that fails. @returns its status and the reason, in one line */
export async function failureOf(owner: Owner, url: string): Promise<string> {
  const [reason = ''] = await failuresOf(owner, [url])
  return reason
}

/** Imports that run concurrently and fail; asks for one after the other, since asking for all costs more than they do. */
export async function failuresOf(owner: Owner, urls: readonly string[]): Promise<string[]> {
  const ids = await Promise.all(urls.map((url) => beginImport(owner, url)))
  const reasons: string[] = []
  for (const id of ids) {
    const { status, statusReason } = await untilDecided(owner, id)
    reasons.push(`${status}: ${statusReason}`)
  }
  return reasons
}

/** A video of at least so many bytes: what players skip lies behind it. */
export async function makeLargeVideo(paddingBytes: number): Promise<Buffer> {
  const box = Buffer.concat([Buffer.alloc(4), Buffer.from('free'), randomBytes(paddingBytes - 8)])
  box.writeUInt32BE(paddingBytes)
  return Buffer.concat([await readFile(await makeVideo()), box])
}

/** Answers as a file server does: whole, or the rest from where it is asked for. @param sentBytes then it sends no more and stays open */
export function sendFile(
  request: IncomingMessage,
  response: ServerResponse,
  file: Buffer,
  { etag, sentBytes = Number.POSITIVE_INFINITY }: { etag?: string; sentBytes?: number } = {},
): void {
  const [, from = '0'] = /^bytes=(\d+)-$/.exec(request.headers.range ?? '') ?? []
  const isPart = request.headers.range !== undefined && etag !== undefined && request.headers['if-range'] === etag
  const start = isPart ? Number(from) : 0
  response.writeHead(isPart ? 206 : 200, {
    'Content-Type': 'video/mp4',
    'Content-Length': file.length - start,
    ...(etag !== undefined && { ETag: etag }),
    ...(isPart && { 'Content-Range': `bytes ${start}-${file.length - 1}/${file.length}` }),
  })
  if (start + sentBytes >= file.length) response.end(file.subarray(start))
  else response.write(file.subarray(start, start + sentBytes))
}
