import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'

/** A program on a machine of a cluster. It ends with this process, however this one ends. */
export type Program = {
  readonly pid: number
  /** What it printed, in all its runs. */
  output(): string
  /** The exit code of its last run; null: a signal ended it. */
  ended(): Promise<number | null>
  signal(name: NodeJS.Signals): void
  kill(): Promise<void>
  /** Sends SIGTERM. @returns the exit code */
  stop(): Promise<number | null>
  /** Stops it and all that it started, as a machine that is suspended; or lets them go on. */
  setFrozen(isFrozen: boolean): void
  /** Starts it once more, after it has ended. */
  start(): Promise<void>
}

/** @param isReady of what it printed; a program that needs not be waited for has none */
export async function startProgram(
  [command = '', ...args]: readonly string[],
  env: Record<string, string>,
  isReady?: RegExp,
): Promise<Program> {
  let output = ''
  const begin = async () => {
    const from = output.length
    const child = spawn('setpriv', ['--pdeathsig=KILL', command, ...args], {
      env: { PATH: process.env.PATH ?? '', ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const ended = once(child, 'exit').then(([code]): number | null => code)
    const ready = Promise.withResolvers<void>()
    if (!isReady) ready.resolve()
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (text: Buffer) => {
        output += text
        if (isReady?.test(output.slice(from))) ready.resolve()
      })
    void ended.then(() => ready.reject(new Error(`${args.join(' ')} ended before it was ready: ${output.slice(from)}`)))
    await ready.promise
    return { pid: child.pid ?? 0, child, ended }
  }
  let run = await begin()
  return {
    get pid() {
      return run.pid
    },
    output: () => output,
    ended: () => run.ended,
    signal: (name) => void run.child.kill(name),
    async kill() {
      run.child.kill('SIGKILL')
      await run.ended
    },
    stop() {
      run.child.kill('SIGTERM')
      return run.ended
    },
    setFrozen(isFrozen) {
      // From the top down, so that none starts another meanwhile; and back from below, so that no parent finds its child stopped.
      const tree = treeOf(run.pid)
      for (const pid of isFrozen ? tree : tree.toReversed()) sendTo(pid, isFrozen ? 'SIGSTOP' : 'SIGCONT')
    },
    async start() {
      run = await begin()
    },
  }
}

function sendTo(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch {
    // It has ended.
  }
}

/** A process, and all that it and they started. */
function treeOf(pid: number): number[] {
  return [pid, ...childrenOf(pid).flatMap(treeOf)]
}

function childrenOf(pid: number): number[] {
  try {
    const threads = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
    return threads.split(' ').filter(Boolean).map(Number)
  } catch {
    return []
  }
}
