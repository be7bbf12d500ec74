import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir, readFile, rm } from 'node:fs/promises'

// Kills from outside, at an exact place: strace is attached to the threads of a running server, not to what it starts.

/** Everything by which bytes, names and answers leave the server. */
export const SYSCALLS = [
  'fsync',
  'fdatasync',
  'rename',
  'unlink',
  'rmdir',
  'mkdir',
  'ftruncate',
  'pwrite64',
  'write',
  'writev',
] as const
export type Syscall = (typeof SYSCALLS)[number]

/** Before which of a scenario's system calls the server is killed: the `nth` such call of any one thread. */
export type CrashPoint = { syscall: Syscall | 'openat'; nth: number }

/** Kills the server before the place is reached: the call itself is not made any more. */
export async function killAt(pid: number, { syscall, nth }: CrashPoint): Promise<Attached> {
  return attach(pid, ['-e', `trace=${syscall}`, '-e', `inject=${syscall}:signal=KILL:when=${nth}`, '-o', '/dev/null'])
}

/** Lets a system call fail instead of being made: the `nth` of each thread, or from then on all. */
export async function failAt(
  pid: number,
  { syscall, nth }: CrashPoint,
  error: string,
  { andAllAfter = false, mainThreadOnly = false } = {},
): Promise<Attached> {
  const when = `${nth}${andAllAfter ? '+' : ''}`
  const args = ['-e', `trace=${syscall}`, '-e', `inject=${syscall}:error=${error}:when=${when}`, '-o', '/dev/null']
  return attach(pid, args, mainThreadOnly ? [String(pid)] : undefined)
}

/** Watches a scenario that nothing disturbs. @returns what ends the watch and gives every place that it passed */
export async function watch(pid: number, log: string): Promise<{ points(): Promise<CrashPoint[]> }> {
  const attached = await attach(pid, ['-e', `trace=${SYSCALLS.join(',')}`, '-o', log])
  return {
    async points() {
      await attached.detach()
      const lines = (await readFile(log, 'utf8')).split('\n')
      await rm(log)
      const counts = new Map<string, number>()
      for (const line of lines) {
        const [, thread, name] = /^(\d+) +(\w+)\(/.exec(line) ?? []
        if (thread && name) counts.set(`${thread} ${name}`, (counts.get(`${thread} ${name}`) ?? 0) + 1)
      }
      return SYSCALLS.flatMap((syscall) => {
        const most = Math.max(0, ...[...counts].filter(([key]) => key.endsWith(` ${syscall}`)).map(([, count]) => count))
        return Array.from({ length: most }, (_, i) => ({ syscall, nth: i + 1 }))
      })
    },
  }
}

export type Attached = { /** Lets the server go on by itself; nothing when it has been killed. */ detach(): Promise<void> }

async function attach(pid: number, args: readonly string[], only?: readonly string[]): Promise<Attached> {
  const threads = only ?? (await readdir(`/proc/${pid}/task`))
  const strace = spawn('strace', [...args, ...threads.flatMap((thread) => ['-p', thread])], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const ended = once(strace, 'exit')
  await allAttached(strace, threads.length)
  return {
    async detach() {
      strace.kill('SIGTERM')
      // Of a killed server strace now and then waits for a thread that is no more; its own end frees what is left.
      const impatience = setTimeout(() => strace.kill('SIGKILL'), 1000)
      await ended
      clearTimeout(impatience)
    },
  }
}

/** strace says one line for each thread that it holds. */
async function allAttached(strace: ChildProcess, threads: number): Promise<void> {
  const attached = Promise.withResolvers<void>()
  let said = ''
  strace.stderr?.on('data', (text: Buffer) => {
    said += text
    if ((said.match(/ attached/g) ?? []).length >= threads) attached.resolve()
  })
  strace.once('exit', () => attached.reject(new Error(`strace did not attach: ${said}`)))
  await attached.promise
}
