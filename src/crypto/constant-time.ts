import { timingSafeEqual } from 'node:crypto'

/** Compares in a time that does not depend on where the two differ, so that a signature cannot be guessed byte by byte. */
export function equalsInConstantTime(expected: string | Buffer, actual: string | Buffer): boolean {
  const [a, b] = [toBytes(expected), toBytes(actual)]
  return a.length === b.length && timingSafeEqual(a, b)
}

function toBytes(value: string | Buffer): Buffer {
  return typeof value === 'string' ? Buffer.from(value) : value
}
