import { Failure } from '../../errors.ts'
import { parseJson } from '../../json.ts'

/**
 * The texts of a list field, in every form that clients use: a JSON array, the field repeated, PHP's `name[]`
 * and `name[0]`, or one text that is a JSON array or has commas. Undefined: the field is absent.
 * @throws Failure `invalid` for what is no list of texts
 */
export function readStringList(fields: unknown, name: string): string[] | undefined {
  const value = { ...asObject(fields), ...gatherMembers(fields, name) }[name]
  if (value === undefined) return undefined
  const texts = typeof value === 'string' ? parseTexts(value) : value
  if (!isStringArray(texts)) throw new Failure('invalid', `${name} must be a list of texts.`)
  return texts
}

/** The same fields, those that PHP spreads over `name[]` and `name[0]` gathered into a list. */
export function gatherArrayFields(fields: unknown, names: readonly string[]): object {
  return Object.assign({ ...asObject(fields) }, ...names.map((name) => gatherMembers(fields, name)))
}

function gatherMembers(fields: unknown, name: string): Record<string, unknown> {
  const members = Object.entries(asObject(fields)).flatMap(([field, value]) => {
    const [, index] = field.startsWith(`${name}[`) ? (/^\[(\d{0,9})\]$/.exec(field.slice(name.length)) ?? []) : []
    return index === undefined ? [] : [{ index: Number(index), value }]
  })
  const inOrder = members.toSorted((a, b) => a.index - b.index)
  return members.length === 0 ? {} : { [name]: inOrder.flatMap(({ value }) => value) }
}

function asObject(fields: unknown): Record<string, unknown> {
  return typeof fields === 'object' && fields !== null ? { ...fields } : {}
}

function parseTexts(text: string): unknown {
  const list = text.startsWith('[') ? parseJson(text) : undefined
  return (
    list ??
    text
      .split(',')
      .map((part) => part.trim())
      .filter((part) => part !== '')
  )
}

function isStringArray(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((each) => typeof each === 'string')
}
