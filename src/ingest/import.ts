import type { Caller } from '../accounts/permission.ts'
import { getFolder, ROOT_FOLDER_ID } from '../catalogue/folder.ts'
import { assertExternalIdsFree, type OwnFields, parseOwnFields } from '../catalogue/own-fields.ts'
import { insertReplacement } from '../catalogue/replacement-store.ts'
import { requeueFailed } from '../catalogue/status.ts'
import { parseTitle } from '../catalogue/title.ts'
import { findVideo, insertVideo, type OwnColumns } from '../catalogue/video-store.ts'
import { type MasterKey, unwrap, wrap } from '../crypto/master-key.ts'
import { newId } from '../crypto/secret.ts'
import type { Db } from '../db/database.ts'
import type { AlsoInTransaction } from '../db/write.ts'
import { Failure, videoNotFound } from '../errors.ts'
import { type OutboundPolicy, parseOutboundUrl } from '../outbound/policy.ts'
import type { Signals } from '../signals/signals.ts'
import { countImports, insertImport, isImportHeld, resumeHeldImport } from './import-store.ts'
import { displayName } from './source.ts'
import type { PolicyDeps } from './upload-policy.ts'

export type ImportDeps = PolicyDeps & {
  outbound: OutboundPolicy
  signals: Pick<Signals, 'send'>
}

/** A video whose import is pending. */
export type RequestedImport = { videoId: string; title: string }

const MAX_PENDING_PER_ACCOUNT = 5_000

export type ImportRequest = {
  url: string
  /** Default: the last part of the URL's path. */
  title?: string | undefined
  /** When the video was added where it comes from; default: now. */
  uploadTimeS?: number | undefined
} & OwnFields

/**
 * Has this server fetch the file that is to replace what a video plays, as `requestImport`. Until that can be played, the video stays as
 * it is.
 * @throws Failure as `requestImport`; `not-found`; `conflict` when the video does not play, or is being replaced already
 */
export async function requestReplacingImport(
  deps: ImportDeps,
  holder: Pick<Caller, 'accountId' | 'mayImport'>,
  { videoId, url }: { videoId: string; url: string },
  alsoInTransaction?: AlsoInTransaction<RequestedImport>,
): Promise<RequestedImport> {
  assertMayImport(holder)
  const parsed = parseImport(deps, { url })
  const { accountId } = holder
  await deps.quota.assertNotFull(accountId)
  const title = await deps.write(async (tx) => {
    await assertImportsFit(tx, accountId, 1)
    const video = await findVideo(tx, accountId, videoId)
    if (!video) throw videoNotFound()
    const { fileName } = parsed
    await insertReplacement(tx, { videoId, kind: 'replace', sourceNumber: null, fileName, requestedAtS: deps.wallNowS() })
    await insertImportOf(tx, deps.masterKey, { videoId, accountId, url: parsed.url, replaces: 1 })
    await alsoInTransaction?.(tx, { videoId, title: video.title })
    return video.title
  })
  void deps.signals.send('work-queued', 'import')
  return { videoId, title }
}

/** An import whose values are valid. */
export type ParsedImport = { videoId: string; url: URL; title: string; fileName: string; uploadTimeS: number } & OwnColumns

/**
 * Adds a video whose source this server will fetch. Durable when it resolves: the video is `Queued` then, and becomes `ready` or fails
 * with a reason, also after a restart.
 * @throws Failure `forbidden` when the account's imports are off; `invalid` for a URL or title that is not allowed; `not-found` without such a folder;
 *   `conflict` for another video's `externalId`;
 *   `over-quota` when nothing more fits; `limited` when too many are pending
 */
export async function requestImport(
  deps: ImportDeps,
  holder: Pick<Caller, 'accountId' | 'mayImport'> & { consoleUserId?: string },
  request: ImportRequest & { folderId?: string },
  alsoInTransaction?: AlsoInTransaction<RequestedImport>,
): Promise<RequestedImport> {
  assertMayImport(holder)
  const parsed = parseImport(deps, request)
  const { videoId, title } = parsed
  const folderId = request.folderId ?? ROOT_FOLDER_ID
  await deps.quota.assertNotFull(holder.accountId)
  await deps.write(async (tx) => {
    await assertImportsFit(tx, holder.accountId, 1)
    await getFolder(tx, holder.accountId, folderId)
    await insertParsedImport(tx, deps.masterKey, {
      ...parsed,
      accountId: holder.accountId,
      addedBy: holder.consoleUserId,
      folderId,
    })
    await alsoInTransaction?.(tx, { videoId, title })
  })
  void deps.signals.send('work-queued', 'import')
  return { videoId, title }
}

/** @throws Failure `forbidden` when the account's imports are off */
export function assertMayImport({ mayImport }: Pick<Caller, 'mayImport'>): void {
  if (!mayImport)
    throw new Failure('forbidden', 'Imports are disabled for this account. Ask the server’s administrator to enable them.')
}

/** @throws Failure `invalid` for a URL, title or time that is not allowed */
export function parseImport(
  { outbound, wallNowS }: Pick<ImportDeps, 'outbound' | 'wallNowS'>,
  request: ImportRequest,
): ParsedImport {
  const url = parseOutboundUrl(outbound, request.url)
  const fileName = fileNameIn(url)
  const title = parseTitle(request.title || fileName || url.hostname)
  const uploadTimeS = parseUploadTime(request.uploadTimeS, wallNowS())
  return { videoId: newId(), url, title, fileName, uploadTimeS, ...parseOwnFields(request) }
}

/** @throws Failure `limited` when too many imports would be pending with `added` more */
export async function assertImportsFit(tx: Db, accountId: string, added: number): Promise<void> {
  if ((await countImports(tx, accountId)) + added <= MAX_PENDING_PER_ACCOUNT) return
  const sentence = `At most ${MAX_PENDING_PER_ACCOUNT} imports of an account may be pending. Try again when some have finished.`
  throw new Failure('limited', sentence, { retryAfterS: 60 })
}

/** Adds the video, `Queued`, and its import. The folder is the account's. @throws Failure `conflict` for another video's `externalId` */
export async function insertParsedImport(
  tx: Db,
  masterKey: MasterKey,
  { accountId, url, videoId, ...video }: ParsedImport & { accountId: string; folderId: string; addedBy: string | undefined },
): Promise<void> {
  await assertExternalIdsFree(tx, accountId, [video.externalId])
  await insertVideo(tx, accountId, { id: videoId, ...video, status: 'Queued' })
  await insertImportOf(tx, masterKey, { videoId, accountId, url, replaces: 0 })
}

/** Adds the import of an existing video. */
export async function insertImportOf(
  tx: Db,
  masterKey: MasterKey,
  { url, ...row }: { videoId: string; accountId: string; url: URL; replaces: 0 | 1 },
): Promise<void> {
  const wrappedUrl = wrap(masterKey, importUrlPurpose(row.videoId), Buffer.from(url.href))
  await insertImport(tx, { ...row, host: url.hostname, wrappedUrl, nextAttemptAtS: 0 })
}

/**
 * Queues an import again that failed because its file did not fit: its URL was kept for that.
 * @param alsoInTransaction the caller's record of it
 * @returns false when the video is no such import
 * @throws Failure `over-quota` when still nothing fits
 */
export async function retryImport(
  { db, write, quota, signals }: Pick<ImportDeps, 'db' | 'write' | 'quota' | 'signals'>,
  { accountId, videoId }: { accountId: string; videoId: string },
  alsoInTransaction: (tx: Db) => Promise<void>,
): Promise<boolean> {
  if (!(await isImportHeld(db, accountId, videoId))) return false
  await quota.assertNotFull(accountId)
  const isQueued = await write(async (tx) => {
    if (!(await resumeHeldImport(tx, videoId)) || !(await requeueFailed(tx, videoId, 'Queued'))) return false
    await alsoInTransaction(tx)
    return true
  })
  if (isQueued) void signals.send('work-queued', 'import')
  return isQueued
}

/** @throws Failure `invalid` for a time in the future */
function parseUploadTime(uploadTimeS: number | undefined, nowS: number): number {
  if (uploadTimeS !== undefined && uploadTimeS > nowS)
    throw new Failure('invalid', 'upload_time is in the future. Send Unix seconds of the past, or leave it out.')
  return uploadTimeS ?? nowS
}

/** The URL of an import. It may be signed: use it for the request only, never in a log or an error. */
export function openImportUrl(masterKey: MasterKey, row: { videoId: string; wrappedUrl: Buffer }): string {
  return unwrap(masterKey, importUrlPurpose(row.videoId), row.wrappedUrl).toString()
}

export function importUrlPurpose(videoId: string): string {
  return `reelgate import-url 1 ${videoId}`
}

/** The last part of the path, decoded. */
function fileNameIn({ pathname }: URL): string {
  const last = pathname.split('/').at(-1) ?? ''
  try {
    return displayName(decodeURIComponent(last))
  } catch {
    return displayName(last) // invalid percent-encoding
  }
}
