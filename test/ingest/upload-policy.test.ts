import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { createAccount } from '../../src/accounts/account.ts'
import { createAuthenticate } from '../../src/accounts/api-key.ts'
import { createStorageQuota } from '../../src/accounts/storage-quota.ts'
import { parseMasterKey } from '../../src/crypto/master-key.ts'
import { amzCredential, amzDate, isValidSignature, signPolicy } from '../../src/ingest/aws-v4.ts'
import { admitUpload, issueUploadPolicy } from '../../src/ingest/upload-policy.ts'
import { onlyServer } from '../../src/servers/servers.ts'
import { createSignals } from '../../src/signals/signals.ts'
import { openOwnDatabase } from '../db/database.ts'

const DAY_S = 24 * 3600

// "Example: Browser-Based Upload using HTTP POST (Using AWS Signature Version 4)", Amazon S3 API reference.
const EXAMPLE = {
  signer: { accessKeyId: 'AKIAIOSFODNN7EXAMPLE', secret: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY', region: 'us-east-1' },
  atS: Date.UTC(2015, 11, 29) / 1000,
  date: '20151229T000000Z',
  credential: 'AKIAIOSFODNN7EXAMPLE/20151229/us-east-1/s3/aws4_request',
  policy: Buffer.from(
    [
      '{ "expiration": "2015-12-30T12:00:00.000Z",',
      '  "conditions": [',
      '    {"bucket": "sigv4examplebucket"},',
      '    ["starts-with", "$key", "user/user1/"],',
      '    {"acl": "public-read"},',
      '    {"success_action_redirect": "http://sigv4examplebucket.s3.amazonaws.com/successful_upload.html"},',
      '    ["starts-with", "$Content-Type", "image/"],',
      '    {"x-amz-meta-uuid": "14365123651274"},',
      '    {"x-amz-server-side-encryption": "AES256"},',
      '    ["starts-with", "$x-amz-meta-tag", ""],',
      '',
      '    {"x-amz-credential": "AKIAIOSFODNN7EXAMPLE/20151229/us-east-1/s3/aws4_request"},',
      '    {"x-amz-algorithm": "AWS4-HMAC-SHA256"},',
      '    {"x-amz-date": "20151229T000000Z" }',
      '  ]',
      '}',
    ].join('\r\n'),
  ).toString('base64'),
  signature: '8afdbf4008c03f22c2cd3cdb72e4afbb1f6a588f3255ac628749a66d7f09699e',
}

test('the signature is the one that Amazon publishes for its example', () => {
  const { signer, atS, date, credential, policy, signature } = EXAMPLE
  expect(amzDate(atS)).toBe(date)
  expect(amzCredential(signer, date)).toBe(credential)
  expect(signPolicy(signer, date, policy)).toBe(signature)
})

test('U01: a signature with any one character changed, cut or added is not accepted', () => {
  const { signer, date, policy, signature } = EXAMPLE
  expect(isValidSignature(signer, date, policy, signature)).toBe(true)
  for (let at = 0; at < signature.length; at++) {
    const changed = signature.slice(0, at) + (signature[at] === '0' ? '1' : '0') + signature.slice(at + 1)
    expect(isValidSignature(signer, date, policy, changed)).toBe(false)
  }
  for (const other of ['', signature.slice(1), `${signature}0`, signature.toUpperCase()])
    expect(isValidSignature(signer, date, policy, other)).toBe(false)
})

test('U02: credentials are good for 24 hours and not a second longer', async () => {
  const { clock, issue, admit } = await openPolicies()
  const { videoId, form } = await issue()
  clock.nowS += DAY_S - 1
  expect(await admit(form)).toMatchObject({ videoId })
  clock.nowS += 1
  await expect(admit(form)).rejects.toMatchObject({ kind: 'forbidden', message: expect.stringContaining('expired') })
})

test('C02: a wall clock that is set back or ahead changes nothing for how long credentials are good', async () => {
  const { clock, issue, admit } = await openPolicies()
  const { videoId, form } = await issue()
  clock.wallS += 2 * DAY_S
  expect(await admit(form)).toMatchObject({ videoId })
  clock.nowS += DAY_S
  clock.wallS -= 4 * DAY_S
  await expect(admit(form)).rejects.toMatchObject({ kind: 'forbidden' })
})

test('U01: a policy signed by another installation is refused', async () => {
  const [here, elsewhere] = [await openPolicies(), await openPolicies()]
  const { form } = await elsewhere.issue()
  await expect(here.admit(form)).rejects.toMatchObject({ kind: 'forbidden', message: expect.stringContaining('signature') })
})

test('U04: an account whose uploads are off gets no credentials', async () => {
  const { issue } = await openPolicies({ mayUpload: false })
  await expect(issue()).rejects.toMatchObject({ kind: 'forbidden' })
})

/** Policies over a database of the test's own, with a clock that it moves. */
async function openPolicies({ mayUpload = true } = {}) {
  const database = await openOwnDatabase()
  const startS = Date.UTC(2026, 10, 21) / 1000
  const clock = { nowS: startS, wallS: startS }
  const deps = {
    ...{ ...database, masterKey: parseMasterKey(randomBytes(32)), quota: createStorageQuota(database) },
    ...{ nowS: () => clock.nowS, wallNowS: () => clock.wallS },
  }
  const { apiKey } = await createAccount(deps, 'owner', { mayUpload, mayImport: true })
  const cache = { signals: createSignals(database.write), servers: onlyServer('one', 'one') }
  const holder = await createAuthenticate({ ...deps, ...cache })(apiKey)
  return {
    clock,
    issue: () => issueUploadPolicy(deps, holder, { title: 'A video' }),
    admit: (form: Record<string, string>) => admitUpload(deps, new Map(Object.entries(form))),
  }
}
