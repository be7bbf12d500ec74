import type { FastifyError } from 'fastify'

// What a schema refuses, as a sentence for the caller: what came, what was expected. A validator's own words name its rules.

/** What the validator says of one value; `verbose` adds the value and the schema that it breaks. */
type Fault = {
  keyword: string
  instancePath: string
  params: Record<string, unknown>
  data?: unknown
  parentSchema?: unknown
}
type Schema = Record<string, unknown>

const PARTS: Record<string, string> = { querystring: 'query parameter', params: 'part of the path', headers: 'header' }
/** Descriptions of patterns; for the others the sentence refers to the API reference. */
const FORMS: Record<string, string> = {
  '^[0-9a-f]{32}$': 'an id of 32 lower-case hexadecimal digits',
  '^[!-~]{1,255}$': '1 to 255 visible ASCII characters',
}
const MAX_SHOWN_CHARS = 20

/** @returns such as `The field "tags" expects a list, each entry a text, but got the number 5.` */
export function validationMessage(error: Pick<FastifyError, 'validation' | 'validationContext'>): string {
  const faults: readonly Fault[] = error.validation ?? []
  // The faults of each alternative come first, that of the choice itself last.
  const fault = faults.at(-1)
  if (!fault) return 'The request does not match the schema of this operation. The API reference shows it.'
  const part = PARTS[error.validationContext ?? ''] ?? 'field'
  if (fault.keyword === 'required') return missing(part, fault)
  const name = toFieldName(fault.instancePath)
  const subject = name === '' ? 'The body' : `The ${part} "${name}"`
  return `${subject} expects ${expected(fault.parentSchema)}, but got ${shown(fault.data)}.`
}

function missing(part: string, { instancePath, params, parentSchema }: Fault): string {
  const name = String(params.missingProperty)
  const { properties } = isSchema(parentSchema) ? parentSchema : {}
  const schema = isSchema(properties) ? properties[name] : undefined
  return `The ${part} "${toFieldName(`${instancePath}/${name}`)}" is missing. Send it as ${expected(schema)}.`
}

/** `/videos/0` is `videos[0]`. */
function toFieldName(instancePath: string): string {
  return instancePath
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
    .reduce((name, part) => (/^\d+$/.test(part) ? `${name}[${part}]` : name === '' ? part : `${name}.${part}`), '')
}

function expected(schema: unknown): string {
  return inWords([...new Set(alternatives(schema))])
}

function alternatives(schema: unknown): string[] {
  if (isSchema(schema) && Array.isArray(schema.anyOf)) return schema.anyOf.flatMap(alternatives)
  if (isSchema(schema) && schema.type === 'boolean') return ['true', 'false']
  return [isSchema(schema) ? expectedOne(schema) : 'another value']
}

function expectedOne(schema: Schema): string {
  if ('const' in schema) return JSON.stringify(schema.const)
  if (schema.type === 'string') return expectedText(schema)
  if (schema.type === 'integer' || schema.type === 'number') return expectedNumber(schema)
  if (schema.type === 'array') {
    const most = schema.maxItems === undefined ? '' : ` of at most ${schema.maxItems} entries`
    return `a list${most}, each entry ${expected(schema.items)}`
  }
  if (schema.type === 'object') return 'an object'
  return schema.type === 'null' ? 'null' : 'another value'
}

function expectedText({ pattern, maxLength }: Schema): string {
  if (pattern !== undefined) return FORMS[String(pattern)] ?? 'a text in the form that the API reference shows'
  return maxLength === undefined ? 'a text' : `a text of at most ${maxLength} characters`
}

function expectedNumber({ type, minimum, maximum }: Schema): string {
  const kind = type === 'integer' ? 'a whole number' : 'a number'
  if (minimum !== undefined && maximum !== undefined) return `${kind} from ${minimum} to ${maximum}`
  return minimum === undefined ? kind : `${kind} of at least ${minimum}`
}

/** Short words and numbers are repeated, anything longer only described: it may be a secret in the wrong place. */
function shown(value: unknown): string {
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : 'a list'
  if (typeof value === 'string') {
    const isHarmless = value.length <= MAX_SHOWN_CHARS && /^[\w .,:+-]*$/.test(value)
    return isHarmless ? `the text "${value}"` : `a text of ${value.length} characters`
  }
  if (typeof value === 'number') return `the number ${value}`
  return typeof value === 'object' && value !== null ? 'an object' : String(value)
}

function inWords(alternatives: readonly string[]): string {
  return new Intl.ListFormat('en-GB', { type: 'disjunction' }).format(alternatives)
}

function isSchema(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null
}
