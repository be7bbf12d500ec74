import { type Actor, recordAuditEvent } from '../audit/audit-log.ts'
import { type AudioSettings, findAudioSettings } from '../catalogue/audio-settings-store.ts'
import type { CatalogueDeps, ListDeps } from '../catalogue/catalogue-deps.ts'
import type { VideoFolders } from '../catalogue/deletion.ts'
import { findFile, listFileRows, removeFile, setReviewed, setShown } from '../catalogue/file-store.ts'
import { findVideo } from '../catalogue/video-store.ts'
import type { FileRow, VideoRow } from '../db/tables.ts'
import { findGeneration, renditionSizes } from '../encode/generation-store.ts'
import { audioTracksOf, type DubFile, findAudioTrack, type Plan } from '../encode/plan.ts'
import { Failure, videoNotFound } from '../errors.ts'
import { findSource } from '../ingest/source-store.ts'
import type { Signals } from '../signals/signals.ts'
import { assetFolder } from './attachment.ts'
import { showAudioTracks } from './shown-audio.ts'

/** A file of a video as its owner sees it. */
export type VideoFile = {
  id: number
  type: 'original' | 'poster' | 'desktop' | 'mobile' | 'audio' | 'caption' | 'mp4' | 'storyboard' | 'poster-candidate'
  name: string
  createdAtS: number
  enabled: boolean
  /** Captions that viewers do not get until their owner shows them. */
  isHidden: boolean
  /** Captions that a program makes or made of speech, and that their owner has not looked at. */
  isAutomatic: boolean
  /** How much of the speech has been transcribed, from 0 to 1, while that is being done; undefined otherwise. */
  progress: number | undefined
  /** What captions are called in the uploaded file that they came from. */
  streamTitle: string | undefined
  sizeBytes: number
  /** Such as `jpeg`; empty when it is unknown. */
  format: string
  widthPx: number
  heightPx: number
  bitrateBps: number
  encryption: string
  videoCodec: string
  audioCodec: string
  language: string
  isDownloadable: boolean
  isDeletable: boolean
  /** Why it could not be made; undefined otherwise. */
  problem: string | undefined
}

export type FileDeps = CatalogueDeps & {
  folders: VideoFolders
  signals: Pick<Signals, 'send'>
}

/** Larger renditions are listed as `desktop`. */
const MAX_MOBILE_SHORT_SIDE_PX = 480

/** All files of a video, oldest first. @throws Failure `not-found` when the account has no such video */
export async function listFiles(deps: ListDeps, accountId: string, videoId: string): Promise<VideoFile[]> {
  const video = await findVideo(deps.db, accountId, videoId)
  if (!video) throw videoNotFound()
  const rows = await listFileRows(deps.db, videoId)
  const context = await loadContext(deps, video, rows)
  return rows.map((row) => toVideoFile(row, context))
}

/** @throws Failure `not-found`, the same for an id that does not exist, of another video or of another account */
export async function getFile(deps: ListDeps, accountId: string, videoId: string, fileId: number): Promise<VideoFile> {
  const row = await findFile(deps.db, accountId, videoId, fileId)
  const file = row && (await describeFile(deps, accountId, row))
  if (!file) throw new Failure('not-found', 'File not found')
  return file
}

/** A file as its owner sees it; undefined when its video is deleted. */
export async function describeFile(deps: ListDeps, accountId: string, row: FileRow): Promise<VideoFile | undefined> {
  const video = await findVideo(deps.db, accountId, row.videoId)
  return video && toVideoFile(row, await loadContext(deps, video, [row]))
}

const BEING_MADE = 'These captions are still being made. Try again in a moment.'

type OwnedFile = { accountId: string; by: Actor; videoId: string; fileId: number }

/**
 * Deletes a poster, captions or an MP4. Durable when it resolves. If it was enabled, the previous one is enabled again.
 * @throws Failure `not-found`; `conflict` for the original and renditions
 */
export async function deleteFile(deps: FileDeps, { accountId, by, videoId, fileId }: OwnedFile): Promise<void> {
  const atS = deps.wallNowS()
  const deleted = await deps.write.makingRoom(async (tx) => {
    const row = await findFile(tx, accountId, videoId, fileId)
    if (!row) throw new Failure('not-found', 'File not found')
    if (!isDeletable(row)) throw new Failure('conflict', 'This file belongs to the video. To remove it, delete the whole video.')
    await removeFile(tx, row)
    const details = { videoId, type: row.type, language: row.language }
    await recordAuditEvent(tx, { atS, accountId, by, kind: 'file:deleted', subjects: [String(fileId)], details })
    return row
  })
  if (deleted.type === 'mp4') await deps.signals.send('work-cancelled', { videoIds: [videoId], work: 'mp4' })
  if (deleted.automatic === 1 && deleted.blob === null)
    await deps.signals.send('work-cancelled', { videoIds: [videoId], work: 'transcription' })
  if (deleted.blob !== null) await assetFolder(deps.folders, deleted).retire(deleted.blob)
}

/**
 * Shows captions to viewers, in place of others in their language, or hides them. Durable when it resolves.
 * @throws Failure `not-found`; `conflict` for other files, and captions that have not been read out of the file
 */
export async function showCaptions(
  deps: ListDeps & FileDeps,
  { accountId, by, videoId, fileId }: OwnedFile,
  isShown: boolean,
): Promise<VideoFile> {
  const atS = deps.wallNowS()
  await deps.write(async (tx) => {
    const row = await findFile(tx, accountId, videoId, fileId)
    if (!row) throw new Failure('not-found', 'File not found')
    if (row.type !== 'caption') throw new Failure('conflict', 'Only captions can be shown or hidden.')
    if (row.blob === null) throw new Failure('conflict', row.problem ?? BEING_MADE)
    if (row.enabled === Number(isShown) && row.hidden === Number(!isShown)) return
    await setShown(tx, row, isShown)
    const details = { videoId, language: row.language }
    const kind = isShown ? 'caption:shown' : 'caption:hidden'
    await recordAuditEvent(tx, { atS, accountId, by, kind, subjects: [String(fileId)], details })
  })
  return getFile(deps, accountId, videoId, fileId)
}

/**
 * Records that automatic captions have been looked at: from now on they are like any others. Durable when it resolves.
 * @throws Failure `not-found`; `conflict` for others
 */
export async function confirmCaptions(
  deps: ListDeps & FileDeps,
  { accountId, by, videoId, fileId }: OwnedFile,
): Promise<VideoFile> {
  const atS = deps.wallNowS()
  await deps.write(async (tx) => {
    const row = await findFile(tx, accountId, videoId, fileId)
    if (!row) throw new Failure('not-found', 'File not found')
    if (row.automatic === 0) return
    if (row.blob === null) throw new Failure('conflict', row.problem ?? BEING_MADE)
    await setReviewed(tx, row)
    const details = { videoId, language: row.language }
    await recordAuditEvent(tx, { atS, accountId, by, kind: 'caption:reviewed', subjects: [String(fileId)], details })
  })
  return getFile(deps, accountId, videoId, fileId)
}

/** The properties of a video that its files show. */
type Context = {
  video: VideoRow
  plan: Plan | undefined
  audioSettings: readonly AudioSettings[]
  sourceBytes: number
  renditionBytes: Map<number, number>
}

async function loadContext({ db, slowQueryDb }: ListDeps, video: VideoRow, rows: readonly FileRow[]): Promise<Context> {
  const generation = await findGeneration(db, { videoId: video.id, generation: video.generation })
  const source = await findSource(db, video.id)
  // For a video of ten hours this sums fifty thousand segments.
  const hasRendition = rows.some(({ type }) => type === 'rendition')
  const renditionBytes = generation && hasRendition ? await renditionSizes(slowQueryDb, generation) : new Map()
  const audioSettings = generation && hasRendition ? await findAudioSettings(db, generation) : []
  return { video, plan: generation?.plan, audioSettings, sourceBytes: source?.sizeBytes ?? 0, renditionBytes }
}

/** Of an audio track that was added: the file that it was made of. Undefined for any other file. */
export function addedTrackOf({ type, renditionId }: FileRow, plan: Plan | undefined): DubFile | undefined {
  return type === 'rendition' && plan ? findAudioTrack(plan, renditionId)?.dub : undefined
}

type TypeFields = Pick<VideoFile, 'type' | 'name' | 'format'> & Partial<VideoFile>

function toVideoFile(row: FileRow, context: Context): VideoFile {
  return {
    id: row.id,
    createdAtS: row.createdAtS,
    enabled: row.enabled === 1,
    isHidden: row.hidden === 1,
    isAutomatic: row.automatic === 1,
    progress: row.automatic === 1 && row.blob === null && row.problem === null ? row.progress : undefined,
    streamTitle: row.streamTitle ?? undefined,
    sizeBytes: row.sizeBytes,
    widthPx: row.widthPx ?? 0,
    heightPx: row.heightPx ?? 0,
    bitrateBps: 0,
    encryption: '',
    videoCodec: '',
    audioCodec: '',
    language: row.language ?? '',
    isDownloadable: row.type === 'original' || row.blob !== null || addedTrackOf(row, context.plan) !== undefined,
    isDeletable: isDeletable(row),
    problem: row.problem ?? undefined,
    ...FIELDS[row.type](row, context),
  }
}

function isDeletable({ type }: FileRow): boolean {
  return type === 'poster' || type === 'caption' || type === 'mp4'
}

const FIELDS: Readonly<Record<FileRow['type'], (row: FileRow, context: Context) => TypeFields>> = {
  original: originalFields,
  rendition: renditionFields,
  poster: ({ widthPx, heightPx }, { video }) => ({
    type: 'poster',
    name: `${video.title} ${widthPx}x${heightPx}.jpg`,
    format: 'jpeg',
  }),
  caption: ({ language, streamTitle }, { video }) => ({
    type: 'caption',
    name: `${video.title} [${language?.toUpperCase()}]${streamTitle === null ? '' : ` ${streamTitle}`}.vtt`,
    format: 'vtt',
  }),
  'poster-candidate': ({ timeS }, { video }) => ({
    type: 'poster-candidate',
    name: `${video.title} ${timeS}.jpg`,
    format: 'jpeg',
  }),
  storyboard: ({ id }, { video }) => ({ type: 'storyboard', name: `${video.title} storyboard ${id}.webp`, format: 'webp' }),
  mp4: ({ sizeBytes }, { video, plan }) => ({
    type: 'mp4',
    name: `${video.title.replace(/(?<=\S)\.mp4\s*$/i, '')}.mp4`, // many titles are file names
    format: 'mp4',
    bitrateBps: meanBitrateBps(sizeBytes, video),
    ...codecs(plan),
  }),
}

function originalFields(_: FileRow, { video, plan, sourceBytes }: Context): TypeFields {
  const [, extension = ''] = /\.([A-Za-z0-9]{1,8})$/.exec(video.fileName) ?? []
  return {
    type: 'original',
    name: video.fileName === '' ? video.title : video.fileName,
    format: extension.toLowerCase(),
    sizeBytes: sourceBytes,
    bitrateBps: meanBitrateBps(sourceBytes, video),
    widthPx: plan?.videoTrack?.storedPx?.widthPx ?? 0,
    heightPx: plan?.videoTrack?.storedPx?.heightPx ?? 0,
  }
}

function renditionFields({ renditionId }: FileRow, { video, plan, audioSettings, renditionBytes }: Context): TypeFields {
  const sizeBytes = renditionBytes.get(renditionId ?? 0) ?? 0
  const encrypted = { format: 'hls', encryption: 'AES-128', sizeBytes }
  const videoTrack = plan?.videoTrack?.renditions.find(({ id }) => id === renditionId)
  if (!videoTrack) {
    const shown =
      plan && audioTracksOf(plan).length > 1 && showAudioTracks(plan, audioSettings).find(({ id }) => id === renditionId)
    const named = shown ? { name: `${video.title} sound ${shown.label}`, language: shown.language ?? '' } : {}
    const bitrateBps = (plan && findAudioTrack(plan, renditionId)?.bitrateBps) ?? 0
    return { type: 'audio', name: `${video.title} sound`, ...named, ...encrypted, bitrateBps, audioCodec: 'aac' }
  }
  const { widthPx, heightPx, maxBitrateBps } = videoTrack
  return {
    type: Math.min(widthPx, heightPx) > MAX_MOBILE_SHORT_SIDE_PX ? 'desktop' : 'mobile',
    name: `${video.title} ${Math.min(widthPx, heightPx)}p`,
    ...encrypted,
    widthPx,
    heightPx,
    bitrateBps: maxBitrateBps,
    videoCodec: 'h264',
  }
}

function codecs(plan: Plan | undefined): Pick<VideoFile, 'videoCodec' | 'audioCodec'> {
  return { videoCodec: plan?.videoTrack ? 'h264' : '', audioCodec: plan?.audioTrack ? 'aac' : '' }
}

function meanBitrateBps(sizeBytes: number, { durationS }: VideoRow): number {
  return durationS > 0 ? Math.round((sizeBytes * 8) / durationS) : 0
}
