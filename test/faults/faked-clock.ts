/** The environment of a server whose wall clock stands elsewhere, such as `+1d`; time passes as ever (libfaketime, of Debian's faketime). */
export function shiftedClock(shift: string): Record<string, string> {
  const machine = process.arch === 'arm64' ? 'aarch64' : 'x86_64'
  return {
    LD_PRELOAD: `/usr/lib/${machine}-linux-gnu/faketime/libfaketimeMT.so.1`,
    FAKETIME: shift,
    FAKETIME_DONT_FAKE_MONOTONIC: '1',
  }
}
