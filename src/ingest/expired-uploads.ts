import { type DeletionDeps, deleteVideos } from '../catalogue/deletion.ts'
import { listExpiredUploads } from './upload-policy-store.ts'

/** An upload that began while its policy held may go on for days, on a slow line. */
const WAITED_FOR_S = 2 * 24 * 3600
/** In one run: nobody waits for the rest. */
const DELETED_AT_ONCE = 500

/** Deletes videos whose upload never came: three days after their credentials were issued. */
export async function deleteExpiredUploads(deps: DeletionDeps, nowS: number): Promise<void> {
  const abandoned = await listExpiredUploads(deps.db, nowS - WAITED_FOR_S, DELETED_AT_ONCE)
  for (const [accountId, videos] of Map.groupBy(abandoned, (video) => video.accountId)) {
    const videoIds = videos.map(({ id }) => id)
    await deleteVideos(deps, accountId, 'server', videoIds, 'PRE-Upload')
  }
}
