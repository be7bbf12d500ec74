import { hash } from 'node:crypto'
import { encryptSegment } from '../../crypto/content-key.ts'
import type { AddressReply, TaskBody } from '../protocol.ts'
import { type Connection, ServerRefusal } from './connection.ts'

type ClearSegment = { renditionId: number; number: number; bytes: Buffer }

/** Sends a segment of a task. @throws as `Connection` */
export type SendSegment = (task: TaskBody, segment: ClearSegment, signal: AbortSignal) => Promise<void>

/** A bucket that could not be reached is not tried again before. */
const AWAY_MS = 600_000
const LIMIT_MS = 60_000

/**
 * Segments go into the bucket of the server where that lets this worker, and else through the server.
 * @param mayPutAt whether the way to an address is protected. @param onAway called when the bucket cannot be reached
 */
export function createSegmentSender(
  connection: Connection,
  mayPutAt: (address: URL) => boolean,
  onAway: (why: string) => void,
): SendSegment {
  let awayUntilMs = 0

  return async (task, { renditionId, number, bytes }, signal) => {
    const keys = task.segmentKeys?.find((keys) => keys.renditionId === renditionId && keys.number === number)
    if (keys && performance.now() >= awayUntilMs) {
      const sealed = encryptSegment(bytes, Buffer.from(keys.keyHex, 'hex'), Buffer.from(keys.ivHex, 'hex'))
      const described = { sizeBytes: sealed.length, sha256: hash('sha256', sealed) }
      const address = await connection.findAddress(task.id, renditionId, number, described, signal)
      if (address && mayPutAt(new URL(address.url))) {
        const problem = await put(address, sealed, signal)
        if (problem === undefined && (await confirm(task.id, renditionId, number, signal))) return
        awayUntilMs = performance.now() + AWAY_MS
        onAway(problem ?? 'the server does not find what was put there')
      }
    }
    await connection.putSegment(task.id, renditionId, number, bytes, signal)
  }

  async function confirm(taskId: string, renditionId: number, number: number, signal: AbortSignal): Promise<boolean> {
    try {
      await connection.confirmStored(taskId, renditionId, number, signal)
      return true
    } catch (error) {
      if (error instanceof ServerRefusal && error.status === 409) return false
      throw error
    }
  }
}

/** @returns why it is not there, as far as this worker can see */
async function put({ url, headers }: AddressReply, sealed: Buffer, signal: AbortSignal): Promise<string | undefined> {
  const limited = AbortSignal.any([signal, AbortSignal.timeout(LIMIT_MS)])
  try {
    const body = new Uint8Array(sealed)
    const response = await fetch(url, { method: 'PUT', headers, body, signal: limited, redirect: 'error' })
    await response.body?.cancel()
    // 412: a try whose answer was lost has stored it.
    return response.ok || response.status === 412 ? undefined : `it answered ${response.status}`
  } catch (error) {
    signal.throwIfAborted()
    return error instanceof Error && error.cause instanceof Error ? error.cause.message : String(error)
  }
}
