// Every error that a caller may see, once. The interfaces answer from these tables, and `npm run docs` makes docs/errors.md of them.

export type ErrorRow = {
  status: number
  /** What is sent where nothing more specific is known. */
  sentence: string
  /** For the operator of the calling site or of this server; absent where the player continues by itself. */
  remedy?: string
}

/** Why a viewer is refused, as the player shows it (playback-protocol.md, section 9). */
export const REFUSALS = {
  'bad-request': { status: 400, sentence: 'The request is not well formed.', remedy: 'Follow the playback protocol.' },
  'proof-stale': { status: 401, sentence: 'The proof is too old. Sign a new one with the newest nonce.' },
  'proof-replayed': { status: 401, sentence: 'The proof was used before. Sign a new one with the next number.' },
  'not-allowed': {
    status: 403,
    sentence: 'This was opened in another browser, or not by the player.',
    remedy: 'Issue a new OTP for this browser. The answer has no `requestId`, so that all of them are the same.',
  },
  'otp-used': {
    status: 403,
    sentence: 'This link was already used. Reload the page you came from to get a new one.',
    remedy: 'Issue an OTP for each view of a page, and keep caches from storing that page.',
  },
  'otp-expired': {
    status: 403,
    sentence: 'This link has expired. Reload the page you came from to get a new one.',
    remedy: 'Issue the OTP when the page is opened, or with a longer `ttl`.',
  },
  'otp-unknown': {
    status: 403,
    sentence: 'This link is not known. Reload the page you came from to get a new one.',
    remedy: 'Issue a new OTP. This one is of another video, a revoked key or a disabled account, or was never issued.',
  },
  'site-not-allowed': {
    status: 403,
    sentence: 'This video may not be shown on this site. Watch it on the site it belongs to.',
    remedy: 'Name the site in `whitelisthref`, and let its pages send their origin as `Referer`.',
  },
  'place-not-allowed': {
    status: 403,
    sentence: 'This video may not be watched from where you are. If you use a VPN, switch it off, then try again.',
    remedy: 'Change `ipGeo` or `ipGeoRules` of the OTP, or its defaults, if viewers there should watch.',
  },
  'video-gone': { status: 403, sentence: 'This video was deleted.', remedy: 'Remove the video from your pages.' },
  'session-ended': {
    status: 403,
    sentence: 'Playback has ended. Reload the page you came from to watch again.',
    remedy: 'Issue a new OTP. `why` is the reason of the end.',
  },
  'file-gone': { status: 404, sentence: 'This file is not there any more.' },
  'segment-replaced': { status: 404, sentence: 'This part of the video was repaired. Its new address is in the playlist.' },
  'video-not-ready': { status: 409, sentence: 'The video is being prepared.', remedy: 'With `why: "failed"`, upload it again.' },
  'unsupported-browser': {
    status: 409,
    sentence: 'This browser cannot play this video. Use a current Chrome, Edge, Firefox or Safari.',
    remedy: '`lacks` has what it cannot decode: `h264`, `aac`. The OTP is not spent: it plays in another browser.',
  },
  'page-replaced': {
    status: 409,
    sentence: 'The video plays in another tab of this browser.',
    remedy: 'The player offers to play here.',
  },
  'stream-limit': {
    status: 409,
    sentence: 'This viewer already watches on as many screens as allowed. Stop one of them, then try again.',
    remedy: 'Raise `streamLimit` of the OTP or the account, or let the account stop the oldest instead.',
  },
  'key-pace': {
    status: 429,
    sentence: 'The next part of the video can be played in a moment.',
    remedy: 'The player waits for `waitMs`. Send `userId` with each OTP, or viewers of one address share a budget.',
  },
  'slow-down': {
    status: 429,
    sentence: 'Too many requests come from here. Wait a moment.',
    remedy: 'Wait for `Retry-After` seconds. Behind a proxy, `REELGATE_TRUSTED_PROXIES` tells addresses apart.',
  },
  internal: {
    status: 500,
    sentence: 'Something went wrong on this server. Try again in a moment.',
    remedy: 'Search the server’s log for the `requestId`.',
  },
  busy: { status: 503, sentence: 'This part of the video is being prepared.' },
  unavailable: {
    status: 503,
    sentence: 'The server cannot start a video now. Try again in a moment.',
    remedy: 'The player asks again after `Retry-After` seconds; the OTP is not spent. `reelgate doctor` finds the cause.',
  },
} as const satisfies Record<string, ErrorRow>

export type RefusalCode = keyof typeof REFUSALS

export type FailureRow = ErrorRow & {
  /** In v2, where it differs. */
  v2Status?: number
  /** The code of S3 in the answers of uploads. */
  s3: string
  /** The refusal that it is in playback; `bad-request` if absent. */
  play?: RefusalCode
}

/** What a `Failure` is answered with, by its kind; and, as `internal`, a bug. */
export const FAILURES = {
  invalid: {
    status: 400,
    s3: 'MalformedPOSTRequest',
    sentence: 'The request is malformed.',
    remedy: 'Correct what the message names. The API reference has each field.',
  },
  unauthenticated: {
    status: 401,
    s3: 'AccessDenied',
    sentence: 'The key or upload token is missing, unknown, expired or revoked, or no person is signed in.',
    remedy:
      'Send a live API secret in the form of the interface; a page asks its server for a new upload token. In the console, sign in.',
  },
  forbidden: {
    status: 403,
    s3: 'AccessDenied',
    sentence: 'The key, token or person lacks the permission, or the feature or the account is switched off.',
    remedy:
      'Use a key with the permission that the message names, or have the feature switched on for the account. A page sends what its upload token allows.',
  },
  'over-quota': {
    status: 403,
    s3: 'QuotaExceeded',
    sentence: 'The file does not fit into the storage of the account.',
    remedy: 'Delete videos, also from the trash, or raise the limit: `reelgate account set NAME --storage-limit`.',
  },
  'sign-in-again': {
    status: 403,
    s3: 'AccessDenied',
    sentence: 'The sign-in is too old for this change.',
    remedy: 'Sign in again and repeat the request. The console does so in place.',
  },
  'not-found': {
    status: 404,
    v2Status: 200, // its clients look for 200 before they read the body; not where something is deleted
    s3: 'NoSuchKey',
    play: 'file-gone',
    sentence: 'The account has nothing with this id, or there is no such address.',
    remedy: 'Compare the id and the path. What belongs to another account is not found, either.',
  },
  'method-not-allowed': {
    status: 405,
    s3: 'MethodNotAllowed',
    sentence: 'This address does not have this method.',
    remedy: 'Use one of those in the header `Allow`.',
  },
  timeout: {
    status: 408,
    s3: 'RequestTimeout',
    sentence: 'The request did not arrive in time.',
    remedy: 'Send it again. A proxy in front must pass bodies on as they come.',
  },
  conflict: {
    status: 409,
    s3: 'AccessDenied',
    sentence: 'Not possible in this state, or the Idempotency-Key belongs to another request.',
    remedy: 'Read the present state, then decide by the message. A repeated request fails again.',
  },
  gone: {
    status: 410,
    s3: 'NoSuchUpload',
    sentence: 'The upload has expired.',
    remedy: 'Begin the upload again.',
  },
  'tus-version': {
    status: 412,
    s3: 'PreconditionFailed',
    sentence: 'The version of the upload protocol is missing or another.',
    remedy: 'Send `Tus-Resumable: 1.0.0` with each request of a resumable upload.',
  },
  'too-large': {
    status: 413,
    s3: 'EntityTooLarge',
    sentence: 'The body is too large.',
    remedy: 'Send less, or several requests. Of a file, the message has the most that is accepted.',
  },
  unsupported: {
    status: 415,
    s3: 'PreconditionFailed',
    sentence: 'The Content-Type is not supported. Send application/json or a form.',
    remedy: 'Name the type of the body in the header `Content-Type`; uploads are `multipart/form-data`.',
  },
  locked: {
    status: 423,
    s3: 'OperationAborted',
    sentence: 'Another connection is sending this upload.',
    remedy: 'Repeat it after `Retry-After` seconds: a connection that brings nothing is ended after one second.',
  },
  limited: {
    status: 429,
    s3: 'SlowDown',
    sentence: 'Too many requests.',
    remedy: 'Wait for `Retry-After` seconds. The message has the limit and how it is raised, or how a ban is lifted.',
  },
  'checksum-mismatch': {
    status: 460,
    s3: 'BadDigest',
    sentence: 'The bytes of the part do not match its checksum.',
    remedy: 'Send the part again. Nothing of it was kept.',
  },
  internal: {
    status: 500,
    s3: 'InternalError',
    play: 'internal',
    sentence: 'Something went wrong on this server. Its log has the details under the request id.',
    remedy: 'Search the server’s log for the `requestId`, and report it: it is a bug.',
  },
  unavailable: {
    status: 503,
    s3: 'ServiceUnavailable',
    play: 'unavailable',
    sentence: 'Not possible at the moment.',
    remedy: 'Repeat it after `Retry-After` seconds. `reelgate doctor` finds the cause.',
  },
} as const satisfies Record<string, FailureRow>

export type ErrorCode = keyof typeof FAILURES
