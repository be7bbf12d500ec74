import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'

type Ended = { code: number | null; stdout: string; stderr: string }

/** Runs `reelgate key restore` with these words on its input. */
export async function restore(
  installed: { env: Record<string, string> },
  words: string,
  { args = [], env = {} }: { args?: string[]; env?: Record<string, string> } = {},
): Promise<Ended> {
  const main = join(import.meta.dirname, '../bin/main.js')
  const child = spawn(process.execPath, [main, 'key', 'restore', ...args], {
    env: { PATH: process.env.PATH ?? '', ...installed.env, ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve))
  child.stdin.on('error', () => undefined) // refused before it reads
  child.stdin.end(words)
  const [code, stdout, stderr] = await Promise.all([ended, text(child.stdout), text(child.stderr)])
  return { code, stdout, stderr }
}
