import { requirePermission } from '../accounts/api-key.ts'
import type { Caller, Permission } from '../accounts/permission.ts'
import type { Db } from '../db/database.ts'
import { Failure } from '../errors.ts'
import { haveAddedVideos } from './video.ts'

/**
 * A person with the role uploader may edit the videos that they have added, and no others.
 * @param permission of those who may edit all
 * @throws Failure `forbidden`
 */
export async function assertMayEdit(
  deps: { db: Db },
  caller: Caller,
  permission: Permission,
  videoIds: readonly string[],
): Promise<void> {
  if (caller.permissions.includes(permission)) return
  if (!('consoleUserId' in caller)) return requirePermission(caller, permission)
  if (await haveAddedVideos(deps, caller, videoIds)) return
  throw new Failure('forbidden', 'Your role is uploader: you edit the videos that you have added. Ask an owner of the account.')
}
