import { execFile, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { measureInterleaved } from './interleaved.ts'
import type { Measured, Scope } from './row.ts'
import { type ListeningProcess, startService } from './service.ts'

const SCRIPT = join(import.meta.dirname, 'wrk.lua')

/** Sends requests until the returned function is called, whatever the responses are. Of low priority: a flood has a machine of its own. */
export async function startFlood(scope: Scope, url: string, { requests, connections = 50 }: Load): Promise<() => Promise<void>> {
  const file = join(scope.folder, randomUUID())
  await writeFile(file, requests.map((request) => `${Buffer.byteLength(request)}\n${request}`).join(''))
  const args = ['-t1', `-c${connections}`, '-d60s', '-s', SCRIPT, url, '--', file]
  const wrk = spawn('nice', ['-n19', 'wrk', ...args], { stdio: 'ignore' })
  const ended = once(wrk, 'close')
  return async () => {
    wrk.kill('SIGKILL')
    await ended
    await rm(file)
  }
}

const FLOODED_PAIRS = 5

/**
 * Measures a service while another client floods it; its peer is the same service without the flood.
 * @param prepare returns what measures once, in its unit. Requests name their addresses in `X-Forwarded-For`, since each has its own limits
 */
export async function measureFlooded(
  scope: Scope,
  requests: readonly string[],
  prepare: (service: ListeningProcess) => Promise<() => Promise<number>>,
): Promise<Measured> {
  const environment = { REELGATE_LIMITS: '{}', REELGATE_TRUSTED_PROXIES: '127.0.0.1' }
  const service = await startService(scope, join(scope.folder, 'data'), environment)
  const measure = await prepare(service)
  await measure()
  const flooded = async () => {
    const stop = await startFlood(scope, service.url, { requests, connections: 8 })
    return measure().finally(stop)
  }
  return measureInterleaved(FLOODED_PAIRS, flooded, measure)
}

/** Each connection sends its next request as soon as it has a response. */
export type Load = { requests: readonly string[]; connections?: number; seconds?: number }

/**
 * Measures a server with wrk: a client in Node would use more of the two cores than the server.
 * @returns responses per second
 * @throws Error when any response is an error, or a connection breaks: the figure would be meaningless
 */
export async function measureResponsesPerS(
  scope: Scope,
  url: string,
  { requests, connections = 50, seconds = 2 }: Load,
): Promise<number> {
  const file = join(scope.folder, randomUUID())
  await writeFile(file, requests.map((request) => `${Buffer.byteLength(request)}\n${request}`).join(''))
  const args = ['-t1', `-c${connections}`, `-d${seconds}s`, '--timeout', '10s', '-s', SCRIPT, url, '--', file]
  const { stdout } = await promisify(execFile)('wrk', args)
  await rm(file)
  const result: { requests: number; durationUs: number; refused: number; broken: number } = JSON.parse(
    stdout.slice(stdout.lastIndexOf('{')),
  )
  if (result.requests === 0 || result.refused > 0 || result.broken > 0)
    throw new Error(
      `${url} sent ${result.requests} responses, ${result.refused} of them errors; ${result.broken} connections broke`,
    )
  return result.requests / (result.durationUs / 1e6)
}

/** A request as it is sent, for a persistent connection. */
export function formatRequest(method: string, path: string, headers: Record<string, string> = {}, body = ''): string {
  const all = { Host: '127.0.0.1', ...headers, ...(body === '' ? {} : { 'Content-Length': String(Buffer.byteLength(body)) }) }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  return `${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n${body}`
}
