import { statSync } from 'node:fs'

/**
 * What tells a file from a copy of it: inode number and time of birth. Moving it within its file system, a change of owner and a
 * restart leave both as they are; no tool that copies files keeps both.
 * @returns undefined where the file system has no time of birth. The kernel's stand-in for it is the time of the last change, so one
 *   that equals that is not believed: touch the file once before.
 */
export function identityOf(path: string): string | undefined {
  const { ino, birthtimeNs, ctimeNs } = statSync(path, { bigint: true })
  return birthtimeNs === 0n || birthtimeNs === ctimeNs ? undefined : `${ino} ${birthtimeNs}`
}
