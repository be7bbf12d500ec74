import type { Answer } from './http.ts'
import { differences, type Shape } from './shape.ts'

/** The installation differs from the contract. */
export class Deviation extends Error {}

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
export function expectValue(value: unknown, shape: Shape, location: string): void {
  const found = differences(value, shape, location)
  if (found.length > 0) throw new Deviation(found.join('; '))
}
