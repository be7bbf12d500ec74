import { createHash } from 'node:crypto'
import { link, lstat, mkdir, open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'

// Copies of published files, which never change: a backup's, and those of a restored installation.

const BLOCK_BYTES = 2 ** 20

/** An unfinished copy has this ending; a finished one is renamed. */
const UNFINISHED = '.part'

/** The SHA-256 of a file; undefined when it does not exist. */
export async function hashFile(path: string): Promise<Buffer | undefined> {
  const file = await open(path).catch(ignoreMissing)
  if (!file) return undefined
  await using _ = file
  const hash = createHash('sha256')
  const block = Buffer.allocUnsafe(BLOCK_BYTES)
  for (;;) {
    const { bytesRead } = await file.read(block, 0, BLOCK_BYTES)
    if (bytesRead === 0) return hash.digest()
    hash.update(block.subarray(0, bytesRead))
  }
}

/**
 * Copies a file durably, under its name only once it is complete. The caller makes that name durable: `syncInPlace`.
 * @returns its SHA-256; undefined when it does not exist
 */
export async function copyFile(from: string, to: string): Promise<Buffer | undefined> {
  const source = await open(from).catch(ignoreMissing)
  if (!source) return undefined
  await using _ = source
  const unfinished = `${to}${UNFINISHED}`
  await mkdir(dirname(to), { recursive: true, mode: 0o700 })
  const hash = createHash('sha256')
  {
    await using copy = await open(unfinished, 'w', 0o600)
    const block = Buffer.allocUnsafe(BLOCK_BYTES)
    for (;;) {
      const { bytesRead } = await source.read(block, 0, BLOCK_BYTES)
      if (bytesRead === 0) break
      hash.update(block.subarray(0, bytesRead))
      await copy.writeFile(block.subarray(0, bytesRead))
    }
    await copy.sync()
  }
  await rename(unfinished, to)
  return hash.digest()
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

function hasCode(error: unknown, ...codes: string[]): boolean {
  return error instanceof Error && 'code' in error && codes.includes(String(error.code))
}
