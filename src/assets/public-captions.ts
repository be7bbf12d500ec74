import { timelineStartMs } from '../catalogue/chapters-store.ts'
import type { VideoFolders } from '../catalogue/deletion.ts'
import { openFileKey } from '../catalogue/file-key.ts'
import { listCaptions, listHiddenCaptionsToo } from '../catalogue/file-store.ts'
import { findVideo } from '../catalogue/video-store.ts'
import type { MasterKey } from '../crypto/master-key.ts'
import { openBlob } from '../crypto/sealed-blob.ts'
import type { Db } from '../db/database.ts'
import type { DamagedFiles } from './damaged-file.ts'
import { languageLabel } from './language-label.ts'
import { countUnseenCues } from './webvtt.ts'

export type PublicCaptionDeps = { db: Db; masterKey: MasterKey; folders: VideoFolders; damagedFiles: DamagedFiles }

/** Captions that a viewer may choose. */
export type PublicCaption = { id: number; language: string; label: string }

/** A video's captions, each labelled with the language's own name for itself. */
export async function findPublicCaptions({ db }: Pick<PublicCaptionDeps, 'db'>, videoId: string): Promise<PublicCaption[]> {
  return (await listCaptions(db, videoId)).map(({ id, language, automatic }) => ({
    ...{ id, language },
    label: `${languageLabel(language)}${automatic === 1 ? ' (automatic)' : ''}`,
  }))
}

/** The WebVTT of enabled captions, as it is stored: on the video's time line. Undefined: the video has none with this id. @throws DamagedFile */
export async function openCaption(deps: PublicCaptionDeps, videoId: string, id: number): Promise<string | undefined> {
  return openListed(deps, { videoId, list: listCaptions }, id)
}

type Listed = { videoId: string; list: typeof listCaptions }

async function openListed(deps: PublicCaptionDeps, { videoId, list }: Listed, id: number): Promise<string | undefined> {
  const find = async () => (await list(deps.db, videoId)).find((listed) => listed.id === id)
  const caption = await find()
  const key = caption && openFileKey(deps.masterKey, { ...caption, wrappedContentKey: null })
  if (!caption || !key) return undefined
  try {
    return openBlob(key, caption.blob, await deps.folders.files.read(caption.blob)).toString()
  } catch (error) {
    // Not found if it was deleted meanwhile; otherwise the disk has lost the file.
    if (!(await find())) return undefined
    throw await deps.damagedFiles.report({ kind: 'caption', videoId, name: caption.blob }, error)
  }
}

/**
 * How many lines of each captions, hidden ones too, are before or behind what the video plays now, and so not shown: since it was trimmed, or got
 * another file. Only where there are any, by the id of the file.
 */
export async function countUnseenLines(
  deps: PublicCaptionDeps,
  accountId: string,
  videoId: string,
): Promise<Map<number, number>> {
  const unseen = new Map<number, number>()
  const video = await findVideo(deps.db, accountId, videoId)
  if (!video || video.durationS === 0) return unseen
  const fromMs = timelineStartMs(video)
  const part = { fromMs, toMs: fromMs + video.durationS * 1000 }
  const kept = { videoId, list: listHiddenCaptionsToo }
  for (const { id } of await kept.list(deps.db, videoId)) {
    const webVtt = await openListed(deps, kept, id).catch(() => undefined) // a lost file is reported; the others are counted
    const lines = webVtt === undefined ? 0 : countUnseenCues(webVtt, part)
    if (lines > 0) unseen.set(id, lines)
  }
  return unseen
}
