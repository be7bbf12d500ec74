import { closeSync, openSync, writeSync } from 'node:fs'

import { Failure } from '../../src/errors.ts'
import { NoAnswer } from '../client.ts'

// What the clients asked and what they received, in the manner of Jepsen: an answer that never came is *unknown*, never a failure.

/** One call of a client, with what its answer reported; the first fields are known before it is sent. */
export type Call =
  | { kind: 'create'; title: string; videoId?: string }
  | { kind: 'upload'; videoId: string; sha256: string; isVideo: boolean }
  /** `arrivedBytes`: what the server said; `sentBytes`: to where the file has been sent, 0 for a question. */
  | { kind: 'part'; videoId: string; sentBytes: number; arrivedBytes?: number }
  | { kind: 'list'; seen?: Seen[] }
  | { kind: 'one'; videoId: string; seen?: Seen[] }
  | { kind: 'edit'; videoId: string; title: string }
  | { kind: 'tag'; how: 'add' | 'replace' | 'remove'; videoIds: string[]; tags: string[] }
  | { kind: 'otp'; videoId: string; otp?: string }
  | { kind: 'redeem'; videoId: string; otp: string; viewer: number; session?: string }
  | { kind: 'key'; videoId: string; session: string; key?: string }
  | { kind: 'delete'; videoIds: string[] }
  | { kind: 'make-key'; keyId?: string; secret?: string }
  | { kind: 'revoke-key'; keyId: string }
  | { kind: 'use-key'; keyId: string }

export type Seen = { id: string; status: string; title: string; tags: readonly string[] }

export type CallOf<K extends Call['kind']> = Extract<Call, { kind: K }>

/** `ok` and `fail` were answered; `info` may have happened or not. `start` and `end` are places in one order of all clients. */
export type Op = Call & Received
type Received = { client: number; start: number; end: number; outcome: 'ok' | 'fail' | 'info'; status: number }

/** What came of sending a call: the HTTP status, and what of the answer belongs into the call. */
export type Answer<C extends Call> = { status: number; reported?: Partial<C> }

export type History = ReturnType<typeof openHistory>

/** @param path the log of every call, one JSON line when it begins and one when it ends; outside the service's folder */
export function openHistory(path: string) {
  const file = openSync(path, 'w')
  let order = 0
  let ops: Op[] = []
  let calls = 0
  let awaited = { calls: Number.POSITIVE_INFINITY, resolve() {} }

  /** @param C the call, with what its answer will report of it */
  async function record<C extends Call>(client: number, call: C, send: () => Promise<Answer<C>>): Promise<C & Received> {
    const start = order++
    const begunMs = performance.now()
    if (++calls >= awaited.calls) awaited.resolve()
    writeSync(file, `${JSON.stringify({ type: 'invoke', client, start, ...call })}\n`)
    // A connection that breaks, or an answer that breaks off, tells nothing of what was done.
    const answer = await send().catch((error): Answer<C> => {
      if (error instanceof NoAnswer) throw error
      return { status: isRefusal(error) ? 409 : 0 }
    })
    const outcome: Received['outcome'] =
      answer.status >= 200 && answer.status < 400 ? 'ok' : answer.status >= 400 && answer.status < 500 ? 'fail' : 'info'
    const op = Object.assign({}, call, answer.reported, { client, start, end: order++, outcome, status: answer.status })
    writeSync(file, `${JSON.stringify({ type: outcome, tookMs: Math.round(performance.now() - begunMs), ...op })}\n`)
    ops.push(op)
    return op
  }

  return {
    record,
    /** The calls since the last time; none is under way. */
    take(): Op[] {
      const taken = ops
      ops = []
      return taken
    },
    /** The same, and leaves them for `take`. */
    peek: (): readonly Op[] => ops,
    /** The place of the next beginning or end of a call. */
    get order() {
      return order
    },
    /** Resolves when so many more calls have begun: a busy machine takes its time. */
    after(more: number): Promise<void> {
      return new Promise((resolve) => {
        awaited = { calls: calls + more, resolve }
      })
    },
    get calls() {
      return calls
    },
    close: () => closeSync(file),
  }
}

/** A command that the running server refused in words. */
function isRefusal(error: unknown): boolean {
  return error instanceof Failure && error.kind !== 'unavailable'
}
