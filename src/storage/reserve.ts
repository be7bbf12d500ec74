import { randomFillSync } from 'node:crypto'
import { statfsSync, statSync, truncateSync } from 'node:fs'
import { open, truncate } from 'node:fs/promises'
import { dirname } from 'node:path'
import { hasRoomIn } from './space.ts'

// A file that holds space for what must work when a disk is full to the last byte: a start, deletions, the database's log. Its size
// alone says what is left of it, so a crash needs no repair.

/** Twice the database's log at its longest (LOG_PAGES): the log, and what it adds to the database. */
const RESERVE_BYTES = 32 * 2 ** 20
/** On a small file system the reserve is this share of it. */
const RESERVE_SHARE = 1 / 8
/** It is released in parts, since whatever filled the disk may take all that is free. */
const PARTS = 8
/** Four times what a start writes, the first one included. */
const MIN_FREE_AT_START_BYTES = 2 * 2 ** 20
const WRITE_BLOCK_BYTES = 2 ** 20

/** Releases a part of the reserve. False: nothing is left of it. */
export function releaseReservePart(reservePath: string): boolean {
  const sizeBytes = fileSize(reservePath)
  if (sizeBytes === 0) return false
  truncateSync(reservePath, Math.max(0, sizeBytes - Math.ceil(fullReserveBytes(dirname(reservePath)) / PARTS)))
  return true
}

/** Releases a part when a start would find no space. Only one: freed blocks may first count as those reserved for root, so that a loop could release everything. */
export function releaseReserveAtStart(reservePath: string): void {
  const { bavail, bsize } = statfsSync(dirname(reservePath))
  if (bavail * bsize < MIN_FREE_AT_START_BYTES) releaseReservePart(reservePath)
}

/**
 * Restores the reserve when there is room for it beyond the space at which uploads are refused, so that it does not
 * alternate between released and restored. Its bytes are random, since a file system that compresses would store constant ones in no space.
 * @returns whether anything was added
 */
export async function refillReserve(reservePath: string): Promise<boolean> {
  const folder = dirname(reservePath)
  const existingBytes = fileSize(reservePath)
  const missingBytes = fullReserveBytes(folder) - existingBytes
  if (missingBytes <= 0 || !(await hasRoomIn([folder], missingBytes))) return false
  await using file = await open(reservePath, 'a', 0o600)
  try {
    const bytes = Buffer.alloc(Math.min(missingBytes, WRITE_BLOCK_BYTES)) // reused, so that memory does not grow
    for (let left = missingBytes; left > 0; left -= bytes.length) await file.writeFile(randomFillSync(bytes).subarray(0, left))
    await file.sync()
    return true
  } catch (error) {
    await truncate(reservePath, existingBytes) // bytes that may not have reached the disk hold no space
    throw error
  }
}

function fileSize(reservePath: string): number {
  return statSync(reservePath, { throwIfNoEntry: false })?.size ?? 0
}

function fullReserveBytes(folder: string): number {
  const { blocks, bsize } = statfsSync(folder)
  return Math.floor(Math.min(RESERVE_BYTES, RESERVE_SHARE * blocks * bsize))
}
