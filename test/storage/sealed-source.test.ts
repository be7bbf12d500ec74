import { createHash, randomBytes } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdtemp, readFile, rm, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import fc from 'fast-check'
import { expect, onTestFinished, test } from 'vitest'
import {
  createFileHash,
  isSealIntact,
  newSeal,
  openSealedBlocks,
  openSealing,
  type Seal,
  type Sealing,
  SealingStream,
} from '../../src/crypto/sealed-file.ts'
import { openSandbox } from '../../src/sandbox/bubblewrap.ts'
import { collect } from '../../src/sandbox/child-process.ts'
import { runMedia } from '../../src/sandbox/run.ts'
import { openSeal } from '../data-folder.ts'
import { sealedSource } from '../encode/sealed-source.ts'
import { ffmpeg } from '../encode/videos.ts'
import { footage } from '../footage.ts'
import { rounds } from '../seeded-random.ts'

const MIB = 2 ** 20

test('a sealed source opens to the bytes that were sealed, however they came in, and knows their hash and size', async () => {
  const shapes = fc.array(fc.integer({ min: 0, max: 70_000 }), { maxLength: 20 })
  await fc.assert(
    fc.asyncProperty(shapes, async (lengths) => {
      const parts = lengths.map((length) => randomBytes(length))
      const clear = Buffer.concat(parts)
      const { seal, sealing, sealed } = await sealBytes(parts)
      expect(openSeal(sealed, seal)).toEqual(clear)
      expect(sealing.sealed).toMatchObject({ sizeBytes: clear.length, sha256: hashOf(clear) })
    }),
    { numRuns: rounds(10, 200) },
  )
})

test('F-263: a block of a sealed file is given only as it was sealed, the last one of any length included', async () => {
  for (const sizeBytes of [2 * MIB, 2 * MIB + 5, 3 * MIB - 1]) {
    const { seal, sealing, sealed } = await sealBytes([randomBytes(sizeBytes)])
    const { macs } = sealing.sealed ?? expect.fail()
    const read = await openSealedBlocks({ read: async (into, at) => sealed.copy(into, 0, at) }, seal, macs)
    const numbers = Array.from({ length: Math.ceil(sealed.length / MIB) }, (_, number) => number)
    for (const number of numbers) expect(await read(number)).toEqual(sealed.subarray(number * MIB, (number + 1) * MIB))
    sealed.writeUInt8(sealed.readUInt8(MIB + 7) ^ 1, MIB + 7)
    expect((await Promise.all(numbers.map(read))).map((block) => block === undefined)).toEqual(
      numbers.map((number) => number === 1),
    )
  }
})

test('the hash of a file up to a MiB is its SHA-256; of a longer one that of its blocks, one after the other', () => {
  const sha256 = (...bytes: Buffer[]) => createHash('sha256').update(Buffer.concat(bytes)).digest()
  const [one, two, three] = [randomBytes(MIB), randomBytes(MIB), randomBytes(5)]
  expect(hashOf(Buffer.alloc(0))).toEqual(sha256())
  expect(hashOf(one)).toEqual(sha256(one))
  expect(hashOf(Buffer.concat([one, two, three]))).toEqual(sha256(sha256(sha256(one), sha256(two)), sha256(three)))
})

test('F-71: sealing that other processes continue after any byte gives what sealing in one pass gives; nothing is read back', async () => {
  const clear = randomBytes(3 * MIB + 12_345)
  const at = fc.oneof(fc.integer({ min: 0, max: clear.length }), fc.constantFrom(15, 16, MIB - 1, MIB, MIB + 3, 2 * MIB))
  const cuts = fc.record({ ends: fc.array(at, { maxLength: 6 }), pieceBytes: fc.integer({ min: 1, max: 2 * MIB }) })
  await fc.assert(
    fc.asyncProperty(cuts, async ({ ends, pieceBytes }) => {
      const seal = newSeal()
      let sealing = await openSealing(seal)
      const sealedParts: Buffer[] = []
      for (const end of [...ends.toSorted((a, b) => a - b), clear.length]) {
        const from = sealing.sizeBytes()
        sealing = await openSealing(seal, sealing.save())
        expect(sealing.sizeBytes()).toBe(from)
        const pieces = addInPieces(sealing, clear.subarray(from, end), Math.max(pieceBytes, Math.ceil(end / 1000)))
        sealedParts.push(...(await pieces), Buffer.from(await sealing.flush()))
        expect(sealing.sealedBytes()).toBe(Buffer.concat(sealedParts).length)
      }
      const { last, ...sealed } = await sealing.end()
      const whole = new SealingStream(seal)
      const wholeBytes = await buffer(Readable.from([clear]).pipe(whole))
      expect(sealed).toEqual(whole.sealed)
      expect(Buffer.concat([...sealedParts, last]).equals(wholeBytes)).toBe(true)
    }),
    { numRuns: rounds(10, 200) },
  )
})

test('what continues a sealing opens with the key of the file alone, for the bytes that it was saved for, and has no clear bytes in it', async () => {
  const seal = newSeal()
  const sealing = await openSealing(seal)
  const clear = randomBytes(2 * MIB + 100_001)
  await addTo([], sealing, clear)
  await sealing.flush()
  const { state } = sealing.save()
  for (let at = clear.length - 128; at + 8 <= clear.length; at += 8)
    expect(state.includes(clear.subarray(at, at + 8))).toBe(false)
  const [flipped, sizeBytes] = [Buffer.from(state), clear.length]
  flipped.writeUInt8(flipped.readUInt8(40) ^ 1, 40)
  for (const [key, saved] of [
    [newSeal(), { sizeBytes, state }],
    [seal, { sizeBytes: MIB, state }],
    [seal, { sizeBytes, state: flipped }],
  ] as const)
    await expect(openSealing(key, saved)).rejects.toThrow()
  await openSealing(seal, { sizeBytes, state })
})

test('nothing of the clear bytes is in the sealed file, and the same video sealed twice gives two ciphertexts', async () => {
  const clear = await readFile(footage.movieHello)
  const [one, two] = [await sealBytes([clear]), await sealBytes([clear])]
  for (let at = 0; at + 16 <= clear.length; at += 20_011) expect(one.sealed.includes(clear.subarray(at, at + 16))).toBe(false)
  expect(one.sealed.equals(two.sealed)).toBe(false)
})

test('a seal is intact until one bit of it changes, wherever that is', async () => {
  const folder = await newFolder()
  const { seal, sealing, sealed } = await sealBytes([randomBytes(3 * MIB + 12_345)])
  const { macs } = sealing.sealed
  const path = join(folder, 'video.sealed')
  await writeFile(path, sealed)
  expect(await isFileIntact(path, seal, macs)).toBe(true)
  const locations = fc.record({ at: fc.integer({ min: 0, max: sealed.length - 1 }), bit: fc.integer({ min: 0, max: 7 }) })
  const edges = [0, MIB - 1, MIB, 3 * MIB, sealed.length - 1].map((at): [{ at: number; bit: number }] => [{ at, bit: 0 }])
  await fc.assert(
    fc.asyncProperty(locations, async ({ at, bit }) => {
      const changed = Buffer.from(sealed)
      changed.writeUInt8(changed.readUInt8(at) ^ (1 << bit), at)
      await writeFile(path, changed)
      expect(await isFileIntact(path, seal, macs)).toBe(false)
    }),
    { numRuns: 40, examples: edges },
  )
})

test.each([
  { change: 'cut by a byte', changed: (sealed: Buffer) => sealed.subarray(0, -1) },
  { change: 'cut by a cipher block', changed: (sealed: Buffer) => sealed.subarray(0, -16) },
  { change: 'cut at a MiB', changed: (sealed: Buffer) => sealed.subarray(0, 2 * MIB) },
  { change: 'emptied', changed: () => Buffer.alloc(0) },
  { change: 'longer by a byte', changed: (sealed: Buffer) => Buffer.concat([sealed, Buffer.alloc(1)]) },
  {
    change: 'with two MiB exchanged',
    changed: (sealed: Buffer) =>
      Buffer.concat([sealed.subarray(MIB, 2 * MIB), sealed.subarray(0, MIB), sealed.subarray(2 * MIB)]),
  },
])('a seal that was $change is not intact', async ({ changed }) => {
  const { seal, sealing, sealed } = await sealBytes([randomBytes(2 * MIB + 500)])
  const path = join(await newFolder(), 'video.sealed')
  await writeFile(path, changed(sealed))
  expect(await isFileIntact(path, seal, sealing.sealed.macs)).toBe(false)
})

test('a file that fills its MiB exactly is intact, and not when its last MiB is gone', async () => {
  const { seal, sealing, sealed } = await sealBytes([randomBytes(2 * MIB - 16)])
  expect(sealed.length).toBe(2 * MIB)
  const path = join(await newFolder(), 'video.sealed')
  await writeFile(path, sealed)
  expect(await isFileIntact(path, seal, sealing.sealed.macs)).toBe(true)
  await truncate(path, MIB)
  expect(await isFileIntact(path, seal, sealing.sealed.macs)).toBe(false)
})

test('ffmpeg reads a sealed source with seeks: the same frames as from the clear file, from the start and from its middle', async () => {
  const sandbox = await openSandbox({ sandbox: 'weak' })
  const path = join(await newFolder(), 'video.sealed')
  for (const video of [footage.wannaworktogether, footage.movieHello]) {
    const clear = await readFile(video)
    const { seal, sealed } = await sealBytes([clear])
    await writeFile(path, sealed)
    const source = sealedSource(path, seal, clear.length)
    for (const seekS of ['0', '5.25']) {
      const videoRenditions = ['-map', '0:v:0', '-frames:v', '10', '-f', 'framemd5']
      const output = collect(MIB)
      const run = {
        inputArgs: ['-ss', seekS],
        outputArgs: [...videoRenditions, 'pipe:3'],
        pipes: [output.reader],
        limits: { cpuS: 30, wallS: 60 },
      }
      expect(await runMedia(sandbox, { tool: 'ffmpeg', source, ...run })).toMatchObject({ exitCode: 0, errorLines: 0 })
      const fromClear = await ffmpeg('-ss', seekS, '-i', video, ...videoRenditions, '-')
      expect(output.bytes().toString()).toBe(fromClear.toString())
      expect(fromClear.toString().match(/^0,.*/gm)).toHaveLength(10)
    }
  }
})

function hashOf(clear: Buffer): Buffer {
  const hash = createFileHash()
  hash.update(clear)
  return hash.digest()
}

async function addTo(sealed: Buffer[], sealing: Sealing, clear: Buffer): Promise<void> {
  for await (const bytes of sealing.add(clear)) sealed.push(Buffer.from(bytes))
}

async function addInPieces(sealing: Sealing, clear: Buffer, pieceBytes: number): Promise<Buffer[]> {
  const sealed: Buffer[] = []
  for (let at = 0; at < clear.length; at += pieceBytes) await addTo(sealed, sealing, clear.subarray(at, at + pieceBytes))
  return sealed
}

const isFileIntact = (path: string, seal: Seal, macs: Buffer) => isSealIntact(createReadStream(path), seal, macs)

async function sealBytes(parts: readonly Buffer[]) {
  const seal = newSeal()
  const sealing = new SealingStream(seal)
  const out: Buffer[] = []
  await pipeline(Readable.from(parts), sealing, async (bytes: AsyncIterable<Buffer>) => {
    for await (const part of bytes) out.push(part)
  })
  return { seal, sealing, sealed: Buffer.concat(out) }
}

async function newFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'reelgate-sealed-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  return folder
}
