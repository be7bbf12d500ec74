import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { readAhead } from '../../src/storage/s3/parts.ts'
import { openSpooled } from '../../src/storage/s3/spool.ts'
import { newFolder } from '../pipeline/videos.ts'

test('bytes that wait to be sent are read in memory that is used again, after two more blocks were read', async () => {
  const bytes = randomBytes(2_500_000)
  await using spooled = openSpooled(await newFolder(), () => undefined)
  await spooled.add(bytes)
  const kept: Buffer[] = []
  const memories = new Set<ArrayBufferLike>()
  let at = 0
  for await (const block of spooled.blocks()) {
    memories.add(block.buffer)
    kept.push(block)
    at += block.length
    const held = Buffer.concat(kept.slice(-3))
    expect(held.equals(bytes.subarray(at - held.length, at))).toBe(true)
  }
  expect(at).toBe(bytes.length)
  expect(memories.size).toBe(2) // what was read, and what is not in the file yet
})

test('a piece is asked for while the one before it is used, which does not change meanwhile; what it throws comes in its turn', async () => {
  const memory = Buffer.alloc(1000)
  let asked = 0
  async function* pieces() {
    for (const sizeBytes of [10, 1000, 500]) {
      asked++
      yield memory.subarray(0, sizeBytes).fill(asked)
    }
    asked++
    throw new Error('broken off')
  }
  const used: Buffer[] = []
  const using = (async () => {
    for await (const piece of readAhead(pieces())) {
      used.push(Buffer.from(piece))
      await expect.poll(() => asked).toBe(used.length + 1)
      expect(piece.equals(used.at(-1) ?? piece.subarray(1))).toBe(true)
    }
  })()
  await expect(using).rejects.toThrow('broken off')
  expect(used).toEqual([Buffer.alloc(10, 1), Buffer.alloc(1000, 2), Buffer.alloc(500, 3)])
})
