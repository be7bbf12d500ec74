import { type DeletionDeps, deleteVideos } from '../catalogue/deletion.ts'
import { listExpiredUploads } from './upload-policy-store.ts'

/** After the policy has expired: an upload that began before may take days on a slow line. */
const GRACE_PERIOD_S = 2 * 24 * 3600
/** Per run; the next run deletes the others. */
const MAX_DELETED = 500

/** Deletes videos that were never uploaded, three days after their upload policy was issued. */
export async function deleteExpiredUploads(deps: DeletionDeps, nowS: number): Promise<void> {
  const expired = await listExpiredUploads(deps.db, nowS - GRACE_PERIOD_S, MAX_DELETED)
  for (const [accountId, videos] of Map.groupBy(expired, (video) => video.accountId)) {
    const videoIds = videos.map(({ id }) => id)
    await deleteVideos(deps, { accountId, by: 'server', videoIds, onlyStatus: 'PRE-Upload' })
  }
}
