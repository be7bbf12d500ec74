// What a value should look like, written as the contract writes it, and in words what is otherwise.

/** A value itself, a pattern of a text, an object of which these fields are asked, or a rule with its words. */
export type Shape = string | number | boolean | null | RegExp | Rule | { readonly [field: string]: Shape }

/** `differences`: in words, empty when the value is as it should be. */
export class Rule {
  readonly words: string
  readonly differences: (value: unknown, place: string) => string[]

  constructor(words: string, differences: (value: unknown, place: string) => string[]) {
    this.words = words
    this.differences = differences
  }
}

/** A rule that is true or not. */
export function is(words: string, holds: (value: unknown) => boolean): Rule {
  return new Rule(words, (value, place) => (holds(value) ? [] : [otherwise(place, words, value)]))
}

export const anyText = is('a text', (value) => typeof value === 'string')
export const sentence = is('a sentence', (value) => typeof value === 'string' && /^\S.{7,}/.test(value))
export const whole = is('a whole number', (value) => Number.isInteger(value) && Number(value) >= 0)
export const positive = is('a whole number above 0', (value) => Number.isInteger(value) && Number(value) > 0)
export const anyNumber = is('a number', (value) => typeof value === 'number')
export const zeroOrOne = is('0 or 1', (value) => value === 0 || value === 1)
export const trueOrFalse = is('true or false', (value) => typeof value === 'boolean')
export const webAddress = is('a web address', (value) => typeof value === 'string' && /^https?:\/\/[^/]/.test(value))
/** Within a day of this machine's clock, which tells seconds from milliseconds. */
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

/** An object with these fields and no other. */
export function exactly(fields: { readonly [field: string]: Shape }): Rule {
  return new Rule(`exactly the fields ${Object.keys(fields).join(', ')}`, (value, place) => {
    const others = isRecord(value) ? Object.keys(value).filter((field) => !(field in fields)) : []
    return [...differences(value, fields, place), ...others.map((field) => `${place}.${field}: should not be there`)]
  })
}

/** An array whose members all look so. */
export function listOf(shape: Shape): Rule {
  return new Rule('an array', (value, place) =>
    Array.isArray(value)
      ? value.flatMap((member, index) => differences(member, shape, `${place}[${index}]`))
      : [otherwise(place, 'an array', value)],
  )
}

/** The array of these members, in this order. */
export function inOrder(...shapes: readonly Shape[]): Rule {
  return new Rule(`an array of ${shapes.length}`, (value, place) =>
    Array.isArray(value) && value.length === shapes.length
      ? shapes.flatMap((shape, index) => differences(value[index], shape, `${place}[${index}]`))
      : [otherwise(place, `an array of ${shapes.length}`, value)],
  )
}

/** One of these; of no one needs there be more than one. */
export function oneOf(...shapes: readonly Shape[]): Rule {
  const words = shapes.map(inWords).join(' or ')
  return new Rule(words, (value, place) =>
    shapes.some((shape) => differences(value, shape, place).length === 0) ? [] : [otherwise(place, words, value)],
  )
}

/** An object without this field. */
export function without(field: string): Rule {
  return is(`an object without "${field}"`, (value) => isRecord(value) && !(field in value))
}

/** What of a value is not as it should be; empty when all is. */
export function differences(value: unknown, shape: Shape, place: string): string[] {
  if (shape instanceof Rule) return shape.differences(value, place)
  if (shape instanceof RegExp)
    return typeof value === 'string' && shape.test(value) ? [] : [otherwise(place, inWords(shape), value)]
  if (typeof shape !== 'object' || shape === null) return value === shape ? [] : [otherwise(place, inWords(shape), value)]
  if (!isRecord(value)) return [otherwise(place, 'an object', value)]
  return Object.entries(shape).flatMap(([field, wanted]) => differences(value[field], wanted, `${place}.${field}`))
}

function inWords(shape: Shape): string {
  if (shape instanceof Rule) return shape.words
  return shape instanceof RegExp ? String(shape) : JSON.stringify(shape)
}

function otherwise(place: string, wanted: string, value: unknown): string {
  const came = value === undefined ? 'nothing' : JSON.stringify(value)
  return `${place}: expected ${wanted}, came ${came.length > 200 ? `${came.slice(0, 200)}…` : came}`
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
