import type { Socket } from 'node:net'

/** What arrives at one leaves at the other; they end together. */
export function joinSockets(outer: Socket, inner: Socket): void {
  outer.pipe(inner).pipe(outer)
  outer.on('error', () => inner.destroy()).on('close', () => inner.destroy())
  inner.on('error', () => outer.destroy()).on('close', () => outer.destroy())
}
