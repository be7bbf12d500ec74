import { setTimeout as pause } from 'node:timers/promises'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import {
  type AddressBody,
  AddressReply,
  CLAIM_WAIT_MS,
  type ClaimBody,
  type EndBody,
  HEARTBEAT_MS,
  LEASE_MS,
  PROTOCOL_HEADER,
  PROTOCOL_VERSION,
  TaskBody,
} from '../protocol.ts'

/** The server refused a request; trying again would change nothing. */
export class ServerRefusal extends Error {
  readonly status: number
  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

/** What a worker asks its server. Each call tries again while the server cannot be reached. @throws ServerRefusal; the signal's reason */
export type Connection = {
  /** Undefined: there was no chunk for a while. */
  claim(body: ClaimBody, signal: AbortSignal): Promise<TaskBody | undefined>
  /** Part of the source, at most as much as was asked for. */
  readSource(taskId: string, range: { first: number; last: number }, signal: AbortSignal): Promise<Buffer>
  putInit(taskId: string, renditionId: number, bytes: Buffer, signal: AbortSignal): Promise<void>
  putSegment(taskId: string, renditionId: number, number: number, bytes: Buffer, signal: AbortSignal): Promise<void>
  /** Where a segment may be put instead. Undefined: nowhere. */
  findAddress(
    taskId: string,
    renditionId: number,
    number: number,
    body: AddressBody,
    signal: AbortSignal,
  ): Promise<AddressReply | undefined>
  /** A segment was put there. */
  confirmStored(taskId: string, renditionId: number, number: number, signal: AbortSignal): Promise<void>
  beat(taskId: string, signal: AbortSignal): Promise<void>
  end(taskId: string, body: EndBody, signal: AbortSignal): Promise<void>
}

const FIRST_PAUSE_MS = 500
const MAX_PAUSE_MS = 10_000
/** What a proxy in front answers while the server is restarted. */
const AWAY = [502, 503, 504]

const ErrorBody = Type.Object({ message: Type.String() })

type Call = {
  method: 'GET' | 'POST' | 'PUT'
  path: string
  json?: unknown
  bytes?: Buffer
  range?: string
  signal: AbortSignal
  /** After it the request is sent again: a connection whose other end has gone, or whose way is cut, is silent for ever. */
  limitMs?: number
}

/** Of what is answered immediately. While a segment or a part of the source is on a slow way, the heartbeats find out. */
const ANSWERED_WITHIN_MS = HEARTBEAT_MS

/** @param base the server's public URL, protected by TLS. @param onAway called once when the server cannot be reached */
export function connect(base: string, token: string, onAway: (why: string) => void): Connection {
  let isAway = false

  async function call({ method, path, json, bytes, range, signal, limitMs }: Call, patienceMs = LEASE_MS): Promise<Response> {
    const headers = {
      Authorization: `Bearer ${token}`,
      [PROTOCOL_HEADER]: PROTOCOL_VERSION,
      ...(json === undefined ? {} : { 'Content-Type': 'application/json' }),
      ...(bytes === undefined ? {} : { 'Content-Type': 'application/octet-stream' }),
      ...(range === undefined ? {} : { Range: range }),
    }
    const body = bytes ? new Uint8Array(bytes) : json === undefined ? null : JSON.stringify(json)
    const startMs = performance.now()
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(MAX_PAUSE_MS, 2 * pauseMs)) {
      signal.throwIfAborted()
      const limited = limitMs === undefined ? signal : AbortSignal.any([signal, AbortSignal.timeout(limitMs)])
      // Not to another place: it would get the token.
      const options = { method, headers, body, signal: limited, redirect: 'error' } as const
      const response = await fetch(`${base}/worker${path}`, options).catch((error) => {
        signal.throwIfAborted()
        return describe(error)
      })
      if (typeof response !== 'string' && !AWAY.includes(response.status) && response.status !== 429) {
        isAway = false
        if (response.ok) return response
        throw new ServerRefusal(response.status, await readMessage(response))
      }
      const why = typeof response === 'string' ? response : `it answered ${response.status}`
      if (typeof response !== 'string') await response.body?.cancel()
      if (!isAway) onAway(why)
      isAway = true
      if (performance.now() - startMs > patienceMs) throw new ServerRefusal(0, `the server cannot be reached: ${why}`)
      await pause(pauseMs, undefined, { signal })
    }
  }

  return {
    async claim(json, signal) {
      const limitMs = CLAIM_WAIT_MS + ANSWERED_WITHIN_MS
      const response = await call({ method: 'POST', path: '/claim', json, signal, limitMs }, Number.POSITIVE_INFINITY)
      if (response.status === 204) return undefined
      const task: unknown = await response.json()
      if (Value.Check(TaskBody, task)) return task
      throw new ServerRefusal(409, 'The server sent a task that this version does not know: install the version of the server.')
    },
    async readSource(taskId, { first, last }, signal) {
      const response = await call({ method: 'GET', path: `/tasks/${taskId}/source`, range: `bytes=${first}-${last}`, signal })
      return Buffer.from(await response.arrayBuffer())
    },
    async putInit(taskId, renditionId, bytes, signal) {
      await call({ method: 'PUT', path: `/tasks/${taskId}/init/${renditionId}`, bytes, signal })
    },
    async putSegment(taskId, renditionId, number, bytes, signal) {
      await call({ method: 'PUT', path: `/tasks/${taskId}/segments/${renditionId}/${number}`, bytes, signal })
    },
    async findAddress(taskId, renditionId, number, json, signal) {
      const path = `/tasks/${taskId}/segments/${renditionId}/${number}/address`
      const response = await call({ method: 'POST', path, json, signal, limitMs: ANSWERED_WITHIN_MS })
      if (response.status === 204) return undefined
      const reply: unknown = await response.json()
      return Value.Check(AddressReply, reply) ? reply : undefined
    },
    async confirmStored(taskId, renditionId, number, signal) {
      await call({ method: 'POST', path: `/tasks/${taskId}/segments/${renditionId}/${number}/stored`, signal })
    },
    async beat(taskId, signal) {
      await call({ method: 'POST', path: `/tasks/${taskId}/heartbeat`, signal, limitMs: ANSWERED_WITHIN_MS })
    },
    async end(taskId, json, signal) {
      await call({ method: 'POST', path: `/tasks/${taskId}/end`, json, signal })
    },
  }
}

async function readMessage(response: Response): Promise<string> {
  const body: unknown = await response.json().catch(() => undefined)
  return Value.Check(ErrorBody, body) ? body.message : `it answered ${response.status}`
}

function describe(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
  return cause instanceof Error ? cause.message : String(cause)
}
