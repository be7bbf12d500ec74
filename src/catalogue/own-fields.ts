import type { Db } from '../db/database.ts'
import { Failure } from '../errors.ts'
import { listExternalIds } from './own-fields-store.ts'
import type { OwnColumns } from './video-store.ts'

// What an owner's program gives a video for its own use: an id, unique among the account's videos, and pairs of texts.

/** Null or an empty value removes what was there. */
export type OwnFields = { externalId?: string | null | undefined; metadata?: Metadata | null | undefined }

export type Metadata = Readonly<Record<string, string>>

const MAX_EXTERNAL_ID_CHARACTERS = 255
const MAX_METADATA_BYTES = 4096
const MAX_NAME_CHARACTERS = 64
/** Triggers write pairs with longer values into no index. */
const MAX_INDEXED_VALUE_CHARACTERS = 255

/** Those of the fields that are given. @throws Failure `invalid` */
export function parseOwnFields({ externalId, metadata }: OwnFields): OwnColumns {
  return {
    ...(externalId === undefined ? {} : { externalId: externalId ? parseExternalId(externalId) : null }),
    ...(metadata === undefined ? {} : { metadata: metadata ? toJson(metadata) : null }),
  }
}

/** @throws Failure `invalid` */
export function parseExternalId(text: string): string {
  if ([...text].length > MAX_EXTERNAL_ID_CHARACTERS || /\p{Cc}/u.test(text) || !text.isWellFormed())
    throw new Failure(
      'invalid',
      `externalId must have 1 to ${MAX_EXTERNAL_ID_CHARACTERS} characters, without control characters.`,
    )
  return text
}

/** The pairs of a filter. @throws Failure `invalid` */
export function parseMetadataFilter(metadata: Metadata): Metadata {
  for (const [name, value] of Object.entries(metadata)) {
    assertPair(name, value)
    if ([...value].length > MAX_INDEXED_VALUE_CHARACTERS)
      throw new Failure(
        'invalid',
        `metadata[${name}]: values of more than ${MAX_INDEXED_VALUE_CHARACTERS} characters cannot be searched for.`,
      )
  }
  return metadata
}

export function readMetadata(column: string | null): Metadata {
  return column === null ? {} : JSON.parse(column)
}

/**
 * That no other video of the account has one of these ids, before one is given to a video. Deleted ones have given theirs up.
 * @throws Failure `conflict`
 */
export async function assertExternalIdsFree(
  tx: Db,
  accountId: string,
  externalIds: readonly (string | null | undefined)[],
  exceptVideoId?: string,
): Promise<void> {
  const given = externalIds.filter((externalId) => typeof externalId === 'string')
  if (given.length === 0) return
  const others = (await listExternalIds(tx, accountId, given)).filter(({ id }) => id !== exceptVideoId)
  const taken = others[0]?.externalId ?? given.find((externalId, at) => given.indexOf(externalId) < at)
  if (taken !== undefined)
    throw new Failure(
      'conflict',
      `Another video of this account has the externalId "${taken}". GET /api/videos?externalId=${encodeURIComponent(taken)} finds it.`,
    )
}

function toJson(metadata: Metadata): string | null {
  for (const [name, value] of Object.entries(metadata)) assertPair(name, value)
  const json = JSON.stringify(metadata)
  const sizeBytes = Buffer.byteLength(json)
  if (sizeBytes > MAX_METADATA_BYTES)
    throw new Failure('invalid', `metadata has at most ${MAX_METADATA_BYTES} bytes as JSON, but got ${sizeBytes}.`)
  return json === '{}' ? null : json
}

function assertPair(name: string, value: string): void {
  if (name === '' || [...name].length > MAX_NAME_CHARACTERS || /[\p{Cc}[\]]/u.test(name) || !name.isWellFormed())
    throw new Failure(
      'invalid',
      `A name in metadata must have 1 to ${MAX_NAME_CHARACTERS} characters, without brackets and control characters.`,
    )
  if (value.includes('\0') || !value.isWellFormed())
    throw new Failure('invalid', `The value of metadata "${name}" must have no NUL and no unpaired surrogates.`)
}
