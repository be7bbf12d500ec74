import type { AuditLogBody } from '../../../src/http/api/audit-log.ts'
import { formatMoment } from '../units.ts'

export type AuditEvent = AuditLogBody['rows'][number]
export type Actor = AuditEvent['actor']

/** What an owner reads for each kind of event, of the audit log and of a video's history. */
const KINDS: Readonly<Record<string, string>> = {
  'account:created': 'Account created',
  'account:changed': 'Account changed',
  'account:disabled': 'Account disabled',
  'account:enabled': 'Account enabled',
  'account:looked-at': 'An administrator looked into the account',
  'key:created': 'API key created',
  'key:rotated': 'API key rotated',
  'key:revoked': 'API key revoked',
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
  'ban:began': 'Ban began',
  'ban:lifted': 'Ban lifted',
  'video:created': 'Video created',
  'video:edited': 'Details changed',
  'video:retried': 'Encoded again',
  'video:reencrypted': 'Encrypted under a new key',
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
  'file:added': 'File added',
  'file:deleted': 'File deleted',
  'file:downloaded': 'File downloaded',
  'mp4:requested': 'MP4 asked for',
  'otp:reused': 'An OTP was used a second time',
  'otp-defaults:changed': 'Protection changed',
  'session:stopped': 'Viewer stopped',
  'viewer:erased': 'Viewer erased',
  'backup:made': 'Backup made',
  'hook:created': 'Webhook added',
  'hook:enabled': 'Webhook switched on',
  'hook:disabled': 'Webhook switched off',
  'hook:resumed': 'Webhooks resumed',
  'hook:rotated': 'Webhook got a new secret',
  'hook:tested': 'Webhook tested',
  'hook:replayed': 'Deliveries sent again',
  'hook:deleted': 'Webhook deleted',
}

export function describeEventKind(kind: string): string {
  return KINDS[kind] ?? kind
}

export function describeActor({ type, name }: Actor): string {
  switch (type) {
    case 'key':
      return name === null ? 'A deleted API key' : `API key ${name}`
    case 'user':
      return name ?? 'A deleted person'
    case 'command-line':
      return 'Command line'
    case 'viewer':
      return 'A viewer'
    case 'server':
      return 'The server'
  }
}

function describeValue(name: string, value: unknown): string {
  if (name.endsWith('AtS') && typeof value === 'number') return formatMoment(value)
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

/** Such as `title: Lesson 12, public: 1`. */
export function describeDetails(details: Readonly<Record<string, unknown>> | null): string {
  return Object.entries(details ?? {})
    .filter(([, value]) => value !== null && value !== undefined)
    .map(([name, value]) => `${name.replace(/AtS$/, '')}: ${describeValue(name, value)}`)
    .join(', ')
}
