import { Readable } from 'node:stream'
import type { Logger } from 'pino'
import type { VideoFolders } from '../catalogue/deletion.ts'
import { wrapFileKey } from '../catalogue/file-key.ts'
import type { Db } from '../db/sqlite.ts'
import { isOutcomeUnknown, type Write } from '../db/write.ts'
import { isAnyWaiting } from '../encode/chunk-store.ts'
import { isOfTheMachine, openFilm } from '../encode/film-work.ts'
import { joinedSizeBytes, joinFilm } from '../encode/join-film.ts'
import type { OpenFilm } from '../encode/publication.ts'
import { Failure } from '../errors.ts'
import { type Dispatcher, type Job, startDispatcher } from '../jobs/dispatcher.ts'
import type { MasterKey } from '../protect/master-key.ts'
import { newSeal, SealingStream } from '../protect/sealed-file.ts'
import { newToken } from '../protect/secret.ts'
import { putBlobStream, removeBlobAndEmptyFolders } from '../storage/folder.ts'
import { endMp4, findUnmadeMp4 } from './mp4-store.ts'

export type Mp4WorkDeps = {
  db: Db
  slowDb: Db
  write: Write
  masterKey: MasterKey
  folders: VideoFolders
  log: Logger
  /** Whether the disk has room for so many bytes more. */
  hasRoom(forBytes: number): Promise<boolean>
}

/** How often to look for what waits for its time, for room on the disk or for encodes to end. */
const LOOK_EVERY_MS = 5_000
/** How often making one may fail; trouble of the whole machine does not count. */
const TRIES = 3
const REST_MS = 5_000

type Unmade = { id: number; videoId: string; generation: number }

/** Makes MP4s, one at a time, and none while a film waits to be encoded. */
export function startMakingMp4s(deps: Mp4WorkDeps): Dispatcher {
  const dispatcher = startDispatcher({ places: 1, claim: claimsOfMp4s(deps), log: deps.log })
  const looking = setInterval(dispatcher.wake, LOOK_EVERY_MS)
  return {
    ...dispatcher,
    async stop() {
      clearInterval(looking)
      await dispatcher.stop()
    },
  }
}

/** What there is to do for MP4s. The database is the truth. */
function claimsOfMp4s(deps: Mp4WorkDeps) {
  const resting = new Set<number>()
  const failures = new Map<number, number>()

  async function claim(urgentOnly: boolean): Promise<Job | undefined> {
    if (urgentOnly || !(await deps.hasRoom(0)) || (await isAnyWaiting(deps.db))) return undefined
    const unmade = await findUnmadeMp4(deps.db, [...resting])
    return unmade && { key: unmade.videoId, run: (signal) => makeOne(unmade, signal) }
  }

  async function makeOne(unmade: Unmade, signal: AbortSignal): Promise<void> {
    try {
      await makeMp4(deps, unmade, signal)
      failures.delete(unmade.id)
    } catch (error) {
      if (!signal.aborted) await afterTrouble(unmade, error)
    }
  }

  async function afterTrouble({ id, videoId }: Unmade, error: unknown): Promise<void> {
    const count = (failures.get(id) ?? 0) + (isOfTheMachine(error) ? 0 : 1)
    if (count >= TRIES) {
      failures.delete(id)
      deps.log.error({ err: error, videoId }, 'an MP4 could not be made')
      await deps.write((tx) => endMp4(tx, id, { enabled: 0 }))
      return
    }
    failures.set(id, count)
    deps.log.warn({ err: error, videoId }, 'making an MP4 failed and is tried again')
    resting.add(id)
    setTimeout(() => resting.delete(id), REST_MS).unref()
  }

  return claim
}

async function makeMp4(deps: Mp4WorkDeps, { id, videoId, generation }: Unmade, signal: AbortSignal): Promise<void> {
  const film = await openFilm(deps, videoId, generation)
  if (!film) return // deleted meanwhile
  if (!(await deps.hasRoom(await joinedSizeBytes(deps.slowDb, film)))) throw NO_ROOM
  const blob = `${videoId}/${newToken()}.sealed`
  try {
    const sealed = await sealMp4(deps, film, blob, signal)
    if (await deps.write((tx) => endMp4(tx, id, sealed)))
      deps.log.info({ videoId, sizeBytes: sealed.sizeBytes }, 'an MP4 was made')
    else await removeBlobAndEmptyFolders(deps.folders.files, blob)
  } catch (error) {
    // What may have been committed stays: the sweep takes it if it was not.
    if (!isOutcomeUnknown(error)) await removeBlobAndEmptyFolders(deps.folders.files, blob)
    throw error
  }
}

const NO_ROOM = new Failure('unavailable', 'The disk of this server has no room for this MP4.')

/** @returns what the row says of an MP4 that lies there, durable */
async function sealMp4({ db, masterKey, folders }: Mp4WorkDeps, film: OpenFilm, blob: string, signal: AbortSignal) {
  const seal = newSeal()
  const sealing = new SealingStream(seal)
  const clear = Readable.from(joinFilm({ db, segments: folders.segments }, film), { objectMode: false, signal })
  await putBlobStream(folders.files, blob, [clear, sealing])
  const { sizeBytes, macs } = sealing.sealed
  return { blob, sizeBytes, iv: seal.iv, macs, wrappedKey: wrapFileKey(masterKey, blob, seal.key) }
}
