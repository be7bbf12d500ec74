import { statSync, utimesSync } from 'node:fs'

/** A file that differs between an installation and its copy, and the setting that stores its identity. */
export type IdentifyingFile = { setting: 'database-file' | 'lock-file'; path: string }

/**
 * What differs between a file and a copy of it: inode number and time of birth. Moving it within its file system, a change of owner and a
 * restart leave both as they are; no tool that copies files keeps both.
 * @returns undefined when the file system has no time of birth. The kernel's stand-in for it is the time of the last change, so one
 *   that equals that is not used: see `ensureDistinctTimes`.
 */
export function fileIdentity(path: string): string | undefined {
  const { ino, birthtimeNs, ctimeNs } = statSync(path, { bigint: true })
  return birthtimeNs === 0n || birthtimeNs === ctimeNs ? undefined : `${ino} ${birthtimeNs}`
}

/** Makes a file's last change later than its birth, where both are one tick of the clock. */
export function ensureDistinctTimes(path: string): void {
  const { atime, mtime, birthtimeNs, ctimeNs } = statSync(path, { bigint: true })
  if (birthtimeNs === ctimeNs) utimesSync(path, atime, mtime)
}
