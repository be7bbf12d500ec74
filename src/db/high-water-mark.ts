import { existsSync, readFileSync } from 'node:fs'
import { open, rename, writeFile } from 'node:fs/promises'
import { Failure } from '../errors.ts'
import type { DatabaseLocation } from './database.ts'

/**
 * The setting that a server moves forward as time passes (playback/playback-clock.ts). A file next to the database has a copy
 * of it.
 */
export const HIGH_WATER_MARK = 'playback-clock'

/** The newest known position of the database, and where the database is: without an address, in the data folder. */
type HighWaterMark = { value: number; address: string | undefined }

/**
 * Saves it in `file`, after the caller has committed it: the file is never ahead of the database. An existing file is
 * overwritten in place, because a truncated file would stay empty on a full disk.
 */
export async function saveHighWaterMark(file: string, { value, address }: HighWaterMark): Promise<void> {
  const text = `${value}\n${address === undefined ? '' : `${address}\n`}`
  if (!existsSync(file)) return createAtomically(file, text)
  await using handle = await open(file, 'r+')
  await handle.write(text, 0)
  await handle.truncate(Buffer.byteLength(text))
}

/** A crash leaves the whole file or none. */
async function createAtomically(file: string, text: string): Promise<void> {
  const unfinished = `${file}.new`
  await writeFile(unfinished, text, { mode: 0o600, flush: true })
  await rename(unfinished, file)
}

/** @throws Failure `unavailable` when the file is damaged */
export function readHighWaterMark(file: string): HighWaterMark {
  if (!existsSync(file)) return { value: 0, address: undefined }
  const [, value, address] = /^(\d{1,15})\n(?:(\S+)\n)?$/.exec(readFileSync(file, 'utf8')) ?? []
  if (value === undefined)
    throw new Failure(
      'unavailable',
      `The high-water mark ${file} is damaged: expected a number, and with PostgreSQL the address of the database. Restore it from a backup; or make sure that the database is the newest, remove this file and start again.`,
    )
  return { value: Number(value), address }
}

/**
 * With a database that lacks its log, or an old copy of it, videos would be lost silently, and the sweep would remove their
 * files.
 * @throws Failure `unavailable` when the file is ahead of the database, or the database cannot be read
 */
export async function assertNotOlderThanMark(location: DatabaseLocation, markFile: string): Promise<void> {
  const { value, address } = readHighWaterMark(markFile)
  if (value === 0 || value <= (await findHighWaterMark(location))) return
  const hasMoved = address !== undefined && location.address === undefined
  throw new Failure(
    'unavailable',
    hasMoved
      ? `The installation has moved to ${address}, and ${location.name} is as it was before. Set REELGATE_DATABASE_URL to that database. To go back, and lose what came since, remove ${markFile} and start again.`
      : `The database ${location.name} is older than its data folder: ${location.possibleRollbackCause}. Restore both from the same backup; to lose what came after this database, remove ${markFile} and start again.`,
  )
}

/** @throws Failure `unavailable` when the database is damaged or cannot be reached */
export async function findHighWaterMark(location: DatabaseLocation): Promise<number> {
  return Number((await location.peekSetting(HIGH_WATER_MARK)) ?? 0)
}
