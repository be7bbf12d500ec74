import { useEffect, useState } from 'react'

/** How long it is to the next try of something that is tried again by itself. */
export function Countdown({ toMs }: { toMs: number }) {
  const [nowMs, setNowMs] = useState(Date.now)
  useEffect(() => {
    const ticking = setInterval(() => setNowMs(Date.now()), 500)
    return () => clearInterval(ticking)
  }, [])
  return `Next try in ${Math.max(1, Math.ceil((toMs - nowMs) / 1000))} s`
}
