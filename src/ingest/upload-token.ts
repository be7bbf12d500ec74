import { findAccountById } from '../accounts/account-store.ts'
import type { Caller } from '../accounts/permission.ts'
import { requireRecentSignIn } from '../accounts/recent-sign-in.ts'
import { recordAuditEvent } from '../audit/audit-log.ts'
import { type DeletionDeps, deleteVideos } from '../catalogue/deletion.ts'
import { getFolder, ROOT_FOLDER_ID } from '../catalogue/folder.ts'
import { assertMayEdit } from '../catalogue/may-edit.ts'
import { parseTags } from '../catalogue/tag.ts'
import { parseTitle } from '../catalogue/title.ts'
import { listExisting } from '../catalogue/video-store.ts'
import { hashSecret, isSecret, newId, newSecret } from '../crypto/secret.ts'
import type { Db } from '../db/database.ts'
import type { UploadTokenRow } from '../db/tables.ts'
import type { Write } from '../db/write.ts'
import { Failure, videoNotFound } from '../errors.ts'
import { displayName } from './source.ts'
import { assertMayUpload } from './upload-policy.ts'
import {
  findUploadToken,
  insertUploadToken,
  listUnfinishedOfToken,
  listUploadTokens,
  removeExpiredTokens,
  removeReplacingOfToken,
  revokeLiveToken,
  setUploadToken,
  takeFile,
} from './upload-token-store.ts'

// What the page of an owner uploads with, instead of a key. Visitors can read it there, so it is good for little: so many files of such a
// size, with this title, folder and tags, for a while, from pages of one origin. A browser names the origin of the page that sends a
// request; a program may name any.

type UploadTokenDeps = { db: Db; write: Write /** The playback clock. */; nowS: () => number }

/** Tells a token from a key. */
const PREFIX = 'upload_'

/** The wildcard of a pattern. */
const ANY = '*'

export type UploadToken = Omit<UploadTokenRow, 'hash' | 'tags'> & { tags: readonly string[] }

/** Who sends a token: it adds files to the account, and sees no more than what it has sent. */
export type TokenHolder = { accountId: string; mayUpload: boolean; uploadTokenId: string; uploadToken: UploadToken }

/** Who sends a file. */
export type Uploader = Caller | TokenHolder

type NewUploadToken = {
  origin: string
  title: string | undefined
  titlePattern: string | undefined
  folderId: string | undefined
  tags: readonly string[]
  maxSizeBytes: number | undefined
  maxFiles: number
  lifeS: number
  reference: string | undefined
  /** Of a video whose file it replaces; then without title, pattern, folder and tags. */
  videoId: string | undefined
}

/**
 * Makes a token for pages of an origin. Durable when it resolves. It ends with the key that made it.
 * @returns the token, the only copy
 * @throws Failure `invalid`; `not-found` without such a folder; `forbidden` when the account's uploads are off; `sign-in-again`
 */
export async function createUploadToken(
  { db, write, nowS }: UploadTokenDeps,
  caller: Caller,
  { lifeS, ...request }: NewUploadToken,
): Promise<{ id: string; token: string; expiresAtS: number }> {
  requireRecentSignIn(caller, nowS())
  assertMayUpload(caller)
  assertOrigin(request.origin)
  if (request.title !== undefined && request.titlePattern !== undefined)
    throw new Failure('invalid', 'Send either "title" or "titlePattern".')
  if (request.title !== undefined) parseTitle(request.title)
  if (request.titlePattern !== undefined && parseTitle(request.titlePattern).split(ANY).length !== 2)
    throw new Failure('invalid', `"titlePattern" must have one "${ANY}", where the page fills in the rest.`)
  if (request.videoId !== undefined) await assertMayReplace({ db, nowS }, caller, { ...request, videoId: request.videoId })
  const { accountId } = caller
  const [id, secret, atS] = [newId(), newSecret(), nowS()]
  const token = PREFIX + secret
  const { origin, title = null, titlePattern = null, folderId = ROOT_FOLDER_ID, maxSizeBytes = null, maxFiles } = request
  const row = {
    ...{ id, accountId, hash: hashSecret(token), origin, title, titlePattern, folderId, maxSizeBytes, maxFiles },
    ...{ tags: JSON.stringify(parseTags(request.tags)), reference: request.reference ?? null, videoId: request.videoId ?? null },
    ...{ createdAtS: atS, expiresAtS: atS + lifeS, revokedAtS: null },
    apiKeyId: 'apiKeyId' in caller ? caller.apiKeyId : null,
    consoleUserId: 'consoleUserId' in caller ? caller.consoleUserId : null,
  }
  await write(async (tx) => {
    await getFolder(tx, accountId, folderId)
    await insertUploadToken(tx, row)
    const details = { origin, reference: row.reference, maxFiles, expiresAtS: row.expiresAtS }
    await recordAuditEvent(tx, { atS, accountId, by: caller, kind: 'upload-token:created', subjects: [id], details })
  })
  return { id, token, expiresAtS: row.expiresAtS }
}

/** How long a teacher has for a file. */
const PLATFORM_LIFE_S = 4 * 3600

/**
 * Makes a token for one file that a teacher sends from a learning platform, to a page of this server.
 * @throws Failure `forbidden` when the account's uploads are off; `not-found` without such a folder
 */
export async function createPlatformUploadToken(
  { write, nowS }: UploadTokenDeps,
  { accountId, ...given }: Pick<UploadTokenRow, 'accountId' | 'origin' | 'folderId' | 'reference'>,
): Promise<string> {
  const [id, secret, atS] = [newId(), newSecret(), nowS()]
  const token = PREFIX + secret
  const expiresAtS = atS + PLATFORM_LIFE_S
  const unset = {
    title: null,
    titlePattern: null,
    maxSizeBytes: null,
    videoId: null,
    revokedAtS: null,
    apiKeyId: null,
    consoleUserId: null,
  }
  await write(async (tx) => {
    const account = await findAccountById(tx, accountId)
    if (!account?.mayUpload) throw new Failure('forbidden', 'Uploads are off for the account of these videos.')
    await getFolder(tx, accountId, given.folderId)
    const row = {
      ...unset,
      ...given,
      id,
      accountId,
      hash: hashSecret(token),
      tags: '[]',
      maxFiles: 1,
      createdAtS: atS,
      expiresAtS,
    }
    await insertUploadToken(tx, row)
    const details = { origin: given.origin, reference: given.reference, maxFiles: 1, expiresAtS }
    await recordAuditEvent(tx, { atS, accountId, by: 'server', kind: 'upload-token:created', subjects: [id], details })
  })
  return token
}

/** @throws Failure `invalid`, `forbidden`, `not-found` */
async function assertMayReplace(deps: Pick<UploadTokenDeps, 'db' | 'nowS'>, caller: Caller, request: Replacing): Promise<void> {
  const { videoId, title, titlePattern, folderId, tags } = request
  if ([title, titlePattern, folderId, tags[0]].some((value) => value !== undefined))
    throw new Failure(
      'invalid',
      'With "videoId" a token replaces the file alone: leave out title, titlePattern, folderId and tags.',
    )
  await assertMayEdit(deps, caller, 'editor', [videoId])
  if ((await listExisting(deps.db, caller.accountId, [videoId])).length === 0) throw videoNotFound()
}

type Replacing = Pick<NewUploadToken, 'title' | 'titlePattern' | 'folderId' | 'tags'> & { videoId: string }

/** As browsers write it. @throws Failure `invalid` */
function assertOrigin(origin: string): void {
  const url = URL.canParse(origin) ? new URL(origin) : undefined
  const isOnThisMachine = /^(localhost|.+\.localhost|127\.0\.0\.1|\[::1\])$/.test(url?.hostname ?? '')
  if (url?.origin === origin && (url.protocol === 'https:' || (url.protocol === 'http:' && isOnThisMachine))) return
  throw new Failure(
    'invalid',
    '"origin" must be the scheme, host and port of the page as browsers write them, such as "https://school.example"; http only at localhost.',
  )
}

/** The newest first. A person who may only upload sees those that they have made. */
export async function findUploadTokens(
  { db }: Pick<UploadTokenDeps, 'db'>,
  caller: Caller,
  page: { limit: number; below: number | undefined },
): Promise<UploadToken[]> {
  const rows = await listUploadTokens(db, caller.accountId, { ...page, madeBy: ownOnly(caller) })
  return rows.map(toToken)
}

function ownOnly(caller: Caller): string | undefined {
  return 'consoleUserId' in caller && !caller.permissions.includes('editor') ? caller.consoleUserId : undefined
}

function toToken({ hash, tags, ...row }: UploadTokenRow): UploadToken {
  return { ...row, tags: JSON.parse(tags) }
}

/**
 * Durable when it resolves: the token is refused from the next request on, and what was being sent with it is deleted.
 * @throws Failure `not-found` when there is no such token, or it has ended
 */
export async function revokeUploadToken(deps: UploadTokenDeps & DeletionDeps, caller: Caller, id: string): Promise<void> {
  const { accountId } = caller
  const atS = deps.nowS()
  await deps.write(async (tx) => {
    const revoked = await revokeLiveToken(tx, accountId, { id, madeBy: ownOnly(caller), nowS: atS })
    if (!revoked)
      throw new Failure('not-found', `There is no upload token ${id} that is still valid. GET /api/upload-tokens lists them.`)
    if (revoked.videoId !== null) await removeReplacingOfToken(tx, id, revoked.videoId)
    await recordAuditEvent(tx, { atS, accountId, by: caller, kind: 'upload-token:revoked', subjects: [id] })
  })
  const videoIds = await listUnfinishedOfToken(deps.db, id)
  await deleteVideos(deps, { accountId, by: caller, videoIds, onlyStatus: 'PRE-Upload' })
}

/** A token that this server knows, and what it is worth to pages of its origin. */
type KnownToken = {
  origin: string
  /** @throws Failure `unauthenticated` when it has ended; `forbidden` when its account is disabled */
  holder(): TokenHolder
}

/** Whether it looks like a token. */
export function isUploadToken(secret: string): boolean {
  return secret.startsWith(PREFIX)
}

/** @throws Failure `unauthenticated` for an unknown one */
export async function getUploadToken({ db, nowS }: Pick<UploadTokenDeps, 'db' | 'nowS'>, token: string): Promise<KnownToken> {
  const found = isSecret(token.slice(PREFIX.length)) ? await findUploadToken(db, hashSecret(token)) : undefined
  if (!found) throw tokenEnded()
  const { mayUpload, disabled, keyRevokedAtS, keyExpiresAtS, role, personDisabled, ...row } = found
  const endsAtS = Math.min(row.expiresAtS, keyExpiresAtS ?? Number.POSITIVE_INFINITY)
  const isMakerGone = row.consoleUserId !== null && (personDisabled !== 0 || role === 'viewer')
  const isRevoked = row.revokedAtS !== null || keyRevokedAtS !== null || isMakerGone
  return {
    origin: row.origin,
    holder() {
      if (isRevoked || endsAtS <= nowS()) throw tokenEnded()
      if (disabled === 1) throw new Failure('forbidden', 'The account of this upload token is disabled.')
      return { accountId: row.accountId, mayUpload: mayUpload === 1, uploadTokenId: row.id, uploadToken: toToken(row) }
    },
  }
}

function tokenEnded(): Failure {
  return new Failure(
    'unauthenticated',
    'The upload token is unknown, has expired or was revoked. Ask the owner’s server for a new one.',
  )
}

/**
 * The holder of a token that comes from a page. An `Origin` binds browsers, which name the page's own; a program may name any.
 * @throws Failure `forbidden` for another origin; and as `KnownToken.holder`
 */
export function admitFromOrigin(token: KnownToken, origin: string | undefined): TokenHolder {
  if (origin !== token.origin)
    throw new Failure('forbidden', 'This upload token is for pages of another origin. Make one for the origin of this page.')
  return token.holder()
}

/** What a page says of its file. */
type SentFields = {
  title: string | undefined
  fileName: string
  folderId: string | undefined
  tags: readonly string[]
  videoId: string | undefined
  /** Which only owners set. */
  ownFields: { externalId?: unknown; metadata?: unknown }
}

/**
 * What a file becomes that is sent with a token.
 * @throws Failure `forbidden` for anything else than what the token fixes
 */
export function applyToken<Sent extends SentFields>(token: UploadToken, sent: Sent): Sent {
  const { title, titlePattern, folderId, tags } = token
  for (const name of ['externalId', 'metadata'] as const) if (sent.ownFields[name] !== undefined) throw fixedByToken(name)
  if (sent.videoId !== undefined && sent.videoId !== token.videoId) throw fixedByToken('videoId')
  if (sent.folderId !== undefined && sent.folderId !== folderId) throw fixedByToken('folderId')
  if (sent.tags.length > 0 && !isSameSet(sent.tags, tags)) throw fixedByToken('tags')
  if (sent.title && !isAllowedTitle(token, sent.title)) throw fixedByToken('title')
  if (token.videoId !== null) return applyReplacingToken({ ...sent, videoId: token.videoId })
  return { ...sent, folderId, tags, title: title ?? (sent.title || titleOf(titlePattern, sent.fileName)) }
}

/** Of a video that stays as it is but for its file. */
function applyReplacingToken<Sent extends SentFields>(sent: Sent): Sent {
  if (sent.title) throw fixedByToken('title')
  return { ...sent, title: undefined, folderId: undefined, tags: [] }
}

/** The same with the largest file that a token allows. */
export function limitToToken<Deps extends { uploadMaxBytes: number }>(deps: Deps, holder: Uploader): Deps {
  const maxSizeBytes = ('uploadToken' in holder && holder.uploadToken.maxSizeBytes) || deps.uploadMaxBytes
  return { ...deps, uploadMaxBytes: Math.min(deps.uploadMaxBytes, maxSizeBytes) }
}

function isSameSet(one: readonly string[], other: readonly string[]): boolean {
  return new Set(one).symmetricDifference(new Set(other)).size === 0
}

function isAllowedTitle({ title, titlePattern }: UploadToken, sent: string): boolean {
  if (title !== null) return sent === title
  const [before = '', after = ''] = (titlePattern ?? ANY).split(ANY)
  return sent.length >= before.length + after.length && sent.startsWith(before) && sent.endsWith(after)
}

/** Undefined: the file's name alone. */
function titleOf(titlePattern: string | null, sentName: string): string | undefined {
  const fileName = displayName(sentName)
  return fileName === '' || titlePattern === null ? undefined : titlePattern.split(ANY).join(fileName)
}

function fixedByToken(name: string): Failure {
  return new Failure('forbidden', `This upload token does not allow this "${name}". Leave it out, or ask for a token that does.`)
}

/**
 * Counts a file as one of the token's, in the transaction that adds its video or begins to replace the file of one.
 * @throws Failure `forbidden` when there is none left, or the token has ended
 */
export async function useToken(tx: Db, token: UploadToken, videoId: string, nowS: number): Promise<void> {
  if (!(await takeFile(tx, token.id, nowS)))
    throw new Failure('forbidden', `This upload token was for ${token.maxFiles} files, which have been sent. Ask for a new one.`)
  if (token.videoId === null) await setUploadToken(tx, videoId, token)
}

/** How long tokens are listed after they have expired. */
const KEPT_S = 30 * 24 * 3600
const BATCH_SIZE = 1_000

/** Removes tokens that expired a while ago. */
export async function pruneUploadTokens({ write, nowS }: UploadTokenDeps): Promise<void> {
  while ((await write((tx) => removeExpiredTokens(tx, nowS() - KEPT_S, BATCH_SIZE))) > 0);
}
