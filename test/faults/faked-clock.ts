import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

// Clocks of a server process that a test moves from outside, by libfaketime (Debian's package faketime).

/** The environment of a server whose wall clock is elsewhere, such as `+1d`; time passes as ever. */
export function shiftedClock(shift: string): Record<string, string> {
  return { LD_PRELOAD: libfaketime(), FAKETIME: shift, FAKETIME_DONT_FAKE_MONOTONIC: '1' }
}

/**
 * The environment of a server for which time passes fifty times slower, timers included: leases of seconds last as long as a test needs
 * on a busy machine.
 */
export function slowTime(): Record<string, string> {
  return { LD_PRELOAD: libfaketime(), FAKETIME: '+0 x0.02' }
}

export type MovableClock = {
  /** What a server of this clock finds in its environment. */
  env: Record<string, string>
  /** From now on it is so many seconds ahead of the true one. */
  set(aheadS: number): Promise<void>
  remove(): Promise<void>
}

/**
 * A clock that is moved while servers run. It is the wall clock alone, which anyone may set; or time itself, wall clock and monotonic
 * clock together, so that hours pass in a moment. Time may only be moved forward while a server runs.
 */
export async function newMovableClock(moves: 'wall clock' | 'time'): Promise<MovableClock> {
  const folder = await mkdtemp(join(tmpdir(), 'reelgate-clock-'))
  const file = join(folder, 'offset')
  const set = (aheadS: number) => writeFile(file, `${aheadS < 0 ? '' : '+'}${aheadS}\n`)
  await set(0)
  return {
    env: {
      LD_PRELOAD: libfaketime(),
      FAKETIME_TIMESTAMP_FILE: file,
      FAKETIME_NO_CACHE: '1',
      ...(moves === 'wall clock' && { FAKETIME_DONT_FAKE_MONOTONIC: '1' }),
    },
    set,
    remove: () => rm(folder, { recursive: true, force: true }),
  }
}

function libfaketime(): string {
  const machine = process.arch === 'arm64' ? 'aarch64' : 'x86_64'
  return `/usr/lib/${machine}-linux-gnu/faketime/libfaketimeMT.so.1`
}
