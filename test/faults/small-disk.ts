import { execFile } from 'node:child_process'
import { type FileHandle, mkdtemp, open, rm, statfs } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { onTestFinished } from 'vitest'

const run = promisify(execFile)
const MIB = 2 ** 20

export type SmallDisk = {
  path: string
  /** Takes all of the disk but so many bytes. */
  leave(bytes: number): Promise<void>
  /** Takes all that is free, to the last byte. */
  fill(): Promise<void>
  /** Has no room for another file, though bytes are free. */
  leaveNoFile(): Promise<void>
  /** Gives back what `leave` and `fill` took. */
  makeRoom(): Promise<void>
}

/** A file system of its own (tmpfs), unmounted when the test has finished: on it the disk is really full. */
export async function mountSmallDisk(mebibytes: number): Promise<SmallDisk> {
  const path = await mkdtemp(join(tmpdir(), 'reelgate-disk-'))
  await run('mount', ['-t', 'tmpfs', '-o', `size=${mebibytes}m`, 'tmpfs', path])
  onTestFinished(async () => {
    await run('umount', ['-l', path])
    await rm(path, { recursive: true })
  })
  const filler = join(path, 'filler')
  return {
    path,
    async leave(bytes) {
      await rm(filler, { force: true })
      const { bavail, bsize } = await statfs(path)
      await using file = await open(filler, 'w')
      for (let left = bavail * bsize - bytes; left > 0; left -= MIB) {
        // The last bytes go one page at a time: the disk must end as full as was asked.
        await file.write(Buffer.alloc(Math.min(left, MIB))).catch(() => undefined)
      }
    },
    async fill() {
      await using file = await open(filler, 'a')
      for (let sizeBytes = MIB; sizeBytes >= 1; ) if (!(await isAdded(file, sizeBytes))) sizeBytes /= 2
    },
    async leaveNoFile() {
      // What the server makes or removes between the two calls is in neither number: then the kernel refuses, or a file is left.
      const isLeft = async () => (await statfs(path)).ffree > 0
      while (await isLeft()) {
        const { files, ffree } = await statfs(path)
        await run('mount', ['-o', `remount,nr_inodes=${files - ffree}`, path]).catch(() => undefined)
      }
    },
    makeRoom: () => rm(filler, { force: true }),
  }
}

async function isAdded(file: FileHandle, sizeBytes: number): Promise<boolean> {
  return file.write(Buffer.alloc(sizeBytes)).then(
    () => true,
    () => false,
  )
}
