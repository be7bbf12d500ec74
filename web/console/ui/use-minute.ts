import { useSyncExternalStore } from 'react'

const MINUTE_MS = 60_000

/** Draws a component again each minute, so that "2 minutes ago" stays true. */
export function useMinute(): void {
  useSyncExternalStore(eachMinute, currentMinute)
}

function eachMinute(onMinute: () => void): () => void {
  const timer = setInterval(onMinute, MINUTE_MS)
  return () => clearInterval(timer)
}

function currentMinute(): number {
  return Math.floor(Date.now() / MINUTE_MS)
}
