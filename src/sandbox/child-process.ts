import { type ChildProcess, spawn } from 'node:child_process'
import os from 'node:os'
import { Readable, Writable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { errorCode } from '../errors.ts'
import { limitBytes } from '../limit-bytes.ts'
import { filterPipe, type SandboxedCall, type SandboxTools, sandboxedArgs, startPipes } from './arguments.ts'
import { type MediaEnd, type MediaRun, type Reader, SIGNAL_EXIT_BASE } from './media-run.ts'
import { systemCallFilter } from './system-calls.ts'

const STDERR_TAIL_BYTES = 64 * 1024

type SandboxedRun = SandboxedCall &
  Pick<MediaRun, 'stdout' | 'signal'> & {
    stdin?: Readable
    /** Called with each part of what the child reports, as it comes. */
    onStderr?(part: Buffer): void
  }

/** Resolves when the child has exited and every reader is done. @throws what a reader threw, the signal's reason, or why it did not start */
export async function runSandboxed(sandbox: SandboxTools, run: SandboxedRun): Promise<MediaEnd> {
  const pipes = run.pipes ?? []
  const listenIn = sandbox.bubblewrap ? run.listenIn : undefined
  const filter = sandbox.bubblewrap
    ? systemCallFilter({ mayStartOthers: run.program !== undefined, mayConnect: run.listenIn !== undefined })
    : undefined
  const child = spawn(sandbox.tools.prlimit, sandboxedArgs(sandbox, run), {
    stdio: [
      run.stdin ? 'pipe' : 'ignore',
      run.stdout ? 'pipe' : 'ignore',
      'pipe',
      ...[...pipes, ...(filter ? [filter] : []), ...(listenIn ? ['info', 'block'] : [])].map(() => 'pipe' as const),
    ],
    detached: true, // its own process group, so that its children are killed with it
    env: {},
    cwd: '/',
  })
  const killGroup = () => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
    } catch (error) {
      if (errorCode(error) !== 'ESRCH') throw error
    }
  }
  let outOfTime = false
  const wallTimer = setTimeout(() => {
    outOfTime = true
    killGroup()
  }, run.limits.wallS * 1000)
  run.signal?.addEventListener('abort', killGroup, { once: true })
  try {
    const ended = new Promise<number>((resolve, reject) => {
      // Node's error contains the arguments, and with them the source's key, which must not reach the log.
      child.once('error', (error) => reject(Object.assign(new Error(`${run.tool} did not start`), { code: errorCode(error) })))
      child.once('exit', killGroup) // a grandchild would keep the pipes open
      child.once('close', (code, signal) => resolve(code ?? SIGNAL_EXIT_BASE + (signal ? os.constants.signals[signal] : 0)))
    })
    if (child.pid === undefined) await ended // throws: with too many open files there are no outputs either
    if (run.signal?.aborted) killGroup() // between the first check and the listener
    if (filter) writeInput(child.stdio[filterPipe(run)], filter)
    if (run.stdin) pipeInput(run.stdin, child.stdin)

    const errors = { tail: Buffer.alloc(0), lines: 0 }
    const reads = [
      readOutput(child.stderr, async (bytes) => keepTail(bytes, errors, run.onStderr)),
      ...(run.stdout ? [readOutput(child.stdout, run.stdout)] : []),
      ...pipes.map((reader, index) => readOutput(child.stdio[3 + index], reader)),
      ...(listenIn ? [startInNetwork(child, run, listenIn)] : []),
    ].map((read) =>
      read.catch((error: unknown) => {
        killGroup()
        throw error
      }),
    )
    const [exit, ...readings] = await Promise.allSettled([ended, ...reads])
    run.signal?.throwIfAborted()
    for (const reading of readings) if (reading.status === 'rejected' && !outOfTime) throw reading.reason
    if (exit.status === 'rejected') throw exit.reason
    return { exitCode: exit.value, errorLines: errors.lines, stderr: errors.tail.toString('utf8'), outOfTime }
  } finally {
    clearTimeout(wallTimer)
    run.signal?.removeEventListener('abort', killGroup)
  }
}

/** Bubblewrap has made the network, and waits. Where it failed instead, its exit code says so. */
async function startInNetwork({ stdio }: ChildProcess, run: SandboxedRun, listenIn: (pid: number) => Promise<void>) {
  const { info, block } = startPipes(run)
  let about = ''
  await readOutput(stdio[info], async (bytes) => {
    about = await text(bytes)
  })
  const [, pid] = /"child-pid": (\d+)/.exec(about) ?? []
  if (pid !== undefined) await listenIn(Number(pid))
  writeInput(stdio[block], Buffer.from('\n'))
}

/** Not awaited: a child that does not read all of it fails by itself. */
function writeInput(stream: unknown, bytes: Buffer) {
  if (!(stream instanceof Writable)) throw new Error('the child has no such input')
  stream.on('error', () => undefined).end(bytes)
}

/** A child that has ended reads no more: the rest is dropped. Bytes that cannot be read end early: their caller has the error. */
function pipeInput(bytes: Readable, stream: Writable | null) {
  if (!stream) throw new Error('the child has no standard input')
  stream
    .on('error', () => undefined)
    .on('close', () => {
      bytes.unpipe(stream) // first: it pauses them
      bytes.resume()
    })
  bytes
    .on('error', () => undefined)
    .on('close', () => stream.end())
    .pipe(stream)
}

async function readOutput(stream: unknown, reader: Reader) {
  if (!(stream instanceof Readable)) throw new Error('the child has no such output')
  await reader(stream)
}

async function keepTail(bytes: Readable, errors: { tail: Buffer; lines: number }, onPart: (part: Buffer) => void = () => {}) {
  for await (const part of bytes) {
    onPart(part)
    for (const byte of part) if (byte === 0x0a) errors.lines += 1
    errors.tail = Buffer.concat([errors.tail, part]).subarray(-STDERR_TAIL_BYTES)
  }
}

/** A reader that collects an output up to a limit. */
export function collect(maxBytes: number): { reader: Reader; bytes: () => Buffer } {
  const parts: Buffer[] = []
  return {
    reader: async (bytes) => {
      for await (const part of limitBytes(bytes, maxBytes, () => new Error('the output is longer than expected')))
        parts.push(part)
    },
    bytes: () => Buffer.concat(parts),
  }
}
