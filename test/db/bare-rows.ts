import type { NewOtp, PlaybackSessionRow } from '../../src/db/tables.ts'

// Rows with nothing that may be left out: a test adds what it speaks of.

type OtpKeys = Pick<NewOtp, 'hash' | 'accountId' | 'apiKeyId' | 'videoId'>

export const makeOtpRow = (keys: OtpKeys) => ({
  ...keys,
  userId: null,
  streamLimit: null,
  watermarks: '[]',
  forcedBitrateKbps: null,
  licenseRules: null,
  rules: null,
  viewer: null,
  issuedAtS: 1,
  expiresAtS: 100,
})

type SessionKeys = Pick<PlaybackSessionRow, 'id' | 'otpHash' | 'accountId' | 'videoId'>

export const makeSessionRow = (keys: SessionKeys) => ({
  ...keys,
  generation: 1,
  userId: 'viewer',
  publicKey: Buffer.alloc(65, 4),
  serverKeyId: 'server key',
  keyId: Buffer.alloc(32, 5),
  pages: '[]',
  watermarks: '[]',
  startedAtS: 1,
  endsAtS: 10_000,
  lastSeenAtS: 1,
})
