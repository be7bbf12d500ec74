import { type Actor, type AuditKind, recordAuditEvent } from '../audit/audit-log.ts'
import type { Db } from '../db/database.ts'
import type { Write } from '../db/write.ts'
import { Failure, videoNotFound } from '../errors.ts'
import { insertTags, listTagRows, maxTagCount, removeVideoTags } from './tag-store.ts'
import { listPositions } from './video-store.ts'

export type TagDeps = { db: Db; write: Write; wallNowS: () => number }

/** Which tags on which of the account's videos. */
type TagChange = { videoIds: readonly string[]; tags: readonly string[] }

const MAX_TAG_CHARACTERS = 255
const MAX_FILTER_TAGS = 50
/** Per video. */
const MAX_TAGS = 200
/** Pairs of video and tag per call: they share one transaction, and other writes wait for it. */
const MAX_PAIRS = 10_000

/** All tags of the account's videos, in the order of their code points. */
export async function listTags({ db }: Pick<TagDeps, 'db'>, accountId: string): Promise<string[]> {
  return listTagRows(db, accountId)
}

/** Adds the tags to each of the videos; existing ones remain. @throws Failure as `changeTags` */
export async function addTags(deps: TagDeps, accountId: string, by: Actor, tagging: TagChange): Promise<void> {
  await changeTags(deps, { accountId, by, kind: 'tags:added', ...tagging }, (tx, positions, tags) =>
    insertTags(tx, accountId, positions, tags),
  )
}

/** Replaces the tags of each of the videos; an empty list removes all. @throws Failure as `changeTags` */
export async function replaceTags(deps: TagDeps, accountId: string, by: Actor, tagging: TagChange): Promise<void> {
  await changeTags(deps, { accountId, by, kind: 'tags:replaced', ...tagging }, async (tx, positions, tags) => {
    await removeVideoTags(tx, accountId, positions)
    await insertTags(tx, accountId, positions, tags)
  })
}

/** Removes the tags from each of the videos. @throws Failure as `changeTags` */
export async function removeTags(deps: TagDeps, accountId: string, by: Actor, tagging: TagChange): Promise<void> {
  await changeTags(deps, { accountId, by, kind: 'tags:removed', ...tagging }, (tx, positions, tags) =>
    removeVideoTags(tx, accountId, positions, tags),
  )
}

/**
 * The tags of a new video, each once, as they are stored.
 * @throws Failure `invalid`, for too many as well
 */
export function parseTags(names: readonly string[]): string[] {
  const tags = [...new Set(names.map(parseTag))]
  if (tags.length > MAX_TAGS) throw new Failure('invalid', `A video may have at most ${MAX_TAGS} tags.`)
  return tags
}

/**
 * The form in which a tag is stored and searched: NFC, trimmed, with its case preserved.
 * @throws Failure `invalid`
 */
function parseTag(text: string): string {
  const trimmed = text.trim()
  // Normalizing takes quadratic time for combining marks, of which a composed character has at most three.
  const tag = trimmed.length > 4 * MAX_TAG_CHARACTERS ? '' : trimmed.normalize('NFC')
  if (tag === '' || [...tag].length > MAX_TAG_CHARACTERS || /\p{Cc}/u.test(tag) || !tag.isWellFormed())
    throw new Failure('invalid', `A tag must have 1 to ${MAX_TAG_CHARACTERS} characters, without control characters.`)
  return tag
}

/** The tags of a filter, each once. @throws Failure `invalid`, for too many as well */
export function parseTagFilter(names: readonly string[]): string[] {
  const tags = [...new Set(names.map(parseTag))]
  if (names.length > MAX_FILTER_TAGS) throw new Failure('invalid', `A list can be filtered by at most ${MAX_FILTER_TAGS} tags.`)
  return tags
}

/** All or nothing. @throws Failure `invalid`, or `not-found` when one of the videos is not the account's */
async function changeTags(
  { write, wallNowS }: TagDeps,
  { accountId, by, kind, ...tagging }: TagChange & { accountId: string; by: Actor; kind: AuditKind },
  change: (tx: Db, positions: number[], tags: string[]) => Promise<void>,
): Promise<void> {
  const videoIds = [...new Set(tagging.videoIds)]
  const tags = [...new Set(tagging.tags.map(parseTag))]
  if (videoIds.length === 0) return
  if (videoIds.length * Math.max(1, tags.length) > MAX_PAIRS)
    throw new Failure('invalid', `One call may change at most ${MAX_PAIRS} pairs of video and tag. Split it into several calls.`)
  const atS = wallNowS()
  await write(async (tx) => {
    const positions = await listPositions(tx, accountId, videoIds)
    if (positions.length < videoIds.length) throw videoNotFound()
    await change(tx, positions, tags)
    if ((await maxTagCount(tx, positions)) > MAX_TAGS)
      throw new Failure('invalid', `A video may have at most ${MAX_TAGS} tags. Remove some first.`)
    await recordAuditEvent(tx, { by, kind, atS, accountId, subjects: videoIds, details: { tags } })
  })
}
