import { execFile, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Scope } from './row.ts'

const SCRIPT = join(import.meta.dirname, 'wrk.lua')

/** Sends requests until the returned function is called, whatever they are answered. */
export async function startFlood(scope: Scope, url: string, { requests, connections = 50 }: Load): Promise<() => Promise<void>> {
  const file = join(scope.folder, randomUUID())
  await writeFile(file, requests.map((request) => `${Buffer.byteLength(request)}\n${request}`).join(''))
  const args = ['-t1', `-c${connections}`, '-d60s', '-s', SCRIPT, url, '--', file]
  const wrk = spawn('wrk', args, { stdio: 'ignore' })
  const ended = once(wrk, 'close')
  return async () => {
    wrk.kill('SIGKILL')
    await ended
    await rm(file)
  }
}

/** As many connections as ask at once, each for its next answer as soon as it has one. */
export type Load = { requests: readonly string[]; connections?: number; seconds?: number }

/**
 * Asks a server with wrk: a client in Node would need more of the two cores than the server.
 * @returns answers a second
 * @throws Error when any answer is a refusal, or a connection breaks: such a figure would say nothing
 */
export async function answersPerS(scope: Scope, url: string, { requests, connections = 50, seconds = 2 }: Load): Promise<number> {
  const file = join(scope.folder, randomUUID())
  await writeFile(file, requests.map((request) => `${Buffer.byteLength(request)}\n${request}`).join(''))
  const args = ['-t1', `-c${connections}`, `-d${seconds}s`, '--timeout', '10s', '-s', SCRIPT, url, '--', file]
  const { stdout } = await promisify(execFile)('wrk', args)
  await rm(file)
  const said: { requests: number; durationUs: number; refused: number; broken: number } = JSON.parse(
    stdout.slice(stdout.lastIndexOf('{')),
  )
  if (said.requests === 0 || said.refused > 0 || said.broken > 0)
    throw new Error(`${url} gave ${said.requests} answers, ${said.refused} of them refusals; ${said.broken} connections broke`)
  return said.requests / (said.durationUs / 1e6)
}

/** A request as it goes over the wire, on a connection that is kept. */
export function rawRequest(method: string, path: string, headers: Record<string, string> = {}, body = ''): string {
  const all = { Host: '127.0.0.1', ...headers, ...(body === '' ? {} : { 'Content-Length': String(Buffer.byteLength(body)) }) }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  return `${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n${body}`
}
