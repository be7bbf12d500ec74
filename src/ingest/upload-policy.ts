import type { Caller } from '../accounts/permission.ts'
import type { StorageQuota } from '../accounts/storage-quota.ts'
import type { CatalogueDeps } from '../catalogue/catalogue-deps.ts'
import { getFolder, ROOT_FOLDER_ID } from '../catalogue/folder.ts'
import { assertExternalIdsFree, type OwnFields, parseOwnFields } from '../catalogue/own-fields.ts'
import { assertReplaceable } from '../catalogue/replacement-store.ts'
import { parseTitle } from '../catalogue/title.ts'
import { insertVideo } from '../catalogue/video-store.ts'
import { type MasterKey, signingKeys } from '../crypto/master-key.ts'
import { newId } from '../crypto/secret.ts'
import type { AlsoInTransaction } from '../db/write.ts'
import { Failure } from '../errors.ts'
import { amzCredential, amzDate, isValidSignature, SIGNATURE_ALGORITHM, type Signer, signPolicy } from './aws-v4.ts'
import { findPolicy, insertPolicy } from './upload-policy-store.ts'

export type PolicyDeps = CatalogueDeps & {
  masterKey: MasterKey
  /** The playback clock, which never goes back: a policy that has expired stays expired. */
  nowS: () => number
  quota: StorageQuota
}

/** The fields of the form, with the names that S3 clients use. */
type UploadForm = Record<'policy' | 'key' | 'x-amz-signature' | 'x-amz-algorithm' | 'x-amz-date' | 'x-amz-credential', string>

/** A video whose upload is pending, and the form for it. */
export type IssuedUpload = { videoId: string; form: UploadForm }

export const UPLOAD_POLICY_KEY = { info: 'reelgate upload-policy 1', lengthBytes: 32 } as const
export const BUCKET = 'reelgate'
const POLICY_LIFETIME_S = 24 * 3600

/** Fields that a form may have besides the signed ones; the policy allows any value for them. */
const UNSIGNED_FIELDS = ['success_action_status', 'success_action_redirect']

/**
 * Adds a video whose upload is pending, and issues the signed form that uploads it once within 24 hours.
 * @throws Failure `forbidden` when the account's uploads are off; `over-quota` when nothing more fits; `invalid` for an invalid title or field;
 *   `not-found` without such a folder; `conflict` for another video's `externalId`
 */
export async function issueUploadPolicy(
  deps: PolicyDeps,
  holder: Pick<Caller, 'accountId' | 'mayUpload'> & { consoleUserId?: string },
  { title, folderId = ROOT_FOLDER_ID, ...own }: { title: string; folderId?: string } & OwnFields,
  alsoInTransaction?: AlsoInTransaction<IssuedUpload>,
): Promise<IssuedUpload> {
  assertMayUpload(holder)
  await deps.quota.assertNotFull(holder.accountId)
  const fields = parseOwnFields(own)
  const { issued, expiresAtS } = issueForm(deps, newId())
  const { videoId } = issued
  await deps.write(async (tx) => {
    await getFolder(tx, holder.accountId, folderId)
    await assertExternalIdsFree(tx, holder.accountId, [fields.externalId])
    const video = { id: videoId, title: parseTitle(title), uploadTimeS: deps.wallNowS(), folderId, ...fields }
    await insertVideo(tx, holder.accountId, { ...video, addedBy: holder.consoleUserId })
    await insertPolicy(tx, holder.accountId, { key: issued.form.key, videoId, expiresAtS })
    await alsoInTransaction?.(tx, issued)
  })
  return issued
}

/**
 * Issues the form of one upload whose file replaces what the video plays. Until such a file is complete, nothing changes.
 * @throws Failure `forbidden` when the account's uploads are off; `over-quota` when nothing more fits; and as `assertReplaceable`
 */
export async function issueReplacementPolicy(
  deps: PolicyDeps,
  holder: Pick<Caller, 'accountId' | 'mayUpload'>,
  videoId: string,
  alsoInTransaction?: AlsoInTransaction<IssuedUpload>,
): Promise<IssuedUpload> {
  assertMayUpload(holder)
  await deps.quota.assertNotFull(holder.accountId)
  const { issued, expiresAtS } = issueForm(deps, videoId)
  await deps.write(async (tx) => {
    await assertReplaceable(tx, holder.accountId, videoId)
    await insertPolicy(tx, holder.accountId, { key: issued.form.key, videoId, expiresAtS, replaces: 1 })
    await alsoInTransaction?.(tx, issued)
  })
  return issued
}

/** @throws Failure `forbidden` when the account's uploads are off */
export function assertMayUpload({ mayUpload }: Pick<Caller, 'mayUpload'>): void {
  if (!mayUpload)
    throw new Failure('forbidden', 'Uploads are disabled for this account. Ask the server’s administrator to enable them.')
}

function issueForm(deps: Pick<PolicyDeps, 'masterKey' | 'nowS'>, videoId: string): { issued: IssuedUpload; expiresAtS: number } {
  const nowS = deps.nowS()
  const expiresAtS = nowS + POLICY_LIFETIME_S
  const form = signedForm(deriveSigners(deps.masterKey, nowS)[0], `orig/${videoId}/${newId()}`, nowS, expiresAtS)
  return { issued: { videoId, form }, expiresAtS }
}

function signedForm(signer: Signer, key: string, nowS: number, expiresAtS: number): UploadForm {
  const date = amzDate(nowS)
  const credential = amzCredential(signer, date)
  const conditions = [
    { bucket: BUCKET },
    { key },
    { 'x-amz-algorithm': SIGNATURE_ALGORITHM },
    { 'x-amz-credential': credential },
    { 'x-amz-date': date },
    ...UNSIGNED_FIELDS.map((field) => ['starts-with', `$${field}`, '']),
  ]
  const document = { expiration: new Date(expiresAtS * 1000).toISOString(), conditions }
  const policy = Buffer.from(JSON.stringify(document)).toString('base64')
  return {
    policy,
    key,
    'x-amz-signature': signPolicy(signer, date, policy),
    'x-amz-algorithm': SIGNATURE_ALGORITHM,
    'x-amz-date': date,
    'x-amz-credential': credential,
  }
}

/**
 * Checks the fields that precede the file in a form. `fields` has lower-case names.
 * @returns the video that the file belongs to, and its account; `isSpent` when an earlier upload has used the policy: see `confirmSource`;
 *   `replaces`: as in its row
 * @throws Failure `forbidden` when the signature or a field is wrong, or the policy has expired
 */
export async function admitUpload(
  deps: PolicyDeps,
  fields: ReadonlyMap<string, string>,
): Promise<{ key: string; accountId: string; videoId: string; isSpent: boolean; replaces: number }> {
  const signed = Object.fromEntries(fields)
  const { policy = '', key = '', 'x-amz-date': date = '', 'x-amz-signature': signature = '' } = signed
  const signers = deriveSigners(deps.masterKey, deps.nowS())
  if (!signers.some((signer) => isValidSignature(signer, date, policy, signature))) {
    throw new Failure('forbidden', 'The signature does not match the policy. Send the fields exactly as they were issued.')
  }
  // Only this server can have signed it, so its JSON needs no validation.
  const issued: { expiration: string; conditions: (Record<string, string> | string[])[] } = JSON.parse(
    Buffer.from(policy, 'base64').toString(),
  )
  if (Date.parse(issued.expiration) <= deps.nowS() * 1000)
    throw new Failure('forbidden', 'The policy has expired. Ask for a new one.')
  assertFieldsMatch(fields, issued.conditions)
  const found = await findPolicy(deps.db, key)
  if (!found) throw new Failure('forbidden', 'The video of this policy was deleted. Ask for a new one.')
  if (found.disabled === 1) throw new Failure('forbidden', 'The account of this policy is disabled.')
  const { accountId, videoId, spentAtS } = found
  return { key, accountId, videoId, isSpent: spentAtS !== null, replaces: found.replaces }
}

function assertFieldsMatch(fields: ReadonlyMap<string, string>, conditions: readonly (Record<string, string> | string[])[]) {
  const exact = new Map(conditions.flatMap((condition) => (Array.isArray(condition) ? [] : Object.entries(condition))))
  exact.delete('bucket') // not a field of the form: it is in the URL
  for (const [name, value] of exact) {
    if (fields.get(name) !== value) throw new Failure('forbidden', `The field "${name}" is not the one that was issued.`)
  }
  const known = new Set([...exact.keys(), ...UNSIGNED_FIELDS, 'policy', 'x-amz-signature', 'bucket'])
  for (const name of fields.keys()) {
    if (!known.has(name) && !name.startsWith('x-ignore-'))
      throw new Failure('forbidden', `The policy does not allow the field "${name}". Leave it out.`)
  }
}

/** The first one signs; the others verify forms that were issued before a rotation of the master key. */
function deriveSigners(master: MasterKey, nowS: number): [Signer, ...Signer[]] {
  const [current, ...former] = signingKeys(master, UPLOAD_POLICY_KEY.info, UPLOAD_POLICY_KEY.lengthBytes, nowS)
  return [signerOf(current), ...former.map(signerOf)]
}

function signerOf(key: Buffer): Signer {
  return { accessKeyId: 'REELGATE', secret: key.toString('hex'), region: 'us-east-1' }
}
