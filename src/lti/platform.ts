import type { Caller } from '../accounts/permission.ts'
import { requireRecentSignIn } from '../accounts/recent-sign-in.ts'
import { recordAuditEvent } from '../audit/audit-log.ts'
import { getFolder } from '../catalogue/folder.ts'
import { type MasterKey, wrap } from '../crypto/master-key.ts'
import { newId } from '../crypto/secret.ts'
import type { Db } from '../db/database.ts'
import type { LtiCourseRow, LtiPlatformRow } from '../db/tables.ts'
import type { Write } from '../db/write.ts'
import { Failure } from '../errors.ts'
import { parseJson } from '../json.ts'
import type { OutboundPolicy } from '../outbound/policy.ts'
import { assertEncrypted } from './ask-platform.ts'
import {
  deletePlatform,
  findPlatformOf,
  insertPlatform,
  listCourses,
  listPlatformRows,
  type PlatformChange,
  setCourseFolder,
  updatePlatform,
} from './platform-store.ts'
import { createToolKey, toolKeyPurpose } from './tool-key.ts'

// Learning platforms as their owner sees them. One that has registered by a link does nothing until the owner has confirmed it.

export type PlatformDeps = {
  db: Db
  write: Write
  /** The playback clock. */
  nowS: () => number
  masterKey: MasterKey
  outbound: OutboundPolicy
}

export type Platform = Omit<LtiPlatformRow, 'wrappedPrivateKey' | 'publicKey' | 'deploymentIds' | 'showsNames' | 'mayUpload'> & {
  deploymentIds: string[]
  showsNames: boolean
  mayUpload: boolean
}

/** What an owner may set. */
type PlatformSettings = Partial<
  Pick<
    Platform,
    'name' | 'clientId' | 'authorizationUrl' | 'tokenUrl' | 'keysUrl' | 'deploymentIds' | 'folderId' | 'showsNames' | 'mayUpload'
  >
> & { isConfirmed?: boolean }

const MAX_PLATFORMS = 100
const MAX_COURSES = 1_000

export async function findPlatforms({ db }: Pick<PlatformDeps, 'db'>, accountId: string): Promise<Platform[]> {
  return (await listPlatformRows(db, accountId)).map(toPlatform)
}

/** @throws Failure `not-found` */
async function getPlatform({ db }: Pick<PlatformDeps, 'db'>, accountId: string, id: string): Promise<Platform> {
  return toPlatform(await getRow(db, accountId, id))
}

async function getRow(db: Db, accountId: string, id: string): Promise<LtiPlatformRow> {
  const row = await findPlatformOf(db, accountId, id)
  if (!row) throw new Failure('not-found', `There is no learning platform ${id}. GET /api/lti/platforms lists them.`)
  return row
}

function toPlatform({ wrappedPrivateKey: _, publicKey: __, ...row }: LtiPlatformRow): Platform {
  return {
    ...row,
    deploymentIds: listDeployments(row),
    showsNames: row.showsNames === 1,
    mayUpload: row.mayUpload === 1,
  }
}

export function listDeployments({ deploymentIds }: Pick<LtiPlatformRow, 'deploymentIds'>): string[] {
  const ids = parseJson(deploymentIds)
  return Array.isArray(ids) ? ids.map(String) : []
}

type NewPlatform = Pick<
  LtiPlatformRow,
  'accountId' | 'name' | 'issuer' | 'clientId' | 'authorizationUrl' | 'tokenUrl' | 'keysUrl'
> & {
  deploymentIds: readonly string[]
}

/** A platform that is not confirmed, with a key of its own. Made before its row, because the platform is given addresses that name it. */
export async function preparePlatform(): Promise<{
  id: string
  /** In a transaction. @throws Failure `conflict` for too many */
  insert(tx: Db, masterKey: MasterKey, platform: NewPlatform, nowS: number): Promise<void>
}> {
  const id = newId()
  const { privateKey, publicKey } = await createToolKey(id)
  return {
    id,
    async insert(tx, masterKey, { deploymentIds, ...platform }, nowS) {
      if ((await listPlatformRows(tx, platform.accountId)).length >= MAX_PLATFORMS)
        throw new Failure('conflict', `An account may have at most ${MAX_PLATFORMS} learning platforms. Remove some first.`)
      const wrappedPrivateKey = wrap(masterKey, toolKeyPurpose(id), privateKey)
      const unset = { folderId: null, confirmedAtS: null, lastLaunchAtS: null, lastError: null, lastErrorAtS: null }
      const row = { ...platform, ...unset, deploymentIds: JSON.stringify(deploymentIds), createdAtS: nowS }
      await insertPlatform(tx, { ...row, id, wrappedPrivateKey, publicKey })
    },
  }
}

/**
 * Adds a platform that cannot register by a link. Its addresses may be set later: the platform asks for this server's first.
 * @throws Failure `invalid`, `conflict`
 */
export async function addPlatform(
  deps: PlatformDeps,
  caller: Caller,
  { name, issuer }: { name: string; issuer: string },
): Promise<Platform> {
  const { db, write, nowS, masterKey, outbound } = deps
  assertEncrypted(outbound, issuer)
  const { accountId } = caller
  const prepared = await preparePlatform()
  const addresses = { clientId: '', authorizationUrl: '', tokenUrl: '', keysUrl: '' }
  await write(async (tx) => {
    await prepared.insert(tx, masterKey, { accountId, name, issuer, ...addresses, deploymentIds: [] }, nowS())
    const event = { atS: nowS(), accountId, by: caller, kind: 'platform:added', subjects: [prepared.id] } as const
    await recordAuditEvent(tx, { ...event, details: { name, issuer } })
  })
  return getPlatform({ db }, accountId, prepared.id)
}

/** What a platform is known by; a confirmed one has all of it. */
const IDENTITY = ['clientId', 'authorizationUrl', 'tokenUrl', 'keysUrl'] as const

/**
 * Changes a platform, or confirms it: from then on its people launch videos.
 * @throws Failure `not-found`, also for the folder; `invalid`; `conflict` when it is confirmed without addresses; `sign-in-again`
 */
export async function changePlatform(
  deps: PlatformDeps,
  caller: Caller,
  id: string,
  settings: PlatformSettings,
): Promise<Platform> {
  const { db, write, nowS, outbound } = deps
  const { accountId } = caller
  const { isConfirmed, deploymentIds, showsNames, mayUpload, ...texts } = settings
  for (const url of [texts.authorizationUrl, texts.tokenUrl, texts.keysUrl]) if (url) assertEncrypted(outbound, url)
  await write(async (tx) => {
    const before = await getRow(tx, accountId, id)
    if (texts.folderId) await getFolder(tx, accountId, texts.folderId)
    const change: PlatformChange = {
      ...texts,
      ...(deploymentIds && { deploymentIds: JSON.stringify([...new Set(deploymentIds)]) }),
      ...(showsNames !== undefined && { showsNames: Number(showsNames) }),
      ...(mayUpload !== undefined && { mayUpload: Number(mayUpload) }),
      ...(isConfirmed !== undefined && { confirmedAtS: isConfirmed ? (before.confirmedAtS ?? nowS()) : null }),
    }
    const after = { ...before, ...change }
    // Who may sign launches: new keys of a confirmed platform are as good as confirming another one.
    if (after.confirmedAtS !== null && (before.confirmedAtS === null || IDENTITY.some((name) => after[name] !== before[name])))
      requireRecentSignIn(caller, nowS())
    if (after.confirmedAtS !== null && !IDENTITY.every((name) => after[name]))
      throw new Failure(
        'conflict',
        'Set clientId, authorizationUrl, tokenUrl and keysUrl of this platform before you confirm it. A confirmed one keeps them.',
      )
    if (Object.keys(change).length > 0) await updatePlatform(tx, id, change)
    const kind = isConfirmed && before.confirmedAtS === null ? 'platform:confirmed' : 'platform:changed'
    const details = { ...texts, deploymentIds, showsNames, mayUpload, confirmed: isConfirmed }
    await recordAuditEvent(tx, { atS: nowS(), accountId, by: caller, kind, subjects: [id], details })
  })
  return getPlatform({ db }, accountId, id)
}

/** Removes a platform: from now on nothing is launched from it, and no score is sent. @throws Failure `not-found` */
export async function removePlatform({ write, nowS }: PlatformDeps, caller: Caller, id: string): Promise<void> {
  const { accountId } = caller
  await write(async (tx) => {
    const { name, issuer } = await getRow(tx, accountId, id)
    await deletePlatform(tx, id)
    const details = { name, issuer }
    await recordAuditEvent(tx, { atS: nowS(), accountId, by: caller, kind: 'platform:removed', subjects: [id], details })
  })
}

/** The courses that have launched something, the last first. @throws Failure `not-found` */
export async function findCourses({ db }: Pick<PlatformDeps, 'db'>, accountId: string, id: string): Promise<LtiCourseRow[]> {
  await getRow(db, accountId, id)
  return listCourses(db, id, MAX_COURSES)
}

/** Opens a folder to one course. @param folderId null: what is open to the platform @throws Failure `not-found` */
export async function openToCourse(
  { write, nowS }: PlatformDeps,
  caller: Caller,
  { platformId, courseId, folderId }: Pick<LtiCourseRow, 'platformId' | 'courseId' | 'folderId'>,
): Promise<void> {
  const { accountId } = caller
  await write(async (tx) => {
    await getRow(tx, accountId, platformId)
    if (folderId !== null) await getFolder(tx, accountId, folderId)
    if (!(await setCourseFolder(tx, { platformId, courseId }, folderId)))
      throw new Failure('not-found', 'This course has launched nothing yet. Open the folder to it after its first launch.')
    const details = { courseId, folderId }
    await recordAuditEvent(tx, { atS: nowS(), accountId, by: caller, kind: 'platform:changed', subjects: [platformId], details })
  })
}
