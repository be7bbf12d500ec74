import { mkdir, mkdtemp, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'

/** What is measured, against whom, and what is aimed at: a line of the table. */
export type Row = {
  /** What `--only` takes. */
  name: string
  what: string
  unit: 'per s' | 's' | 'ms' | 'MB'
  aim: Aim
  /** What is made once and kept; its time is not the row's. */
  prepare?(): Promise<unknown>
  measure(scope: Scope): Promise<Measured>
}

/** `ours` and `peer` are medians; `ratio` is the median of the pairs' ratios, ours to the peer's. */
export type Measured = { ours: number; peer?: number; ratio?: number }

export type Aim = { ratioAtLeast: number } | { ratioAtMost: number } | { oursAtMost: number } | { maxExtraS: number }

export function isMet(aim: Aim, { ours, peer, ratio }: Measured): boolean {
  if ('oursAtMost' in aim) return ours <= aim.oursAtMost
  if ('maxExtraS' in aim) return peer !== undefined && ours - peer <= aim.maxExtraS
  if (ratio === undefined) return false
  return 'ratioAtLeast' in aim ? ratio >= aim.ratioAtLeast : ratio <= aim.ratioAtMost
}

export function aimInWords(aim: Aim, unit: Row['unit']): string {
  if ('oursAtMost' in aim) return `≤ ${aim.oursAtMost} ${unit}`
  if ('maxExtraS' in aim) return `≤ + ${aim.maxExtraS} s`
  return 'ratioAtLeast' in aim ? `≥ ${aim.ratioAtLeast}×` : `≤ ${aim.ratioAtMost}×`
}

/** What a row starts and writes; all of it is gone when the row has ended, however it ended. */
export type Scope = {
  /** A folder of its own, on the disk of the repository: /tmp may be memory. */
  folder: string
  /** Runs at the row's end, last first. */
  defer(end: () => unknown): void
}

export const CACHE = join(import.meta.dirname, '../.cache/bench')

const FORGOTTEN_AFTER_MS = 3_600_000

/** Removes what runs that were killed left behind. */
export async function removeLeftovers(): Promise<void> {
  await mkdir(CACHE, { recursive: true })
  for (const name of await readdir(CACHE)) {
    const isLeftover = name.startsWith('run-') || name.startsWith('unfinished-')
    if (!isLeftover || Date.now() - (await stat(join(CACHE, name))).mtimeMs < FORGOTTEN_AFTER_MS) continue
    await rm(join(CACHE, name), { recursive: true, force: true })
  }
}

export async function withScope<T>(use: (scope: Scope) => Promise<T>): Promise<T> {
  await using ends = new AsyncDisposableStack()
  const folder = await mkdtemp(join(CACHE, 'run-'))
  ends.defer(() => rm(folder, { recursive: true, force: true }))
  return await use({
    folder,
    defer: (end) => ends.defer(async () => void (await end())),
  })
}
