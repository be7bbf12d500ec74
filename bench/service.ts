import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import type { Scope } from './row.ts'

const ROOT = join(import.meta.dirname, '..')

/** A process that answers HTTP on loopback. */
export type Listening = { url: string; pid: number; output(): string; kill(): Promise<void> }

/** Starts a program and waits until it says where it listens; it ends with the scope. */
export async function startListening(
  scope: Scope,
  [command = '', ...args]: readonly string[],
  env: Record<string, string> = {},
): Promise<Listening> {
  const child = spawn(command, args, {
    env: { PATH: process.env.PATH ?? '', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const ended = once(child, 'close')
  const kill = async () => {
    child.kill('SIGKILL')
    await ended
  }
  scope.defer(kill)
  const said = { text: '' }
  const url = await whereItListens(child, said)
  return { url, pid: child.pid ?? 0, output: () => said.text, kill }
}

function whereItListens(child: ChildProcess, said: { text: string }): Promise<string> {
  return new Promise((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on('data', (text: Buffer) => {
        said.text += text
        const url = /(http:\/\/127\.0\.0\.1:\d+)\b[\s\S]*\n$/.exec(said.text)?.[1]
        if (url) resolve(url)
      })
    }
    child.once('error', reject)
    child.once('close', () => reject(new Error(`it ended before it listened: ${said.text}`)))
  })
}

/** Starts Reelgate as an owner does, on a data folder that may be filled already. */
export async function startService(scope: Scope, dataDir: string, env: Record<string, string> = {}): Promise<Listening> {
  return startListening(scope, SERVE, { ...serviceEnvironment(dataDir), ...env })
}

export const SERVE = [process.execPath, join(ROOT, 'bin/main.js'), 'serve'] as const

export function serviceEnvironment(dataDir: string): Record<string, string> {
  return {
    REELGATE_DATA: dataDir,
    PORT: '0',
    HOST: '127.0.0.1',
    REELGATE_LIMITS: 'off',
    REELGATE_DEMO: 'off',
    REELGATE_LOG_LEVEL: 'error',
    REELGATE_SANDBOX: 'weak',
  }
}

/** The key that a first start prints. */
export function firstApiKey(service: Listening): string {
  const [, apiKey] = /API secret {2}(\w{64})/.exec(service.output()) ?? []
  if (!apiKey) throw new Error(`the service has printed no API secret: ${service.output()}`)
  return apiKey
}

/** Starts one of `peers/` in a process of its own. */
export async function startPeer(scope: Scope, name: string, ...args: string[]): Promise<Listening> {
  return startListening(scope, [process.execPath, join(import.meta.dirname, 'peers', name), ...args])
}
