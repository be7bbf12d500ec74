import type { User } from './queries.ts'

/** The roles of an account, from the one that may least. */
export const ROLES: readonly { role: User['role']; label: string; description: string }[] = [
  { role: 'viewer', label: 'Viewer', description: 'Looks at videos, viewers, statistics and alerts.' },
  { role: 'uploader', label: 'Uploader', description: 'The same; uploads and imports videos, and edits those.' },
  { role: 'owner', label: 'Owner', description: 'Everything in the account, and its people.' },
]
