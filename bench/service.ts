import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import type { Scope } from './row.ts'

export const ROOT = join(import.meta.dirname, '..')

/** A process that serves HTTP on loopback. */
export type ListeningProcess = { url: string; pid: number; output(): string; kill(): Promise<void> }

/** Starts a program and waits until it prints its URL; it is killed at the end of the scope. */
export async function startListening(
  scope: Scope,
  [command = '', ...args]: readonly string[],
  env: Record<string, string> = {},
): Promise<ListeningProcess> {
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
  const printed = { text: '' }
  const url = await waitForUrl(child, printed)
  return { url, pid: child.pid ?? 0, output: () => printed.text, kill }
}

function waitForUrl(child: ChildProcess, printed: { text: string }): Promise<string> {
  return new Promise((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on('data', (text: Buffer) => {
        printed.text += text
        const url = /(http:\/\/127\.0\.0\.1:\d+)\b[\s\S]*\n$/.exec(printed.text)?.[1]
        if (url) resolve(url)
      })
    }
    child.once('error', reject)
    child.once('close', () => reject(new Error(`it ended before it listened: ${printed.text}`)))
  })
}

/** Starts Reelgate with a data folder that may exist already. */
export async function startService(scope: Scope, dataDir: string, env: Record<string, string> = {}): Promise<ListeningProcess> {
  return startBuild(scope, ROOT, dataDir, env)
}

/** Starts the build of another folder, such as that of an earlier version. */
export async function startBuild(
  scope: Scope,
  root: string,
  dataDir: string,
  env: Record<string, string> = {},
): Promise<ListeningProcess> {
  const serve = [process.execPath, join(root, 'bin/main.js'), 'serve']
  return startListening(scope, serve, { ...serviceEnvironment(dataDir), ...env })
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
export function firstApiKey(service: ListeningProcess): string {
  const [, apiKey] = /API secret {2}(\w{64})/.exec(service.output()) ?? []
  if (!apiKey) throw new Error(`the service has printed no API secret: ${service.output()}`)
  return apiKey
}

/** Starts one of `peers/` in a process of its own. */
export async function startPeer(scope: Scope, name: string, ...args: string[]): Promise<ListeningProcess> {
  return startListening(scope, [process.execPath, join(import.meta.dirname, 'peers', name), ...args])
}
