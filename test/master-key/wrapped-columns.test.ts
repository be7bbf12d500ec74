import { expect, test } from 'vitest'
import { WRAPPED_COLUMNS } from '../../src/installation/wrapped-columns.ts'
import { openOwnDatabase } from '../db/database.ts'
import { snake } from './secrets.ts'

/** Bytes that no master key wrapped. */
const NOT_WRAPPED: Readonly<Record<string, string>> = {
  'api_key.hash': 'a hash',
  'passkey.public_key': 'public',
  'sign_in.token_hash': 'a hash',
  'sign_in_link.hash': 'a hash',
  'import.iv': 'goes with the wrapped key',
  'import.received_state': 'sealed by the file’s own key',
  'resumable_upload.iv': 'goes with the wrapped key',
  'resumable_upload.received_state': 'sealed by the file’s own key',
  'upload_token.hash': 'a hash',
  'worker.hash': 'a hash',
  'lti_registration.hash': 'a hash',
  'lti_nonce.hash': 'a hash',
  'source.sha256': 'a hash',
  'source.iv': 'goes with the wrapped key',
  'source.macs': 'checksums with a key of the source',
  'rendition.init': 'codec headers, the same in all videos of a kind',
  'segment.sha256': 'a hash',
  'file.iv': 'goes with the wrapped key',
  'file.macs': 'checksums with a key of the file',
  'otp.hash': 'a hash',
  'server_key.public_key': 'public',
  'playback_session.otp_hash': 'a hash',
  'playback_session.public_key': 'public',
  'playback_session.key_id': 'a hash',
  'redeem_attempt.otp_hash': 'a hash',
  'redeem_attempt.key_id': 'a hash',
  'key_budget.released': 'numbers of key windows',
  'playback_session.key_windows': 'numbers of key windows',
  'watermark_image.url_hash': 'a hash',
  'stored_response.request_hash': 'a hash',
}

test('a rotation wraps every column of bytes again, unless this list says why not', async () => {
  const { db } = await openOwnDatabase('sqlite')
  const tables = await db.introspection.getTables()
  const columns = tables
    .filter(({ name }) => !/^video_text/.test(name))
    .flatMap(({ name, columns }) => columns.filter(({ dataType }) => /blob/i.test(dataType)).map((column) => [name, column.name]))
    .map((path) => path.join('.'))
  const wrapped = WRAPPED_COLUMNS.map(({ table, column }) => `${snake(table)}.${snake(column)}`)
  expect([...wrapped, ...Object.keys(NOT_WRAPPED)].sort()).toEqual(columns.sort())
})
