/** The result of one check, with a sentence that names the remedy where one is needed. */
export type Finding = { state: 'ok' | 'warning' | 'trouble'; says: string }

export type Check = Finding & { check: string }

export const ok = (says: string): Finding => ({ state: 'ok', says })
export const warning = (says: string): Finding => ({ state: 'warning', says })
export const failure = (says: string): Finding => ({ state: 'trouble', says })

/** A slower disk delays every call that changes something. */
const SLOW_SYNC_MS = 20
const SYNCS = 9

/** The median of some syncs, one after the other. */
export async function timeSyncs(sync: () => Promise<unknown>): Promise<number> {
  const timesMs: number[] = []
  for (let i = 0; i < SYNCS; i++) {
    const startedMs = performance.now()
    await sync()
    timesMs.push(performance.now() - startedMs)
  }
  return timesMs.sort((a, b) => a - b)[Math.floor(SYNCS / 2)] ?? 0
}

export function judgeSync(what: string, medianMs: number): Finding {
  const takes = `${what} takes ${medianMs.toFixed(1)} ms`
  return medianMs <= SLOW_SYNC_MS
    ? ok(`${takes}.`)
    : warning(`${takes}, more than ${SLOW_SYNC_MS}: every change waits that long. Use a faster disk, such as an SSD.`)
}
