import { Failure } from '../../errors.ts'

/** Shorter names are too similar to tell a misspelling from another word. */
const MIN_LENGTH = 5
const MAX_CHANGES = 2

/**
 * Rejects misspelled names: an option that protects a video must not be ignored silently. Other unknown keys pass.
 * @throws Failure `invalid` that names both
 * @see wire-contract.md, section 5
 */
export function refuseMisspelledNames(keys: readonly string[], names: readonly string[]): void {
  for (const key of keys) {
    if (names.includes(key)) continue
    const meant = names.find((name) => isNearMiss(key, name))
    if (meant !== undefined) throw new Failure('invalid', `There is no "${key.slice(0, 40)}". Write "${meant}", or leave it out.`)
  }
}

function isNearMiss(key: string, name: string): boolean {
  if (key.toLowerCase() === name.toLowerCase()) return true
  if (key.length < MIN_LENGTH || name.length < MIN_LENGTH) return false
  return Math.abs(key.length - name.length) <= MAX_CHANGES && editDistance(key.toLowerCase(), name.toLowerCase()) <= MAX_CHANGES
}

/** The number of letters to add, remove, replace or swap with the next one (optimal string alignment). */
function editDistance(a: string, b: string): number {
  let before: number[] = []
  let row = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const replaced = at(row, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1)
      const isSwapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      const swapped = isSwapped ? at(before, j - 2) + 1 : replaced
      next.push(Math.min(replaced, swapped, at(row, j) + 1, at(next, j - 1) + 1))
    }
    before = row
    row = next
  }
  return at(row, b.length)
}

function at(row: readonly number[], index: number): number {
  return row[index] ?? Number.POSITIVE_INFINITY
}
