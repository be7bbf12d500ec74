// A set of key windows: a bit for each, the first one lowest.

export function hasWindow(windows: Buffer, window: number): boolean {
  return ((windows[window >> 3] ?? 0) & (1 << (window & 7))) !== 0
}

/** @returns the same set with the window in it, or a longer copy where it had no room */
export function withWindow(windows: Buffer, window: number): Buffer {
  const byte = window >> 3
  const set = byte < windows.length ? windows : Buffer.concat([windows, Buffer.alloc(byte + 8)])
  set[byte] = (set[byte] ?? 0) | (1 << (window & 7))
  return set
}

/** The windows that are in one of the sets. */
export function joinWindows(a: Buffer, b: Buffer): Buffer {
  const joined = Buffer.alloc(Math.max(a.length, b.length))
  for (let byte = 0; byte < joined.length; byte++) joined[byte] = (a[byte] ?? 0) | (b[byte] ?? 0)
  return joined
}
