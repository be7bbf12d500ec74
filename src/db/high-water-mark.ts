import { existsSync, readFileSync } from 'node:fs'
import { open, rename, writeFile } from 'node:fs/promises'
import { Failure } from '../errors.ts'
import type { DatabaseLocation } from './database.ts'

/** The setting that a server moves forward as time passes (playback/playback-clock.ts); how far it came is noted beside the database. */
export const HIGH_WATER_MARK = 'playback-clock'

/** How far the database has come, and where it is: no address means in the data folder. */
export type HighWaterMark = { mark: number; address: string | undefined }

/**
 * Notes it in `file`. The caller has committed it: the note is never ahead of the database. It is written over in place: a file that
 * is emptied first would stay empty on a full disk.
 */
export async function saveHighWaterMark(file: string, { mark, address }: HighWaterMark): Promise<void> {
  const text = `${mark}\n${address === undefined ? '' : `${address}\n`}`
  if (!existsSync(file)) return makeMark(file, text)
  await using handle = await open(file, 'r+')
  await handle.write(text, 0)
  await handle.truncate(Buffer.byteLength(text))
}

/** A crash leaves it whole, or not at all. */
async function makeMark(file: string, text: string): Promise<void> {
  const unfinished = `${file}.new`
  await writeFile(unfinished, text, { mode: 0o600, flush: true })
  await rename(unfinished, file)
}

/** @throws Failure `unavailable` when something else is in the file */
export function readHighWaterMark(file: string): HighWaterMark {
  if (!existsSync(file)) return { mark: 0, address: undefined }
  const [, mark, address] = /^(\d{1,15})\n(?:(\S+)\n)?$/.exec(readFileSync(file, 'utf8')) ?? []
  if (mark === undefined)
    throw new Failure(
      'unavailable',
      `The high-water mark ${file} is damaged: a number is expected in it, and with PostgreSQL the address of the database. Restore it from a backup; or make sure that the database is the newest, remove this file and start again.`,
    )
  return { mark: Number(mark), address }
}

/**
 * A database without its log, or an old copy in its place, would lose videos in silence; and the sweep would take their files.
 * @throws Failure `unavailable` when the note is ahead of the database, or the database cannot be asked
 */
export async function assertNotOlderThanMark(place: DatabaseLocation, markFile: string): Promise<void> {
  const { mark, address } = readHighWaterMark(markFile)
  if (mark === 0 || mark <= (await findHighWaterMark(place))) return
  const hasMoved = address !== undefined && place.address === undefined
  throw new Failure(
    'unavailable',
    hasMoved
      ? `The installation has moved to ${address}, and ${place.name} is as it was before. Set REELGATE_DATABASE_URL to that database. To go back, and lose what came since, remove ${markFile} and start again.`
      : `The database ${place.name} is older than its data folder: ${place.olderBecause}. Put back what belongs together; to lose what came after this database, remove ${markFile} and start again.`,
  )
}

/** @throws Failure `unavailable` when the database is damaged or cannot be reached */
export async function findHighWaterMark(place: DatabaseLocation): Promise<number> {
  return Number((await place.peekSetting(HIGH_WATER_MARK)) ?? 0)
}
