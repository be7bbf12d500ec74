/** A TypeBox schema as plain JSON, which OpenAPI 3.1 accepts unchanged. */
export type JsonSchema = {
  type?: string
  description?: string
  examples?: unknown[]
  properties?: Record<string, JsonSchema>
  required?: string[]
  items?: JsonSchema
  anyOf?: JsonSchema[]
  const?: unknown
  [keyword: string]: unknown
}

export function toJsonSchema(schema: unknown): JsonSchema {
  return JSON.parse(JSON.stringify(schema))
}

type Property = { name: string; schema: JsonSchema; isRequired: boolean }

export function listProperties({ properties = {}, required = [] }: JsonSchema): Property[] {
  return Object.entries(properties).map(([name, schema]) => ({ name, schema, isRequired: required.includes(name) }))
}

/** The example that the schema gives, or one made of its parts': what is optional is in it when it has an example of its own. */
export function createExample(schema: JsonSchema): unknown {
  if (schema.examples) return schema.examples[0]
  if ('const' in schema) return schema.const
  if (schema.anyOf) return createExample(schema.anyOf[0] ?? {})
  if (schema.type === 'array') return [createExample(schema.items ?? {})]
  if (schema.type === 'object') {
    const shown = listProperties(schema).filter(({ schema: property, isRequired }) => isRequired || hasExample(property))
    return Object.fromEntries(shown.map(({ name, schema: property }) => [name, createExample(property)]))
  }
  return { string: '…', integer: 0, number: 0, boolean: true, null: null }[schema.type ?? ''] ?? '…'
}

function hasExample({ examples, properties = {} }: JsonSchema): boolean {
  return examples !== undefined || Object.values(properties).some(hasExample)
}

/** What a value may be, in words: `text`, `array of whole number`, `"a" or "b"`. */
export function describeType({ type, anyOf, items, ...schema }: JsonSchema): string {
  if ('const' in schema) return JSON.stringify(schema.const)
  if (anyOf) return [...new Set(anyOf.map(describeType))].join(' or ')
  if (type === 'array') return items ? `array of ${describeType(items)}` : 'array'
  return WORDS[type ?? ''] ?? type ?? 'any value'
}

const WORDS: Readonly<Record<string, string>> = {
  string: 'text',
  integer: 'whole number',
  number: 'number',
  boolean: 'true or false',
  null: 'null',
}
