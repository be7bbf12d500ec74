import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
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
