import type { FastifyContextConfig, FastifySchema } from 'fastify'
import type { Permission } from '../../accounts/permission.ts'

/** Also for a person who may upload, of their own videos. */
export const EDITOR_OR_UPLOADER = { permission: 'editor', isOpenToUploader: true } as const

/** For everyone who is signed in, and counted with what changes something. */
export const OWN_CHANGE = { permission: 'viewer', budget: 'writes' } as const

/** Imports send a small request, and no file: they are counted with what changes something. */
export const IMPORTER = { permission: 'uploader', budget: 'writes' } as const

/** For administrators of the installation. */
export const ADMINISTRATOR = { permission: 'editor', isForAdministrators: true } as const

/** The options of a route of the API: what its caller needs, and the schemas by which it is checked and described. */
export function operation<Schema extends FastifySchema>(needs: Permission | FastifyContextConfig, schema: Schema) {
  return { config: typeof needs === 'string' ? { permission: needs } : needs, schema }
}
