import { type DeletionDeps, deleteVideos } from '../catalogue/deletion.ts'
import { insertTags } from '../catalogue/tag-store.ts'
import { listPositions } from '../catalogue/video-store.ts'
import { Failure } from '../errors.ts'
import { assertSize, displayName, type SourceDeps } from './source.ts'
import { type IncomingUpload, receiveUpload } from './upload.ts'
import { issueUploadPolicy } from './upload-policy.ts'
import { applyToken, limitToToken, type TokenHolder, useToken } from './upload-token.ts'

/**
 * Makes a file that a page sends in one form, with an upload token, a new video: the policy that a form needs otherwise is issued here and
 * used in the same request. Durable when it resolves.
 * @throws Failure as `receiveUpload` and `applyToken`. Nothing is left then
 */
export async function receiveWithToken(
  deps: SourceDeps & DeletionDeps,
  holder: TokenHolder,
  { fields, ...incoming }: IncomingUpload,
): Promise<{ key: string; sha256: Buffer; videoId: string }> {
  const { uploadToken, accountId } = holder
  const allowed = limitToToken(deps, holder)
  const { folderId, tags, ...sent } = applyToken(uploadToken, readFields(fields, incoming.fileName))
  if (sent.videoId !== undefined)
    throw new Failure('forbidden', 'This upload token replaces the file of a video: send that to /api/uploads, by tus.')
  const title = sent.title || displayName(incoming.fileName)
  if (!title) throw new Failure('invalid', 'The form has no "title", and its file has no name. Send one of them.')
  assertSize(incoming.declaredBytes, allowed.uploadMaxBytes)
  const { videoId, form } = await issueUploadPolicy(deps, holder, { title, folderId }, async (tx, issued) => {
    await useToken(tx, uploadToken, issued.videoId, deps.nowS())
    if (tags.length > 0) await insertTags(tx, accountId, await listPositions(tx, accountId, [issued.videoId]), tags)
  })
  try {
    return { videoId, ...(await receiveUpload(allowed, { ...incoming, fields: new Map(Object.entries(form)) })) }
  } catch (error) {
    await deleteVideos(deps, { accountId, by: holder, videoIds: [videoId], onlyStatus: 'PRE-Upload' })
    throw error
  }
}

/** By lower-case names. */
function readFields(fields: ReadonlyMap<string, string>, fileName: string) {
  const { title, folderid, tags, videoid, externalid: externalId, metadata } = Object.fromEntries(fields)
  return {
    ...{ fileName, title: title || undefined, folderId: folderid || undefined, videoId: videoid || undefined },
    tags: tags ? tags.split(',') : [],
    ownFields: { externalId, metadata },
  }
}
