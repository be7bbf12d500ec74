import type { ApiKeyHolder } from '../accounts/permission.ts'
import { getFolder, ROOT_FOLDER_ID } from '../catalogue/folder.ts'
import { parseTitle } from '../catalogue/title.ts'
import { insertVideo } from '../catalogue/video-store.ts'
import { type MasterKey, unwrap, wrap } from '../crypto/master-key.ts'
import { newId } from '../crypto/secret.ts'
import type { AlsoInTransaction } from '../db/write.ts'
import { Failure } from '../errors.ts'
import { type OutboundPolicy, parseOutboundUrl } from '../outbound/policy.ts'
import { countImports, insertImport } from './import-store.ts'
import { displayName } from './source.ts'
import type { PolicyDeps } from './upload-policy.ts'

export type ImportDeps = PolicyDeps & {
  outbound: OutboundPolicy
  /** Told after the commit that an import waits. */
  onImportQueued(): void
}

/** A video that waits for its import. */
export type RequestedImport = { videoId: string; title: string }

/** So many may wait for their turn, for each account. */
const WAITING_PER_ACCOUNT = 5_000

/**
 * Makes a video whose source this server will fetch. Durable when it resolves: it is `Queued` then, survives a restart, and ends as a
 * video or as a failure with its reason.
 * @param request `title` is the last part of the address's path, where it is not given
 * @throws Failure `forbidden` when the account's imports are off; `invalid` for what the address itself shows, or a title that cannot
 *   be kept; `not-found` without such a folder; `limited` when too many wait
 */
export async function requestImport(
  deps: ImportDeps,
  holder: Pick<ApiKeyHolder, 'accountId' | 'mayImport'>,
  request: { url: string; title?: string | undefined; folderId?: string },
  alongside?: AlsoInTransaction<RequestedImport>,
): Promise<RequestedImport> {
  if (!holder.mayImport)
    throw new Failure('forbidden', 'Imports are off for this account. Ask whoever runs this server to turn them on.')
  const url = parseOutboundUrl(deps.outbound, request.url)
  const fileName = fileNameIn(url)
  const title = parseTitle(request.title || fileName || url.hostname)
  const videoId = newId()
  const uploadTimeS = deps.wallNowS()
  const folderId = request.folderId ?? ROOT_FOLDER_ID
  const wrappedUrl = wrap(deps.masterKey, urlPurpose(videoId), Buffer.from(url.href))
  await deps.write(async (tx) => {
    if ((await countImports(tx, holder.accountId)) >= WAITING_PER_ACCOUNT)
      throw new Failure('limited', `${WAITING_PER_ACCOUNT} imports of this account are waiting. Ask again when some have come.`, {
        retryAfterS: 60,
      })
    await getFolder(tx, holder.accountId, folderId)
    await insertVideo(tx, holder.accountId, { id: videoId, title, fileName, uploadTimeS, folderId, status: 'Queued' })
    await insertImport(tx, { videoId, accountId: holder.accountId, host: url.hostname, wrappedUrl, nextAttemptAtS: 0 })
    await alongside?.(tx, { videoId, title })
  })
  deps.onImportQueued()
  return { videoId, title }
}

/** The address of an import. It may be signed: for the request alone, never for a log or a sentence. */
export function openImportUrl(masterKey: MasterKey, row: { videoId: string; wrappedUrl: Buffer }): string {
  return unwrap(masterKey, urlPurpose(row.videoId), row.wrappedUrl).toString()
}

function urlPurpose(videoId: string): string {
  return `reelgate import-url 1 ${videoId}`
}

/** The last part of the path, as people read it. */
function fileNameIn({ pathname }: URL): string {
  const last = pathname.split('/').at(-1) ?? ''
  try {
    return displayName(decodeURIComponent(last))
  } catch {
    return displayName(last) // percent signs that stand for nothing
  }
}
