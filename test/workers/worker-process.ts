import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import type { Reelgate } from '../reelgate.ts'

const ROOT = join(import.meta.dirname, '..', '..')

export type WorkerProcess = {
  pid: number
  cacheFolder: string
  output(): string
  kill(signal?: NodeJS.Signals): void
  /** The exit code; null: a signal ended it. */
  ended: Promise<number | null>
}

/** Adds a worker to a running server. */
export async function addWorker({ cli }: Pick<Reelgate, 'cli'>, name: string, ...options: string[]): Promise<string> {
  const { stdout, stderr } = await cli('worker', 'add', name, ...options, '--json')
  if (stdout === '') throw new Error(stderr)
  return (JSON.parse(stdout) as { token: string }).token
}

/** `reelgate worker` on this machine, ended when the test has finished. */
export function startWorker(url: string, token: string, ...options: string[]): WorkerProcess {
  const folder = mkdtempSync(join(tmpdir(), 'reelgate-worker-'))
  const cacheFolder = join(folder, 'cache')
  const args = [join(ROOT, 'bin', 'main.js'), 'worker', '--server', url, '--cache', cacheFolder, '--jobs', '2', ...options]
  const child = spawn(process.execPath, args, {
    env: { PATH: process.env.PATH ?? '', REELGATE_WORKER_TOKEN: token, REELGATE_SANDBOX: 'weak' },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let text = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (part: Buffer) => (text += part.toString()))
  const ended = once(child, 'exit').then(([code]: (number | null)[]) => code ?? null)
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await ended
    rmSync(folder, { recursive: true, force: true })
  })
  return { pid: child.pid ?? 0, cacheFolder, output: () => text, kill: (signal = 'SIGKILL') => void child.kill(signal), ended }
}
