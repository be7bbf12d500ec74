import { randomBytes } from 'node:crypto'
import { open, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { writeWhole } from '../../src/storage/write-whole.ts'
import { mountSmallDisk } from '../faults/small-disk.ts'

test('F-350: a write of which a full disk takes a part is refused, and written when there is room', async () => {
  const disk = await mountSmallDisk(1)
  const path = join(disk.path, 'copy')
  await using file = await open(path, 'w')
  const bytes = randomBytes(64 * 1024)
  await disk.leave(16 * 1024)
  await expect(writeWhole(file, bytes, 8)).rejects.toMatchObject({ code: 'ENOSPC' })
  await disk.makeRoom()
  await writeWhole(file, bytes, 8)
  expect((await readFile(path)).subarray(8)).toEqual(bytes)
})
