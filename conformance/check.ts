import type { Answer } from './http.ts'
import type { Installation } from './installation.ts'
import { differences, type Shape } from './shape.ts'

/** What some checks need beyond an address and a key; each is an option of the command line. */
export const REQUIREMENTS = {
  'other-key': 'an API secret of another account',
  'permission-keys': 'PERMISSION=SECRET,… for all five permissions: keys of the same account that hold this one alone',
  'off-key': 'an API secret of an account whose uploads and imports are off',
  listen: 'HOST:PORT where this suite serves videos and receives hooks; the server must be able to reach it',
  exceed: 'exceed the upload limit once; the server then refuses uploads for up to a minute',
} as const
export type Requirement = keyof typeof REQUIREMENTS

/** One line of the contract. `run` throws where the installation differs. */
export type Check = { name: string; needs?: readonly Requirement[]; run(at: Installation): Promise<void> }
export type Section = { section: number; title: string; checks: readonly Check[] }

/** The installation differs from the contract. */
export class Deviation extends Error {}

export function check(name: string, run: Check['run'], ...needs: Requirement[]): Check {
  return { name, needs, run }
}

/** What a response must look like; a field that is not named may be anything. */
export type Expected = {
  status: number
  /** By lower-case name. */
  headers?: Record<string, Shape>
  body?: Shape
  text?: string | RegExp
}

/** @throws Deviation that names what was expected and what was received */
export function expectAnswer(answer: Answer, wanted: Expected): void {
  const found = [
    ...differences(answer.status, wanted.status, 'status'),
    ...Object.entries(wanted.headers ?? {}).flatMap(([name, shape]) => differences(answer.headers[name], shape, name)),
    ...(wanted.body === undefined ? [] : differences(answer.body, wanted.body, 'body')),
    ...(wanted.text === undefined ? [] : differences(answer.text, wanted.text, 'text')),
  ]
  if (found.length === 0) return
  const said = answer.status === wanted.status ? '' : ` (${answer.text.slice(0, 200).trim()})`
  throw new Deviation(`${found.join('; ')}${said}`)
}

/** @throws Deviation */
export function expectValue(value: unknown, shape: Shape, place: string): void {
  const found = differences(value, shape, place)
  if (found.length > 0) throw new Deviation(found.join('; '))
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
