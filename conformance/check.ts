import type { Answer } from './http.ts'
import type { Installation } from './installation.ts'
import { differences, type Shape } from './shape.ts'

/** What a check needs beyond an address and a key; each is an option of the command line. */
export const NEEDS = {
  'other-key': 'an API secret of another account',
  'viewer-key': 'an API secret of the same account with the permission viewer alone',
  'off-key': 'an API secret of an account whose uploads and imports are off',
  listen: 'HOST:PORT at which this suite serves a video and receives hooks, and the server can reach it',
  exceed: 'leave to exceed the budget of uploads once, which is refused for up to a minute',
} as const
export type Need = keyof typeof NEEDS

/** One line of the contract. Throws what is otherwise. */
export type Check = { name: string; needs?: readonly Need[]; run(at: Installation): Promise<void> }
export type Section = { section: number; title: string; checks: readonly Check[] }

/** The installation does otherwise than the contract says. */
export class Deviation extends Error {}

export function check(name: string, run: Check['run'], ...needs: Need[]): Check {
  return { name, needs, run }
}

/** How an answer should be; what is not named may be anything. */
export type Wanted = {
  status: number
  /** Names of headers in lower case. */
  headers?: Record<string, Shape>
  body?: Shape
  text?: string | RegExp
}

/** @throws Deviation that says what was expected and what came */
export function expectAnswer(answer: Answer, wanted: Wanted): void {
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

/** Runs one check; whatever it throws is its outcome. */
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
