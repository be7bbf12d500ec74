import { execFile } from 'node:child_process'
import { createWriteStream } from 'node:fs'
import { chmod, link, mkdir, mkdtemp, readdir, readFile, rm, stat, truncate, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { archiveEntries } from '../../src/installation/backup/archive.ts'

// The archive of a backup, as the `tar` of any system unpacks it.

const run = promisify(execFile)

async function newFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'reelgate-archive-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return folder
}

test('F-98: every name, size, mode and time of a backup is in its archive, and nothing that it was not asked for', async () => {
  const folder = await newFolder()
  const long = `media/${'long-'.repeat(30)}/${'name-'.repeat(40)}`
  await mkdir(join(folder, long, '..'), { recursive: true })
  await mkdir(join(folder, 'media/empty'))
  await writeFile(join(folder, long), Buffer.alloc(100_001, 7))
  await writeFile(join(folder, 'media/nothing ü'), '')
  await link(join(folder, long), join(folder, 'media/same')) // as most files of a backup are elsewhere, too
  await chmod(join(folder, long), 0o440)
  await utimes(join(folder, long), 1_000_000_000, 1_700_000_000)
  await writeFile(join(folder, 'another'), '')
  const unpacked = await unpack(archiveEntries(folder, ['media']))
  expect((await readdir(unpacked, { recursive: true })).sort()).toEqual(
    (await readdir(folder, { recursive: true })).filter((name) => name !== 'another').sort(),
  )
  const found = await stat(join(unpacked, long))
  expect([found.mode & 0o777, found.mtimeMs]).toEqual([0o440, 1_700_000_000_000])
  for (const name of [long, 'media/same']) expect(await readFile(join(unpacked, name))).toEqual(Buffer.alloc(100_001, 7))
})

async function unpack(archive: ReadableStream<Uint8Array>): Promise<string> {
  const folder = await newFolder()
  await pipeline(archive, createWriteStream(join(folder, 'archive.tar')))
  await mkdir(join(folder, 'unpacked'))
  await run('tar', ['--extract', '--file', join(folder, 'archive.tar'), '--directory', join(folder, 'unpacked')])
  return join(folder, 'unpacked')
}

test('F-98: an archive is written in constant memory, however large a file is', async () => {
  const folder = await newFolder()
  await writeFile(join(folder, 'large'), '')
  await truncate(join(folder, 'large'), 400e6)
  // What is held is measured, not what has not been collected yet: that depends on how busy the machine is.
  const program = `
    const { archiveEntries } = await import(${JSON.stringify(new URL('../../src/installation/backup/archive.ts', import.meta.url).href)})
    let [sizeBytes, maxHeldBytes, nextBytes] = [0, 0, 0]
    for await (const chunk of archiveEntries(${JSON.stringify(folder)}, ['large'])) {
      sizeBytes += chunk.length
      if (sizeBytes < nextBytes) continue
      nextBytes += 20e6
      gc()
      maxHeldBytes = Math.max(maxHeldBytes, process.memoryUsage().arrayBuffers)
    }
    console.log(JSON.stringify({ sizeBytes, maxHeldBytes }))`
  const { stdout } = await run(process.execPath, ['--expose-gc', '--input-type=module', '--eval', program])
  const { sizeBytes, maxHeldBytes } = JSON.parse(stdout)
  expect(sizeBytes).toBeGreaterThan(400e6)
  expect(maxHeldBytes).toBeLessThan(40e6)
})

test('F-98: an archive fails when one of its files is not there any more', async () => {
  const folder = await newFolder()
  await expect(pipeline(archiveEntries(folder, ['gone']), createWriteStream('/dev/null'))).rejects.toThrow(/ENOENT/)
})
