import { accessSync, closeSync, constants, fsyncSync, openSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { errorCode } from '../errors.ts'

/**
 * Makes the name of a file or folder durable, and those of the folders above it, up to where their file system is mounted or what
 * this user may read: nothing further up was made here.
 */
export function syncNames(path: string): void {
  const folder = dirname(resolve(path))
  const { dev } = statSync(folder)
  for (let at = folder; mayRead(at) && statSync(at).dev === dev; at = dirname(at)) {
    syncInPlace(at)
    if (at === dirname(at)) return
  }
}

/** Makes the bytes of a file, or the names in a folder, durable. */
export function syncInPlace(path: string): void {
  const handle = openSync(path, 'r')
  try {
    fsyncSync(handle)
  } catch (error) {
    // A read-only file system may not support fsync: nothing there is unwritten.
    if (errorCode(error) !== 'EINVAL') throw error
  } finally {
    closeSync(handle)
  }
}

function mayRead(folder: string): boolean {
  try {
    accessSync(folder, constants.R_OK)
    return true
  } catch {
    return false
  }
}
