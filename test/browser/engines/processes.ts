import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A program that starts others, such as a browser: all of them are one group. */
export type ProcessGroup = { child: ChildProcess; end(): Promise<void> }

export function startGroup(program: string, args: readonly string[], options: SpawnOptions = {}): ProcessGroup {
  // The program ends with the test's process, even if that one is killed.
  const child = spawn('setpriv', ['--pdeathsig', 'KILL', program, ...args], { ...options, detached: true })
  const ended = once(child, 'close')
  return {
    child,
    async end() {
      try {
        if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
      } catch {
        // All of them have ended.
      }
      await ended
    },
  }
}

/** A folder in which a browser keeps what it would keep in a user's home. The caller removes it. */
export async function makeHome(name: string): Promise<{ path: string; remove(): Promise<void> }> {
  const path = await mkdtemp(join(tmpdir(), `reelgate-${name}-`))
  return { path, remove: () => rm(path, { recursive: true, force: true, maxRetries: 3 }) }
}
