import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { openSourceCopies } from '../../src/workers/client/source-copies.ts'

const SOURCE = { sizeBytes: 99, sealedBytes: 100, keyHex: '1'.repeat(32), ivHex: '2'.repeat(32), allowedBytes: 100 }

test('a copy of a source whose file could not be made is made when the next chunk needs it', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'reelgate-copies-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const copies = await openSourceCopies(join(folder, 'cache'), 10 ** 9)
  const fetch = () =>
    copies.use(
      SOURCE,
      async ({ first, last }) => Buffer.alloc(last - first + 1, 7),
      async (copy) => {
        await copy.fetch({ first: 0, last: 99 })
        return readFile(copy.path)
      },
    )
  await rm(join(folder, 'cache'), { recursive: true })
  await expect(fetch()).rejects.toThrow('ENOENT')
  await mkdir(join(folder, 'cache'))
  expect(await fetch()).toEqual(Buffer.alloc(100, 7))
})
