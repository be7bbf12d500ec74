// Audit events, and what else happened to a video, as people read it.

/** Also those of a video's history that are no audit events. */
const KINDS: Readonly<Record<string, string>> = {
  'account:created': 'Account created',
  'account:changed': 'Account changed',
  'account:disabled': 'Account disabled',
  'account:enabled': 'Account enabled',
  'account:looked-at': 'An administrator looked into the account',
  'key:created': 'API key created',
  'key:rotated': 'API key rotated',
  'key:revoked': 'API key revoked',
  'upload-token:created': 'Upload token created',
  'upload-token:revoked': 'Upload token revoked',
  'user:created': 'Person invited',
  'user:link-made': 'Sign-in link made',
  'user:signed-in': 'Signed in',
  'user:changed': 'Person changed',
  'user:deleted': 'Person deleted',
  'user:password-set': 'Password set',
  'sign-in:ended': 'Signed out',
  'passkey:added': 'Passkey added',
  'passkey:removed': 'Passkey removed',
  'master-key:rotated': 'Master key rotated',
  'storage:move-began': 'Moving of files began',
  'worker:added': 'Worker added',
  'worker:changed': 'Worker drained, resumed or suspended',
  'worker:removed': 'Worker removed',
  'server:changed': 'Server drained or resumed',
  'ban:began': 'Ban began',
  'ban:lifted': 'Ban lifted',
  'video:created': 'Video created',
  'video:moved-in': 'Copied from another server',
  'video:edited': 'Details changed',
  'video:retried': 'Encoded again',
  'video:replacement-requested': 'Another file was to be sent',
  'video:trimmed': 'Trimmed',
  'video:replacement-cancelled': 'Replacement cancelled',
  'video:replacement-undone': 'Replacement undone',
  'video:kept-deleted': 'Former files deleted',
  'video:reencrypted': 'Encrypted under a new key',
  'video:part-encoded': 'A part encoded again',
  'video:part-same': 'The part came out as it was',
  'video:trashed': 'Moved to the trash',
  'video:restored': 'Restored from the trash',
  'video:deleted': 'Deleted for good',
  'encode:began': 'Encoding began',
  'encode:finished': 'Encoding finished',
  'posters:extracted': 'Posters made from the video',
  'poster:added': 'Poster added',
  'caption:added': 'Captions added',
  'mp4:added': 'MP4 made',
  'tags:added': 'Tags added',
  'tags:replaced': 'Tags changed',
  'tags:removed': 'Tags removed',
  'folder:created': 'Folder created',
  'folder:changed': 'Folder changed',
  'folder:deleted': 'Folder deleted',
  'chapters:changed': 'Chapters changed',
  'audio-track:changed': 'Audio track changed',
  'audio-track:added': 'Audio track added',
  'audio-track:removed': 'Audio track removed',
  'file:added': 'File added',
  'file:deleted': 'File deleted',
  'file:downloaded': 'File downloaded',
  'caption:shown': 'Captions shown to viewers',
  'caption:hidden': 'Captions hidden from viewers',
  'caption:reviewed': 'Automatic captions checked',
  'transcription:requested': 'Transcription requested',
  'mp4:requested': 'MP4 asked for',
  'otp:reused': 'An OTP was used a second time',
  'otp-defaults:changed': 'Protection changed',
  'session:stopped': 'Viewer stopped',
  'viewer:erased': 'Viewer erased',
  'backup:made': 'Backup made',
  'platform:link-made': 'Link for a learning platform made',
  'platform:added': 'Learning platform registered',
  'platform:confirmed': 'Learning platform confirmed',
  'platform:changed': 'Learning platform changed',
  'platform:removed': 'Learning platform removed',
  'hook:created': 'Webhook added',
  'hook:enabled': 'Webhook switched on',
  'hook:disabled': 'Webhook switched off',
  'hook:resumed': 'Webhooks resumed',
  'hook:rotated': 'Webhook got a new secret',
  'hook:tested': 'Webhook tested',
  'hook:replayed': 'Deliveries sent again',
  'hook:deleted': 'Webhook deleted',
}

export function describeKind(kind: string): string {
  return KINDS[kind] ?? kind
}

/** What details are called, where their own name does not say it. */
const DETAILS: Readonly<Record<string, string>> = {
  fileId: 'file',
  positionS: 'at second',
  folderId: 'folder',
  videoId: 'video',
  parentId: 'in the folder',
  newKeyId: 'new key',
  email: 'e-mail address',
  keyId: 'key',
  maxFiles: 'files',
  isAdministrator: 'administrator',
  mayUpload: 'may upload',
  mayImport: 'may import',
  pageMax: 'rows of a page',
  limitFactor: 'rate limits times',
  streamLimit: 'screens of one viewer',
  whenFull: 'when there are too many screens',
  streamLimitPolicy: 'when there are too many screens',
  storageLimitBytes: 'storage limit in bytes',
  deletesToTrash: 'deletes to the trash',
  normalizesLoudness: 'sound at one loudness',
  transcribeLanguage: 'new videos transcribed in',
  watchUrl: 'where viewers watch',
  playerSentences: 'the player’s sentences in your words',
  otpDefaultsRemovable: 'OTPs may remove defaults',
  expiresAtS: 'until',
  oldExpiresAtS: 'old one until',
  endsAtS: 'until',
  annotate: 'watermark',
  whitelisthref: 'site',
  ipGeo: 'locations',
  ipGeoRules: 'locations',
  ttl: 'seconds to open',
  forcedBitrate: 'bitrate',
  licenseRules: 'licence rules',
  clientId: 'client id',
  courseId: 'course',
  showsNames: 'shows names',
  deploymentIds: 'deployments',
  authorizationUrl: 'authorization address',
  tokenUrl: 'token address',
  keysUrl: 'address of its keys',
}
/** Of these the values say enough. */
const WITHOUT_NAME: ReadonlySet<string> = new Set(['changed', 'options', 'tags', 'reason'])
/** Stored as 0 or 1. */
const YES_OR_NO: ReadonlySet<string> = new Set([
  'disabled',
  'public',
  'isAdministrator',
  'mayUpload',
  'mayImport',
  'deletesToTrash',
  'normalizesLoudness',
  'showsNames',
  'confirmed',
])

/**
 * Such as `role: viewer, until: 2026-11-21 14:03 UTC`.
 * @param nameOf what has this id, if it has a name
 */
export function describeDetails(details: Readonly<Record<string, unknown>> | null, nameOf: (id: string) => string | undefined) {
  return Object.entries(details ?? {})
    .filter(([, value]) => value !== null && value !== undefined)
    .map(([name, value]) => {
      const text = describeValue(name, value, nameOf)
      return WITHOUT_NAME.has(name) ? text : `${DETAILS[name] ?? name}: ${text}`
    })
    .join(', ')
}

function describeValue(name: string, value: unknown, nameOf: (id: string) => string | undefined): string {
  if (Array.isArray(value)) return value.map((one) => describeValue('', DETAILS[String(one)] ?? one, nameOf)).join(', ')
  if (typeof value === 'number' && name.endsWith('AtS'))
    return `${new Date(value * 1000).toISOString().slice(0, 16).replace('T', ' ')} UTC`
  if (typeof value === 'boolean' || YES_OR_NO.has(name)) return Number(value) === 0 ? 'no' : 'yes'
  if (typeof value === 'string') return nameOf(value) ?? value
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

/** The ids in details, to be named. */
export function listIds(details: Readonly<Record<string, unknown>> | null): string[] {
  return Object.values(details ?? {}).filter((value): value is string => typeof value === 'string' && ID.test(value))
}

/** Of everything that has an id of its own. */
export const ID = /^[0-9a-f]{32}$/
