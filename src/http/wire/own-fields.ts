import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { Failure } from '../../errors.ts'
import { parseJson } from '../../json.ts'

export const ExternalId = Type.String({ description: 'your own id for the video, of 1 to 255 characters; unique in the account' })
export const Metadata = Type.Record(Type.String(), Type.String(), {
  description: 'your own pairs of texts, at most 4 kB as JSON',
  examples: [{ course: 'drawing' }],
})

/** In a body that makes a video. A form has each pair as a field of its own, such as `metadata[course]`. */
export const OwnFieldsBody = { externalId: Type.Optional(ExternalId), metadata: Type.Optional(Metadata) }

/** For the docs: a parameter for each pair. */
export const METADATA_PARAMETER = 'metadata[NAME]'
export const MetadataParameter = Type.Optional(
  Type.String({ description: 'a pair of the metadata, such as metadata[course]=drawing' }),
)

const PAIR = /^metadata\[(.*)\]$/s

/** The pairs `metadata[NAME]=VALUE` of a query or a form; undefined: none. @throws Failure `invalid` */
export function readMetadataParameters(parameters: object): Record<string, string> | undefined {
  const pairs = Object.entries(parameters).flatMap(([key, value]: [string, unknown]) => {
    if (!isMetadataParameter(key)) return []
    const name = PAIR.exec(key)?.[1]
    if (name === undefined || typeof value !== 'string')
      throw new Failure(
        'invalid',
        `"${key.slice(0, 80)}" is not a pair of the metadata. Write each name once, as metadata[NAME]=VALUE.`,
      )
    return [[name, value] as const]
  })
  return pairs.length === 0 ? undefined : Object.fromEntries(pairs)
}

/** The pairs as JSON. @throws Failure `invalid` */
export function parseMetadata(json: string): Record<string, string> {
  const pairs = parseJson(json)
  if (Value.Check(Metadata, pairs)) return pairs
  throw new Failure('invalid', 'metadata expects an object of texts as JSON, such as {"course":"drawing"}.')
}

/** Also a misspelled one, which must not be ignored. */
export function isMetadataParameter(key: string): boolean {
  return /^metadata\b/i.test(key)
}
