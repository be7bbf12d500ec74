import type { AuditLogBody } from '../../../src/http/api/audit-log.ts'

export type AuditEvent = AuditLogBody['rows'][number]
type Actor = AuditEvent['actor']

export function describeActor({ type, name }: Actor): string {
  switch (type) {
    case 'key':
      return name === null ? 'A deleted API key' : `API key ${name}`
    case 'user':
      return name ?? 'A deleted person'
    case 'upload-token':
      return name === null ? 'An upload token' : `Upload token for ${name}`
    case 'command-line':
      return 'Command line'
    case 'viewer':
      return 'A viewer'
    case 'server':
      return 'The server'
  }
}
