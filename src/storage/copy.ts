import { createHash } from 'node:crypto'
import { link, lstat, mkdir, open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'

// Copies of published files, which never change: a backup's, and those of a restored installation.

const BLOCK_BYTES = 2 ** 20

/** An unfinished copy has this ending; a finished one is renamed. */
const UNFINISHED = '.part'

/** Compares a file that is read with the one that was published. */
export type FileCheck = {
  /** Is given all bytes in their order. */
  add(bytes: Buffer): void
  /** @param sha256 of all bytes */
  isIntact(sha256: Buffer): boolean
}

const NO_CHECK: FileCheck = { add: () => undefined, isIntact: () => true }

export function checkHash(expected: Buffer): FileCheck {
  return { add: () => undefined, isIntact: (sha256) => sha256.equals(expected) }
}

/**
 * The SHA-256 of a file; undefined when it does not exist, cannot be read, or is not intact.
 * @param pace is awaited after each part that was read
 */
export async function hashFile(
  path: string,
  check = NO_CHECK,
  pace: (sizeBytes: number) => Promise<void> = async () => undefined,
): Promise<Buffer | undefined> {
  const sha256 = await readWhole(path, async (bytes) => {
    check.add(bytes)
    await pace(bytes.length)
  })
  return sha256 && check.isIntact(sha256) ? sha256 : undefined
}

/**
 * Copies a file durably, under its name only once it is complete and intact. The caller makes that name durable: `syncInPlace`.
 * @returns its SHA-256; undefined when it does not exist, cannot be read, or is not intact
 */
export async function copyFile(from: string, to: string, check = NO_CHECK): Promise<Buffer | undefined> {
  const unfinished = `${to}${UNFINISHED}`
  await mkdir(dirname(to), { recursive: true, mode: 0o700 })
  let sha256: Buffer | undefined
  {
    await using copy = await open(unfinished, 'w', 0o600)
    sha256 = await readWhole(from, async (bytes) => {
      check.add(bytes)
      await copy.writeFile(bytes)
    })
    if (sha256 && check.isIntact(sha256)) await copy.sync()
    else sha256 = undefined
  }
  if (sha256) await rename(unfinished, to)
  else await rm(unfinished)
  return sha256
}

/** @returns the SHA-256 of the file; undefined when it does not exist or cannot be read from the disk */
async function readWhole(path: string, use: (bytes: Buffer) => Promise<void>): Promise<Buffer | undefined> {
  const file = await open(path).catch(ignoreUnreadable)
  if (!file) return undefined
  await using _ = file
  const hash = createHash('sha256')
  const block = Buffer.allocUnsafe(BLOCK_BYTES)
  for (;;) {
    const read = await file.read(block, 0, BLOCK_BYTES).catch(ignoreUnreadable)
    if (!read) return undefined
    const { bytesRead } = read
    if (bytesRead === 0) return hash.digest()
    const bytes = block.subarray(0, bytesRead)
    hash.update(bytes)
    await use(bytes)
  }
}

/**
 * Gives a file a second name, in place of whatever has that name.
 * @returns `unsupported` when the names are on two file systems, or the file system has no hard links
 */
export async function linkFile(from: string, to: string): Promise<'linked' | 'missing' | 'unsupported'> {
  const unfinished = `${to}${UNFINISHED}`
  await mkdir(dirname(to), { recursive: true, mode: 0o700 })
  await rm(unfinished, { force: true })
  try {
    await link(from, unfinished)
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return 'missing'
    if (hasCode(error, 'EXDEV', 'EPERM', 'ENOTSUP', 'EMLINK')) return 'unsupported'
    throw error
  }
  // Renaming one name of a file to another name of the same file does nothing, so the old one goes first.
  await rm(to, { force: true })
  await rename(unfinished, to)
  return 'linked'
}

/** Undefined when there is no such file. */
export async function statFile(path: string) {
  return lstat(path).catch(ignoreMissing)
}

function ignoreMissing(error: unknown): undefined {
  if (!hasCode(error, 'ENOENT')) throw error
}

function ignoreUnreadable(error: unknown): undefined {
  if (!hasCode(error, 'ENOENT', 'EIO')) throw error
}

function hasCode(error: unknown, ...codes: string[]): boolean {
  return error instanceof Error && 'code' in error && codes.includes(String(error.code))
}
