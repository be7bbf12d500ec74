import type { Caller } from '../accounts/permission.ts'
import { openFolderPath, parseFolderPath } from '../catalogue/folder.ts'
import { parseTags } from '../catalogue/tag.ts'
import { insertTags } from '../catalogue/tag-store.ts'
import { listPositions } from '../catalogue/video-store.ts'
import type { Db } from '../db/database.ts'
import type { AlsoInTransaction } from '../db/write.ts'
import { Failure, type FailureKind } from '../errors.ts'
import {
  assertImportsFit,
  assertMayImport,
  type ImportDeps,
  type ImportRequest,
  insertParsedImport,
  type ParsedImport,
  parseImport,
  type RequestedImport,
} from './import.ts'

/** More would keep other writes waiting, since all of them share one transaction. */
export const MAX_LISTED_IMPORTS = 500

/** `folders` are names, the outermost first; missing ones are created if the caller may do that. */
type ListedImport = ImportRequest & { tags: readonly string[]; folders: readonly string[] }

/** What has become of an entry of the list: its video, or why there is none. */
export type ImportOutcome = RequestedImport | { problem: string }

type ParsedEntry = ParsedImport & { tags: string[]; folders: string[] }

/**
 * Adds a video for each valid entry, all in one transaction; this server fetches them one after another. Durable when it resolves.
 * @param list at most `MAX_LISTED_IMPORTS`
 * @returns the outcome of each entry, in the same order
 * @throws Failure as `requestImport`, for what concerns all entries
 */
export async function requestImports(
  deps: ImportDeps,
  holder: Caller,
  list: readonly ListedImport[],
  alsoInTransaction?: AlsoInTransaction<ImportOutcome[]>,
): Promise<ImportOutcome[]> {
  assertMayImport(holder)
  await deps.quota.assertNotFull(holder.accountId)
  const parse = async ({ tags, folders, ...request }: ListedImport): Promise<ParsedEntry> => {
    return { ...parseImport(deps, request), tags: parseTags(tags), folders: parseFolderPath(folders) }
  }
  const parsed = await Promise.all(list.map((entry) => orProblem(() => parse(entry))))
  const outcomes = await deps.write(async (tx) => {
    await assertImportsFit(tx, holder.accountId, parsed.length)
    const added: ParsedEntry[] = []
    const outcomes: ImportOutcome[] = []
    for (const entry of parsed) {
      const outcome = 'problem' in entry ? entry : await orProblem(() => addEntry(tx, deps, holder, entry))
      outcomes.push(outcome)
      if (!('problem' in entry) && !('problem' in outcome)) added.push(entry)
    }
    await tagVideos(tx, holder.accountId, added)
    await alsoInTransaction?.(tx, outcomes)
    return outcomes
  })
  void deps.signals.send('work-queued', 'import')
  return outcomes
}

async function addEntry(tx: Db, { masterKey, wallNowS }: ImportDeps, holder: Caller, { tags, folders, ...parsed }: ParsedEntry) {
  const { accountId, permissions } = holder
  const addedBy = 'consoleUserId' in holder ? holder.consoleUserId : undefined
  const mayCreate = permissions.includes('editor')
  const folderId = await openFolderPath(tx, { accountId, by: holder, path: folders, mayCreate, atS: wallNowS() })
  await insertParsedImport(tx, masterKey, { ...parsed, accountId, addedBy, folderId })
  return { videoId: parsed.videoId, title: parsed.title }
}

/** Most lists have few different sets of tags: one statement for each. */
async function tagVideos(tx: Db, accountId: string, entries: readonly ParsedEntry[]): Promise<void> {
  const tagged = entries.filter(({ tags }) => tags.length > 0)
  for (const sameTags of Map.groupBy(tagged, ({ tags }) => JSON.stringify(tags)).values()) {
    const positions = await listPositions(
      tx,
      accountId,
      sameTags.map(({ videoId }) => videoId),
    )
    await insertTags(tx, accountId, positions, sameTags[0]?.tags ?? [])
  }
}

/** What is wrong with one entry, and does not concern the others. */
const PROBLEMS_OF_ENTRIES: readonly FailureKind[] = ['invalid', 'not-found', 'conflict']

async function orProblem<Value>(action: () => Promise<Value>): Promise<Value | { problem: string }> {
  try {
    return await action()
  } catch (error) {
    if (error instanceof Failure && PROBLEMS_OF_ENTRIES.includes(error.kind)) return { problem: error.message }
    throw error
  }
}
