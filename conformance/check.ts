import type { Installation } from './installation.ts'
import type { Requirement } from './requirements.ts'

/** One line of the contract. `run` throws where the installation differs. */
export type Check = { name: string; needs?: readonly Requirement[]; run(at: Installation): Promise<void> }
export type Section = { section: number; title: string; checks: readonly Check[] }

export function check(name: string, run: Check['run'], ...needs: Requirement[]): Check {
  return { name, needs, run }
}

export type Outcome = { section: number; name: string; outcome: 'ok' | 'FAIL' | 'not checked'; why?: string }

/** Runs one check. Never rejects: an error is reported in the outcome. */
export async function runCheck(section: number, { name, needs = [], run }: Check, at: Installation): Promise<Outcome> {
  const missing = needs.filter((need) => !at.has(need))
  if (missing.length > 0)
    return { section, name, outcome: 'not checked', why: `needs ${missing.map((need) => `--${need}`).join(' ')}` }
  try {
    await run(at)
    return { section, name, outcome: 'ok' }
  } catch (error) {
    return { section, name, outcome: 'FAIL', why: error instanceof Error ? error.message : String(error) }
  }
}
