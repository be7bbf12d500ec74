import { fileKeyPurpose } from '../catalogue/file-key.ts'
import { contentKeyPurpose } from '../crypto/content-key.ts'
import type { MasterKey } from '../crypto/master-key.ts'
import { storedResponsePurpose } from '../idempotency/idempotency.ts'
import { importUrlPurpose } from '../ingest/import.ts'
import { sourceKeyPurpose } from '../ingest/source.ts'
import { gradeSubjectPurpose } from '../lti/grade.ts'
import { toolKeyPurpose } from '../lti/tool-key.ts'
import { serverKeyPurpose } from '../playback/sessions/server-key.ts'
import { passwordHashPurpose } from '../users/user.ts'
import { openImage, watermarkImagePurpose } from '../watermark/watermark-image.ts'
import { webhookSecretPurpose } from '../webhooks/webhook.ts'

/** The value of a column that identifies a row or goes into the purpose of what is wrapped in it. */
export type KeyValue = string | number | Buffer

/** A column whose values the master key wrapped. */
export type WrappedColumn = {
  table: string
  column: string
  /** The table's key, with its types in PostgreSQL. */
  key: Readonly<Record<string, 'text' | 'bigint' | 'bytea'>>
  /** Other columns that the purpose needs. */
  also?: readonly string[]
  /** How many rows are read at once, where values are large. */
  pageSize?: number
  /** What the value was wrapped for, as in the feature that wraps it. */
  purpose(row: Readonly<Record<string, KeyValue>>): string
  /** For values that an earlier version did not wrap. */
  open?(master: MasterKey, row: Readonly<Record<string, KeyValue>>, wrapped: Buffer): Buffer
}

/** Everything that the master key wraps. `test/master-key/wrapped-columns.test.ts` compares it with the tables. */
export const WRAPPED_COLUMNS: readonly WrappedColumn[] = [
  {
    ...{ table: 'generation', column: 'wrappedContentKey', key: { videoId: 'text', number: 'bigint' } },
    purpose: ({ videoId, number }) => contentKeyPurpose(String(videoId), Number(number)),
  },
  {
    // Not by its number, which it does not have before an upgrade from 0.2.0.
    ...{ table: 'source', column: 'wrappedKey', key: { videoId: 'text', file: 'text' } },
    purpose: ({ videoId }) => sourceKeyPurpose(String(videoId)),
  },
  {
    ...{ table: 'file', column: 'wrappedKey', key: { id: 'bigint' }, also: ['blob'] },
    purpose: ({ blob }) => fileKeyPurpose(String(blob)),
  },
  {
    ...{ table: 'import', column: 'wrappedUrl', key: { videoId: 'text' } },
    purpose: ({ videoId }) => importUrlPurpose(String(videoId)),
  },
  {
    ...{ table: 'import', column: 'wrappedKey', key: { videoId: 'text' } },
    purpose: ({ videoId }) => sourceKeyPurpose(String(videoId)),
  },
  {
    ...{ table: 'resumableUpload', column: 'wrappedKey', key: { id: 'text' }, also: ['videoId'] },
    purpose: ({ videoId }) => sourceKeyPurpose(String(videoId)),
  },
  {
    ...{ table: 'webhook', column: 'wrappedSecret', key: { id: 'text' } },
    purpose: ({ id }) => webhookSecretPurpose(String(id)),
  },
  {
    ...{ table: 'webhook', column: 'previousWrappedSecret', key: { id: 'text' } },
    purpose: ({ id }) => webhookSecretPurpose(String(id)),
  },
  {
    ...{ table: 'serverKey', column: 'wrappedPrivateKey', key: { id: 'text' } },
    purpose: ({ id }) => serverKeyPurpose(String(id)),
  },
  {
    ...{ table: 'ltiPlatform', column: 'wrappedPrivateKey', key: { id: 'text' } },
    purpose: ({ id }) => toolKeyPurpose(String(id)),
  },
  {
    ...{ table: 'ltiGrade', column: 'wrappedSubject', key: { id: 'text' }, also: ['platformId', 'userId'] },
    purpose: ({ platformId, userId }) => gradeSubjectPurpose({ platformId: String(platformId), userId: String(userId) }),
  },
  {
    ...{ table: 'consoleUser', column: 'wrappedPasswordHash', key: { id: 'text' } },
    purpose: ({ id }) => passwordHashPurpose(String(id)),
  },
  {
    ...{ table: 'storedResponse', column: 'wrappedResponse', key: { accountId: 'text', idempotencyKey: 'text' } },
    purpose: ({ accountId, idempotencyKey }) =>
      storedResponsePurpose({ accountId: String(accountId), idempotencyKey: String(idempotencyKey) }),
  },
  {
    ...{ table: 'watermarkImage', column: 'sealed', key: { accountId: 'text', urlHash: 'bytea' } },
    pageSize: 10,
    purpose: (row) => watermarkImagePurpose(imageKey(row)),
    open: (master, row, wrapped) => openImage(master, imageKey(row), wrapped),
  },
]

function imageKey({ accountId, urlHash }: Readonly<Record<string, KeyValue>>): { accountId: string; urlHash: Buffer } {
  return { accountId: String(accountId), urlHash: Buffer.isBuffer(urlHash) ? urlHash : Buffer.alloc(0) }
}
