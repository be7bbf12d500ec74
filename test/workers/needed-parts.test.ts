import { mkdtemp, open, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { encodeVideoChunk } from '../../src/encode/chunk.ts'
import type { SealedSource } from '../../src/sandbox/media-run.ts'
import { fetchParts, NotEnoughAllowed } from '../../src/workers/client/needed-parts.ts'
import { openSourceCopies } from '../../src/workers/client/source-copies.ts'
import type { TaskBody } from '../../src/workers/protocol.ts'
import { fileOf } from '../encode/sealed-source.ts'
import { ffmpeg, newSink, openVideo } from '../encode/videos.ts'
import { makeVideo } from '../videos.ts'

// Which parts of a large MP4 a worker fetches for a chunk.

test('J10: a chunk in the middle of a large MP4 comes out of a few parts of it as out of the whole', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'reelgate-parts-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  // Noise, so that it is large: 20 s, with a key frame every 2 s, and the index at the end.
  const file = join(folder, 'large.mp4')
  const noise = ['-f', 'lavfi', '-i', 'color=gray:s=640x360:r=25:d=20,noise=alls=60:allf=t', '-f', 'lavfi', '-i', 'sine=d=20']
  await ffmpeg(
    ...noise,
    '-c:v',
    'libx264',
    '-preset',
    'ultrafast',
    '-b:v',
    '14M',
    '-g',
    '50',
    '-pix_fmt',
    'yuv420p',
    '-c:a',
    'aac',
    file,
  )
  const { sandbox, source, plan } = await openVideo(file)
  const sealedFile = await fileOf(source)
  const sealedBytes = (await stat(sealedFile)).size
  const chunk = { kind: 'video', firstSegment: 3, segmentCount: 1, decodesFromStart: false } as const
  const task: TaskBody = {
    ...{ id: '0'.repeat(32), chunk, threads: 1, plan, gains: [] },
    source: {
      sizeBytes: source.sizeBytes,
      sealedBytes,
      keyHex: source.keyHex,
      ivHex: source.ivHex,
      allowedBytes: sealedBytes - 1,
    },
  }
  const copies = await openSourceCopies(join(folder, 'cache'), 10 ** 9)
  let fetchedBytes = 0
  const read = async ({ first, last }: { first: number; last: number }) => {
    await using sealed = await open(sealedFile)
    const bytes = Buffer.alloc(last - first + 1)
    await sealed.read(bytes, 0, bytes.length, first)
    fetchedBytes += bytes.length
    return bytes
  }
  const [whole, ofParts] = [newSink(), newSink()]
  const request = { sandbox, plan, chunk, threads: 1 as const }
  await encodeVideoChunk({ ...request, source }, whole)
  await copies.use(task.source, read, async (copy) => {
    await fetchParts(copy, task)
    const sealed: SealedSource = { ...source, withLocalCopy: (use) => use(copy.path) }
    await encodeVideoChunk({ ...request, source: sealed }, ofParts)
    expect((await readFile(copy.path)).length).toBe(sealedBytes)
  })
  expect(ofParts.segments).toEqual(whole.segments)
  expect(fetchedBytes).toBeLessThan(0.7 * sealedBytes)
  await copies.close()
})

test('J10: a file that is no MP4 is fetched whole or not at all', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'reelgate-parts-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const { source, plan } = await openVideo(await makeVideo({ seconds: 2 }))
  const copies = await openSourceCopies(join(folder, 'cache'), 10 ** 9)
  const chunk = { kind: 'video', firstSegment: 0, segmentCount: 1, decodesFromStart: false } as const
  const body = { sizeBytes: 4096, sealedBytes: 4112, keyHex: source.keyHex, ivHex: source.ivHex, allowedBytes: 4111 }
  const task: TaskBody = { ...{ id: '0'.repeat(32), chunk, threads: 1, plan, gains: [] }, source: body }
  const zeros = async ({ first, last }: { first: number; last: number }) => Buffer.alloc(last - first + 1)
  await expect(copies.use(body, zeros, (copy) => fetchParts(copy, task))).rejects.toBeInstanceOf(NotEnoughAllowed)
  await copies.close()
})
