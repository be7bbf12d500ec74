import { mkdir, mkdtemp, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'

/** A line of the table: a measurement, its peer and its target. */
export type Row = {
  /** For `--only`. */
  name: string
  what: string
  unit: 'per s' | 'MB per s' | 's' | 'ms' | 'MB' | 'kB' | 'points'
  aim: Aim
  /** Creates what is kept between runs; its time is not measured. */
  prepare?(): Promise<unknown>
  measure(scope: Scope): Promise<Measured>
}

/** `ours` and `peer` are medians; `ratio` is the median of the pairs' ratios, ours to the peer's. `note`: what they consist of. */
export type Measured = { ours: number; peer?: number; ratio?: number; note?: string }

export type Aim =
  | { ratioAtLeast: number }
  | { ratioAtMost: number }
  | { oursAtMost: number }
  | { oursAtLeast: number }
  | { maxExtraS: number }

export function isMet(aim: Aim, { ours, peer, ratio }: Measured): boolean {
  if ('oursAtMost' in aim) return ours <= aim.oursAtMost
  if ('oursAtLeast' in aim) return ours >= aim.oursAtLeast
  if ('maxExtraS' in aim) return peer !== undefined && ours - peer <= aim.maxExtraS
  if (ratio === undefined) return false
  return 'ratioAtLeast' in aim ? ratio >= aim.ratioAtLeast : ratio <= aim.ratioAtMost
}

export function formatAim(aim: Aim, unit: Row['unit']): string {
  if ('oursAtMost' in aim) return `≤ ${aim.oursAtMost} ${unit}`
  if ('oursAtLeast' in aim) return `≥ ${aim.oursAtLeast} ${unit}`
  if ('maxExtraS' in aim) return `≤ + ${aim.maxExtraS} s`
  return 'ratioAtLeast' in aim ? `≥ ${aim.ratioAtLeast}×` : `≤ ${aim.ratioAtMost}×`
}

/** What a row starts and writes is stopped and removed at its end, however it ends. */
export type Scope = {
  /** A temporary folder on the disk of the repository, because /tmp may be in memory. */
  folder: string
  /** Runs at the row's end, last first. */
  defer(end: () => unknown): void
}

export const CACHE = join(import.meta.dirname, '../.cache/bench')

const MAX_LEFTOVER_AGE_MS = 3_600_000

/** Removes the folders of runs that were killed. */
export async function removeLeftovers(): Promise<void> {
  await mkdir(CACHE, { recursive: true })
  for (const name of await readdir(CACHE)) {
    const isLeftover = name.startsWith('run-') || name.startsWith('unfinished-')
    if (!isLeftover || Date.now() - (await stat(join(CACHE, name))).mtimeMs < MAX_LEFTOVER_AGE_MS) continue
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
