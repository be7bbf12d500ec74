import { expect, test } from 'vitest'
import { BLOCKED_CALLS, systemCallFilter } from '../../src/sandbox/system-calls.ts'

const ALLOW = 0x7fff0000
const EPERM = 0x00050001
const ENOSYS = 0x00050026
const THREAD_FLAGS = 0x003d0f00 // what the C library makes a thread with
const SIGCHLD = 17 // what it forks with
/** CLONE_NEWTIME, NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET. */
const NAMESPACES = [0x80, 0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000]
const MACHINES = {
  x64: { audit: 0xc000003e, read: 0, openat: 257, execve: 59, clone: 56, clone3: 435 },
  arm64: { audit: 0xc00000b7, read: 63, openat: 56, execve: 221, clone: 220, clone3: 435 },
} as const
const ARCHITECTURES = ['x64', 'arm64'] as const

test.each(ARCHITECTURES)(
  'M24: on %s each listed system call is refused with EPERM, and what ffmpeg does all the time is not',
  (architecture) => {
    const { audit, ...calls } = MACHINES[architecture]
    const judge = (number: number, argument = 0) => run(filterOf(architecture), { number, audit, argument })
    const numbers = Object.entries(BLOCKED_CALLS).flatMap(([name, call]) =>
      call[architecture] === undefined ? [] : [[name, call[architecture]]],
    )
    expect(numbers.map(([name, number]) => [name, judge(Number(number))])).toEqual(numbers.map(([name]) => [name, EPERM]))
    expect(new Set(numbers.map(([, number]) => number)).size).toBe(numbers.length)
    for (const number of [calls.read, calls.openat, calls.execve]) expect(judge(number)).toBe(ALLOW)
    expect(judge(calls.clone, THREAD_FLAGS)).toBe(ALLOW)
    expect(judge(calls.clone, SIGCHLD)).toBe(EPERM)
    expect(judge(calls.clone3)).toBe(ENOSYS)
  },
)

test.each(ARCHITECTURES)(
  'M24: on %s a program that transcribes may start others, and is refused all else that ffmpeg is, new namespaces included',
  (architecture) => {
    const { audit, clone, clone3 } = MACHINES[architecture]
    const filter = systemCallFilter({ architecture, mayStartOthers: true }) ?? expect.fail()
    const judge = (number: number, argument = 0) => run(filter, { number, audit, argument })
    const allowed = Object.entries(BLOCKED_CALLS)
      .filter(([, call]) => call[architecture] !== undefined && judge(Number(call[architecture])) === ALLOW)
      .map(([name]) => name)
    expect(allowed.sort()).toEqual(architecture === 'x64' ? ['fork', 'socketpair', 'vfork'] : ['socketpair'])
    expect([judge(clone, SIGCHLD), judge(clone, THREAD_FLAGS), judge(clone3)]).toEqual([ALLOW, ALLOW, ENOSYS])
    for (const namespace of NAMESPACES) expect(judge(clone, SIGCHLD | namespace)).toBe(EPERM)
  },
)

test.each(ARCHITECTURES)(
  'F-264: on %s ffmpeg may make connections by TCP over IPv4 where its source is read in place, and is refused all else',
  (architecture) => {
    const { audit } = MACHINES[architecture]
    const filter = systemCallFilter({ architecture, mayConnect: true }) ?? expect.fail()
    const number = BLOCKED_CALLS.socket?.[architecture] ?? expect.fail()
    const judge = (argument: number, second: number) => run(filter, { number, audit, argument, second })
    const [TCP, UDP, CLOEXEC] = [1, 2, 0x80000]
    expect([judge(2, TCP), judge(2, TCP | CLOEXEC)]).toEqual([ALLOW, ALLOW])
    for (const family of [1, 10, 16, 17]) expect(judge(family, TCP)).toBe(EPERM)
    for (const type of [0, UDP, 3, UDP | CLOEXEC]) expect(judge(2, type)).toBe(EPERM)
    for (const [name, call] of Object.entries(BLOCKED_CALLS))
      if (name !== 'socket' && call[architecture] !== undefined)
        expect(run(filter, { number: call[architecture], audit, argument: 2, second: TCP })).toBe(EPERM)
  },
)

test.each(ARCHITECTURES)('M24: on %s numbers of another architecture are refused, whatever they mean there', (architecture) => {
  const foreign = [0x40000003, 0x40000028, ...Object.values(MACHINES).map(({ audit }) => audit)]
  for (const audit of foreign.filter((audit) => audit !== MACHINES[architecture].audit))
    for (const number of [0, 3, 41, 63, 198, 1000])
      expect(run(filterOf(architecture), { number, audit, argument: 0 })).toBe(EPERM)
})

test('M24: the second numbers of x86-64 (x32) are refused', () => {
  const { audit } = MACHINES.x64
  for (const number of [0x40000000, 0x40000029, 0xffffffff])
    expect(run(filterOf('x64'), { number, audit, argument: 0 })).toBe(EPERM)
})

test('there is no filter for an architecture whose calls are not listed', () => {
  expect(systemCallFilter({ architecture: 'riscv64' })).toBeUndefined()
})

function filterOf(architecture: string): Buffer {
  return systemCallFilter({ architecture }) ?? expect.fail()
}

/** Runs a filter as the kernel does: classic BPF on `struct seccomp_data`. */
function run(
  program: Buffer,
  { number, audit, argument, second = 0 }: { number: number; audit: number; argument: number; second?: number },
): number {
  const data = Buffer.alloc(64)
  data.writeUInt32LE(number, 0)
  data.writeUInt32LE(audit, 4)
  data.writeUInt32LE(argument, 16)
  data.writeUInt32LE(second, 24)
  let loaded = 0
  for (let row = 0; row * 8 < program.length; row++) {
    const code = program.readUInt16LE(row * 8)
    const k = program.readUInt32LE(row * 8 + 4)
    if (code === 0x06) return k
    if (code === 0x20) loaded = data.readUInt32LE(k)
    else if (code === 0x54) loaded &= k
    else row += program.readUInt8(row * 8 + (holds(code, loaded, k) ? 2 : 3))
  }
  return expect.fail('the program has no end')
}

function holds(code: number, loaded: number, k: number): boolean {
  if (code === 0x15) return loaded === k
  if (code === 0x35) return loaded >= k
  if (code === 0x45) return (loaded & k) !== 0
  return expect.fail(`an unknown row: ${code}`)
}
