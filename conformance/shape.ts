// What a value must look like, written as the contract writes it, and how to report a difference.

/** An exact value, a pattern for a text, an object whose other fields are ignored, or a rule. */
export type Shape = string | number | boolean | null | RegExp | Rule | { readonly [field: string]: Shape }

/** `differences` returns one sentence for each difference; none when the value matches. */
export class Rule {
  readonly words: string
  readonly differences: (value: unknown, location: string) => string[]

  constructor(words: string, differences: (value: unknown, location: string) => string[]) {
    this.words = words
    this.differences = differences
  }
}

/** A rule from a predicate. */
export function is(words: string, holds: (value: unknown) => boolean): Rule {
  return new Rule(words, (value, location) => (holds(value) ? [] : [mismatch(location, words, value)]))
}

export const anyText = is('a text', (value) => typeof value === 'string')
export const sentence = is('a sentence', (value) => typeof value === 'string' && /^\S.{7,}/.test(value))
export const whole = is('a whole number', (value) => Number.isInteger(value) && Number(value) >= 0)
export const positive = is('a whole number above 0', (value) => Number.isInteger(value) && Number(value) > 0)
export const anyNumber = is('a number', (value) => typeof value === 'number')
export const zeroOrOne = is('0 or 1', (value) => value === 0 || value === 1)
export const trueOrFalse = is('true or false', (value) => typeof value === 'boolean')
export const webAddress = is('a web address', (value) => typeof value === 'string' && /^https?:\/\/[^/]/.test(value))
/** Within a day of this machine's clock, so that milliseconds are not taken for seconds. */
export const unixSeconds = is(
  'Unix seconds of now',
  (value) => Number.isInteger(value) && Math.abs(Number(value) - Date.now() / 1000) < 86_400,
)
export const isoTime = is(
  'ISO 8601 in UTC with milliseconds',
  (value) => typeof value === 'string' && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(value),
)
export const videoId = /^[0-9a-f]{32}$/
export const otp = /^[A-Za-z0-9]{64}$/

/** An object with these fields and no others. */
export function exactly(fields: { readonly [field: string]: Shape }): Rule {
  return new Rule(`exactly the fields ${Object.keys(fields).join(', ')}`, (value, location) => {
    const others = isRecord(value) ? Object.keys(value).filter((field) => !(field in fields)) : []
    return [...differences(value, fields, location), ...others.map((field) => `${location}.${field}: should not be there`)]
  })
}

/** An array whose members all match. */
export function listOf(shape: Shape): Rule {
  return new Rule('an array', (value, location) =>
    Array.isArray(value)
      ? value.flatMap((member, index) => differences(member, shape, `${location}[${index}]`))
      : [mismatch(location, 'an array', value)],
  )
}

/** An array of exactly these members, in this order. */
export function inOrder(...shapes: readonly Shape[]): Rule {
  return new Rule(`an array of ${shapes.length}`, (value, location) =>
    Array.isArray(value) && value.length === shapes.length
      ? shapes.flatMap((shape, index) => differences(value[index], shape, `${location}[${index}]`))
      : [mismatch(location, `an array of ${shapes.length}`, value)],
  )
}

/** Any one of these. */
export function oneOf(...shapes: readonly Shape[]): Rule {
  const words = shapes.map(describe).join(' or ')
  return new Rule(words, (value, location) =>
    shapes.some((shape) => differences(value, shape, location).length === 0) ? [] : [mismatch(location, words, value)],
  )
}

/** An object without this field. */
export function without(field: string): Rule {
  return is(`an object without "${field}"`, (value) => isRecord(value) && !(field in value))
}

/** The differences between a value and a shape, as sentences; empty when it matches. */
export function differences(value: unknown, shape: Shape, location: string): string[] {
  if (shape instanceof Rule) return shape.differences(value, location)
  if (shape instanceof RegExp)
    return typeof value === 'string' && shape.test(value) ? [] : [mismatch(location, describe(shape), value)]
  if (typeof shape !== 'object' || shape === null) return value === shape ? [] : [mismatch(location, describe(shape), value)]
  if (!isRecord(value)) return [mismatch(location, 'an object', value)]
  return Object.entries(shape).flatMap(([field, wanted]) => differences(value[field], wanted, `${location}.${field}`))
}

function describe(shape: Shape): string {
  if (shape instanceof Rule) return shape.words
  return shape instanceof RegExp ? String(shape) : JSON.stringify(shape)
}

function mismatch(location: string, wanted: string, value: unknown): string {
  const got = value === undefined ? 'nothing' : JSON.stringify(value)
  return `${location}: expected ${wanted}, got ${got.length > 200 ? `${got.slice(0, 200)}…` : got}`
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
