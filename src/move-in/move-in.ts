import { isDeepStrictEqual } from 'node:util'
import { changeAudioTrack, listAudioTracks } from '../assets/audio-tracks.ts'
import { addDub, type DubDeps } from '../assets/dubs.ts'
import { recordAuditEvent } from '../audit/audit-log.ts'
import type { ListDeps } from '../catalogue/catalogue-deps.ts'
import { listDubs } from '../catalogue/dub-store.ts'
import { openFolderPath, parseFolderPath } from '../catalogue/folder.ts'
import { requeueFailed } from '../catalogue/status.ts'
import { parseTags } from '../catalogue/tag.ts'
import { insertTags } from '../catalogue/tag-store.ts'
import { parseDescription } from '../catalogue/title.ts'
import { findVideo, listPositions, updateVideo } from '../catalogue/video-store.ts'
import type { Db } from '../db/database.ts'
import { type TrimDeps, trimVideo } from '../encode/replacement.ts'
import type { Part } from '../encode/trim.ts'
import { Failure } from '../errors.ts'
import { type ImportDeps, type ImportRequest, insertImportOf, insertParsedImport, parseImport } from '../ingest/import.ts'
import { removeImport } from '../ingest/import-store.ts'
import { displayName } from '../ingest/source.ts'
import { guardedFetch } from '../outbound/fetch.ts'
import { assertPublicDestination, describeUrl } from '../outbound/policy.ts'
import { type DefaultOptions, formatDefaults, getAccountDefaults, setAccountDefaults } from '../playback/otp-defaults.ts'
import { saveVideosDefaults } from '../playback/otp-defaults-store.ts'
import { findMovedVideo, insertMovedVideo, listMovedVideos, type MoveTarget, type OriginVideo } from './moved-video-store.ts'

// A video of another server with the same API becomes one of this server: its row now, its original by an import.

type MovingVideo = OriginVideo &
  ImportRequest & {
    /** Of its original. */
    fileName: string
    description: string
    public: 0 | 1
    /** Names, the outermost first. */
    folders: readonly string[]
    tags: readonly string[]
    /** Checked. */
    otpDefaults: DefaultOptions
  }

/** `arriving`: its original is fetched; `here`: it has arrived; `deleted`: it was, and does not come again. */
type MovedVideo = { videoId: string; state: 'arriving' | 'here' | 'deleted'; hasFiles: boolean }

/**
 * Adds a video of another server and queues the import of its original, once: a video that was added before is left as it is, unless
 * its original could not be fetched. Then that is queued again, with the new address. Durable when it resolves.
 * @throws Failure `over-quota` when nothing more fits; `invalid` for a value; `conflict` for another video's `externalId`
 */
export async function moveVideo(deps: ImportDeps, moving: MovingVideo): Promise<MovedVideo> {
  const { accountId, origin, originId, otpDefaults } = moving
  const parsed = { ...parseImport(deps, moving), fileName: displayName(moving.fileName) }
  const tags = parseTags(moving.tags)
  const path = parseFolderPath(moving.folders)
  const description = parseDescription(moving.description)
  await deps.quota.assertNotFull(accountId)
  const by = 'command-line' as const
  const moved = await deps.write(async (tx): Promise<MovedVideo> => {
    const known = await findMovedVideo(tx, moving)
    if (known) return continueMove(deps, tx, { accountId, known, url: parsed.url })
    const atS = deps.wallNowS()
    const folderId = await openFolderPath(tx, { accountId, by, path, mayCreate: true, atS })
    const { videoId } = parsed
    await insertParsedImport(tx, deps.masterKey, { ...parsed, accountId, folderId, addedBy: undefined })
    await updateVideo(tx, accountId, videoId, { description, public: moving.public })
    if (tags.length > 0) await insertTags(tx, accountId, await listPositions(tx, accountId, [videoId]), tags)
    await saveVideosDefaults(tx, accountId, [videoId], formatDefaults(otpDefaults))
    await insertMovedVideo(tx, { accountId, origin, originId, videoId })
    const details = { origin, originId }
    await recordAuditEvent(tx, { atS, accountId, by, kind: 'video:moved-in', subjects: [videoId], details })
    return { videoId, state: 'arriving', hasFiles: false }
  })
  if (moved.state === 'arriving') void deps.signals.send('work-queued', 'import')
  return moved
}

async function continueMove(
  { masterKey }: Pick<ImportDeps, 'masterKey'>,
  tx: Db,
  { accountId, known, url }: { accountId: string; known: MovedRow; url: URL },
): Promise<MovedVideo> {
  const { videoId } = known
  const hasFiles = known.hasFiles === 1
  if (isDeleted(known)) return { videoId, state: 'deleted', hasFiles }
  if (known.hasSource === 1) return { videoId, state: 'here', hasFiles }
  if (await requeueFailed(tx, videoId, 'Queued')) {
    await removeImport(tx, videoId) // one that did not fit has kept its row
    await insertImportOf(tx, masterKey, { accountId, videoId, url, replaces: 0 })
  }
  return { videoId, state: 'arriving', hasFiles }
}

type MovedRow = NonNullable<Awaited<ReturnType<typeof findMovedVideo>>>

function isDeleted({ status, deletedAtS }: MovedRow): boolean {
  return status === null || deletedAtS !== null
}

/** A copied video of which something waits until it plays here. `problem`: why that cannot be done. */
type Completion = { isWaiting: boolean; problem: string | null }

/** @param what is done, as the owner reads of it where it fails */
async function onceItPlays(
  { db }: Pick<TrimDeps, 'db'>,
  { accountId, videoId }: { accountId: string; videoId: string },
  what: string,
  action: () => Promise<unknown>,
): Promise<Completion> {
  const status = (await findVideo(db, accountId, videoId))?.status
  if (status === undefined) return { isWaiting: false, problem: null } // deleted meanwhile
  if (status === 'Not a media file' || status === 'Encoding error')
    return { isWaiting: false, problem: `${what}: it could not be encoded here.` }
  if (status !== 'ready') return { isWaiting: true, problem: null }
  try {
    await action()
    return { isWaiting: false, problem: null }
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    return { isWaiting: false, problem: `${what}: ${error.message}` }
  }
}

type MovedAudio = {
  url: string
  fileName: string
  language: string
  name?: string | undefined
  isDefault: boolean
  startS: number
}
const AUDIO_IDLE_MS = 30_000
const AUDIO_TOTAL_MS = 6 * 3600_000

/** Adds an audio track that was added there to a video that was copied, from its file there, once it plays here; once. Durable when it resolves. */
export async function addMovedAudio(
  deps: DubDeps & Pick<ImportDeps, 'outbound'>,
  video: { accountId: string; videoId: string },
  { url, ...track }: MovedAudio,
): Promise<Completion> {
  const { accountId, videoId } = video
  const name = track.name ?? null
  return onceItPlays(deps, video, `The audio track in ${track.language}`, async () => {
    const ofSource = (await findVideo(deps.db, accountId, videoId))?.sourceNumber ?? 1
    const known = await listDubs(deps.db, { videoId, ofSource })
    if (known.some((dub) => dub.language === track.language && dub.name === name && dub.startS === track.startS)) return
    const request = { accountId, url, maxBytes: deps.uploadMaxBytes, idleMs: AUDIO_IDLE_MS, totalMs: AUDIO_TOTAL_MS }
    await guardedFetch(deps.outbound, request, async ({ status, headers, bytes: file }) => {
      if (status !== 200) throw new Failure('not-found', `${describeUrl(new URL(url))} answered ${status}.`)
      const declaredBytes = Number(headers['content-length'] ?? 0)
      await addDub(deps, { ...video, ...track, by: 'command-line', file, declaredBytes })
    })
  })
}

type MovedNames = { name: string; language?: string | undefined; isDefault: boolean }

/**
 * Gives the audio tracks of a copied video's own file the names and languages that they have there, and the same default, once it plays
 * here. Durable when it resolves.
 * @param there in the order of the file, the one that it plays first
 */
export async function nameMovedAudio(
  deps: DubDeps,
  video: { accountId: string; videoId: string },
  there: readonly MovedNames[],
): Promise<Completion> {
  const { accountId, videoId } = video
  const listOwn = async () => (await listAudioTracks(deps, accountId, videoId)).filter(({ isAdded }) => !isAdded)
  return onceItPlays(deps, video, 'The names of its audio tracks', async () => {
    const own = await listOwn()
    if (own.length !== there.length) throw new Failure('conflict', `there it has ${there.length} tracks, here ${own.length}.`)
    const change = (trackId: number, change: Parameters<typeof changeAudioTrack>[2]) =>
      changeAudioTrack(deps, { accountId, videoId, trackId, by: 'command-line' }, change)
    // Languages first: a track without a name is called by its language.
    for (const [at, { id, language, isDefault }] of own.entries()) {
      const wanted = there[at]
      const isOther = wanted?.language !== undefined && wanted.language !== language
      const becomesDefault = wanted?.isDefault === true && !isDefault
      if (isOther || becomesDefault)
        await change(id, { ...(isOther && { language: wanted.language }), ...(becomesDefault && { isDefault: true }) })
    }
    for (const [at, { id, label }] of (await listOwn()).entries()) {
      const wanted = there[at]
      if (wanted && wanted.name !== label) await change(id, { name: wanted.name })
    }
  })
}

/**
 * Trims a video that was copied to the part that it plays on the other server, once it plays here. Durable when it resolves.
 * @returns whether it does not play yet, or why it cannot be trimmed
 */
export async function trimMoved(
  deps: TrimDeps,
  { accountId, videoId }: { accountId: string; videoId: string },
  part: Part,
): Promise<Completion> {
  const event = { atS: deps.wallNowS(), accountId, by: 'command-line', kind: 'video:trimmed', subjects: [videoId] } as const
  return onceItPlays(deps, { accountId, videoId }, 'It is not trimmed', () =>
    trimVideo(deps, { accountId, videoId }, part, (tx) => recordAuditEvent(tx, event)),
  )
}

/** @throws Failure `invalid` for the address of a server from which nothing may be fetched */
export async function assertMayMoveFrom(
  { outbound }: Pick<ImportDeps, 'outbound'>,
  { accountId, origin }: MoveTarget,
): Promise<void> {
  await assertPublicDestination(outbound, accountId, origin)
}

/**
 * Adds the folders of another server that are missing, and its defaults of OTPs, if the account has none.
 * @param account.otpDefaults checked
 * @returns why its defaults were not taken; null: they were
 */
export async function moveAccount(
  deps: ImportDeps,
  {
    accountId,
    folders,
    otpDefaults,
  }: { accountId: string; folders: readonly (readonly string[])[]; otpDefaults: DefaultOptions },
): Promise<{ problem: string | null }> {
  const by = 'command-line' as const
  const paths = folders.map(parseFolderPath)
  await deps.write(async (tx) => {
    for (const path of paths) await openFolderPath(tx, { accountId, by, path, mayCreate: true, atS: deps.wallNowS() })
  })
  const own = await getAccountDefaults(deps, accountId)
  if (formatDefaults(otpDefaults) === null || isDeepStrictEqual(own, otpDefaults)) return { problem: null }
  if (formatDefaults(own) !== null) return { problem: 'The account here has others, which were kept.' }
  await setAccountDefaults(deps, { accountId, by }, otpDefaults)
  return { problem: null }
}

/** The videos of another server that were copied: whether nothing of them is missing, and why an original did not come. */
export async function listMoved(
  { slowQueryDb }: Pick<ListDeps, 'slowQueryDb'>,
  target: MoveTarget,
): Promise<{ originId: string; isComplete: boolean; problem: string | null }[]> {
  const rows = await listMovedVideos(slowQueryDb, target)
  return rows.map((row) => ({
    originId: row.originId,
    isComplete: isDeleted(row) || (row.hasFiles === 1 && row.hasSource === 1),
    problem: isDeleted(row) || row.hasSource === 1 ? null : row.statusReason,
  }))
}
