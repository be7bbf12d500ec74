import { createHash } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { expect, onTestFinished } from 'vitest'
import type { Owner, UploadCredentials } from '../client.ts'
import { readRows } from '../rows.ts'

/** Owners' servers that call one thing after the other, whatever the answers are, with those answers. */
export type Load = {
  /** Videos whose creation was acknowledged. */
  videoIds: string[]
  /** OTPs that were handed out. */
  otps: string[]
  /** Refusals in the right words: come again. */
  refusals: number
  /** Answers that no client should ever get, or that never came. */
  odd: string[]
  /** Resolves when so many more calls have gone through. */
  goesOn(calls?: number): Promise<void>
  /** Resolves when so many more calls have been refused. */
  isRefused(calls?: number): Promise<void>
  stop(): Promise<void>
}

/** Longer than any answer may take, whatever the database does. */
const HANGS_MS = 45_000
/** Between a refusal and the next call: a client that came back immediately would only load the machine. */
const AFTER_REFUSAL_MS = 20

/** @param videoId a video that plays */
export function startLoad(owner: Owner, videoId: string, clients = 8): Load {
  let isStopping = false
  let done = 0
  const load = { videoIds: [] as string[], otps: [] as string[], odd: [] as string[], refusals: 0 }

  const ACTS = [
    async () => {
      const made = await ask<UploadCredentials>('PUT', `/api/videos?title=video%20${done}`)
      if (made) load.videoIds.push(made.videoId)
    },
    async () => {
      const issued = await ask<{ otp: string }>('POST', `/api/videos/${videoId}/otp`, {})
      if (issued) load.otps.push(issued.otp)
    },
    () => ask('GET', '/api/videos?limit=5'),
    () => ask('GET', '/api/videos?q=video'),
  ]

  async function ask<T>(method: string, path: string, body?: unknown): Promise<T | undefined> {
    const begunMs = performance.now()
    try {
      const answer = await owner.call(method, path, { body, signal: AbortSignal.timeout(HANGS_MS) })
      const text = await answer.text()
      if (answer.status === 200) {
        done++
        return JSON.parse(text)
      }
      if (answer.status === 503 && /^\d+$/.test(answer.headers.get('retry-after') ?? '')) load.refusals++
      else load.odd.push(`${method} ${path}: ${answer.status} ${text}`)
    } catch (error) {
      load.odd.push(`${method} ${path}: ${error} after ${Math.round(performance.now() - begunMs)} ms`)
    }
    await pause(AFTER_REFUSAL_MS)
    return undefined
  }

  const calling = Array.from({ length: clients }, async (_, client) => {
    for (let i = client; !isStopping; i++) await ACTS[i % ACTS.length]?.()
  })
  const stop = async () => {
    isStopping = true
    await Promise.all(calling)
  }
  onTestFinished(stop)
  return Object.assign(load, {
    async goesOn(calls = 100) {
      const wanted = done + calls
      await expect.poll(() => done).toBeGreaterThanOrEqual(wanted)
    },
    async isRefused(calls = 20) {
      const wanted = load.refusals + calls
      await expect.poll(() => load.refusals).toBeGreaterThanOrEqual(wanted)
    },
    stop,
  })
}

/** What was acknowledged and is not there. */
export function findLost(
  reelgate: Parameters<typeof readRows>[0],
  { videoIds, otps }: Pick<Load, 'videoIds' | 'otps'>,
): string[] {
  const videos = new Set(readRows<{ id: string }>(reelgate, 'select id from video').map(({ id }) => id))
  const hashes = new Set(readRows<{ hash: Buffer }>(reelgate, 'select hash from otp').map(({ hash }) => hash.toString('hex')))
  return [
    ...videoIds.filter((id) => !videos.has(id)),
    ...otps.filter((otp) => !hashes.has(createHash('sha256').update(otp).digest('hex'))),
  ]
}
