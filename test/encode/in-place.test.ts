import { mkdtemp, open, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { collect } from '../../src/sandbox/child-process.ts'
import type { SealedSource } from '../../src/sandbox/media-run.ts'
import { runMedia } from '../../src/sandbox/run.ts'
import { BlobLost } from '../../src/storage/blob-store.ts'
import { fileOf } from './sealed-source.ts'
import { ffmpeg, openDefaultSandbox, seal, withoutBubblewrap } from './videos.ts'

// Sources that are too large for a copy are read where they are, in blocks, by seeks.

const BLOCK_BYTES = 2 ** 20

let source: SealedSource
beforeAll(async () => {
  const folder = await mkdtemp(join(tmpdir(), 'reelgate-in-place-'))
  source = await makeSource(folder)
  return () => rm(folder, { recursive: true })
})

test.for(['in bubblewrap', 'without it'])(
  'F-262: ffmpeg reads a source in place as it reads a copy, %s, and no more of it than it needs',
  async (where, { skip }) => {
    const sandbox = await openDefaultSandbox()
    if (where === 'in bubblewrap' && !sandbox.bubblewrap) skip()
    const { remote, read } = inPlace(source)
    const used = where === 'in bubblewrap' ? sandbox : withoutBubblewrap(sandbox)
    expect(await hashFrames(used, remote)).toEqual(await hashFrames(used, source))
    expect(read.size).toBeLessThan(source.sizeBytes / BLOCK_BYTES / 2)
    expect(await hashFrames(used, { ...remote }, { isPiped: true, inputArgs: [] })).toEqual(
      await hashFrames(used, source, { inputArgs: [] }),
    )
  },
)

test('F-263: a source that cannot be read to its end fails the run with that reason, also where ffmpeg takes it for the end of the file', async () => {
  const sandbox = await openDefaultSandbox()
  const lost = new BlobLost('its object is missing')
  const { remote } = inPlace(source, (number) => {
    if (number > 4 && number < 9) throw lost
  })
  await expect(hashFrames(sandbox, remote, { inputArgs: [] })).rejects.toBe(lost)
  await expect(hashFrames(sandbox, remote, { inputArgs: [], isPiped: true })).rejects.toBe(lost)
})

/** Frames as they are, so that a second of them is larger than a block, and the index at the end. Half of it is more than sockets hold. */
async function makeSource(folder: string): Promise<SealedSource> {
  const file = join(folder, 'video.avi')
  await ffmpeg('-f', 'lavfi', '-i', 'testsrc=s=320x240:r=25:d=20', '-pix_fmt', 'yuv420p', '-c:v', 'rawvideo', file)
  return seal(file, folder)
}

/** @param readBlock may throw */
function inPlace(source: SealedSource, readBlock: (number: number) => void = () => undefined) {
  const read = new Set<number>()
  const openInPlace = async () => {
    const file = await open(await fileOf(source))
    return {
      sizeBytes: (await file.stat()).size,
      async read(number: number) {
        readBlock(number)
        read.add(number)
        const block = Buffer.alloc(BLOCK_BYTES)
        const { bytesRead } = await file.read(block, 0, BLOCK_BYTES, number * BLOCK_BYTES)
        return block.subarray(0, bytesRead)
      },
      [Symbol.asyncDispose]: () => file.close(),
    }
  }
  return { remote: { ...source, openInPlace }, read }
}

/** Of two seconds near the end, unless options say. */
async function hashFrames(
  sandbox: Parameters<typeof runMedia>[0],
  source: SealedSource,
  options: { isPiped?: boolean; inputArgs?: string[] } = {},
) {
  const output = collect(100_000)
  const { exitCode } = await runMedia(sandbox, {
    ...{ tool: 'ffmpeg', source, inputArgs: ['-ss', '18'], limits: { cpuS: 20, wallS: 60 } },
    ...{ outputArgs: ['-an', '-c', 'copy', '-f', 'framemd5', 'pipe:1'], stdout: output.reader },
    ...options,
  })
  return { exitCode, frames: output.bytes().toString() }
}
