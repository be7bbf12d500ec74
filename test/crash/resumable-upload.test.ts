import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { expect, test } from 'vitest'
import { getStoredSource } from '../data-folder.ts'
import { createTusClient } from '../ingest/tus-client.ts'
import { startReelgate } from '../reelgate.ts'
import { newChance, rounds } from '../seeded-random.ts'
import { examine, newMemory } from './inspect-data-folder.ts'

const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')

const CUTS = rounds(4, 60)
test(`X28: a file that is cut off at random places, by its connection, by kill -9 or SIGTERM of the server, is whole after each resumption (${CUTS} cuts)`, async () => {
  const chance = newChance('cuts of resumable uploads')
  const reelgate = await startReelgate()
  const tus = createTusClient(reelgate.owner)
  const file = randomBytes(CUTS * 100_000)
  const { address, videoId } = await tus.create(file.length)
  const memory = newMemory()
  let acknowledged = 0
  const cuts = {
    connection: async () => undefined,
    kill: () => reelgate.kill(),
    stop: () => reelgate.stop(),
  }
  const ways = Object.values(cuts)
  for (let cut = 0; cut < CUTS; cut++) {
    const at = await tus.offsetWhenFree(address)
    expect(at, `cut ${cut}`).toBeGreaterThanOrEqual(acknowledged)
    acknowledged = at
    if (chance.next() < 0.5) {
      const end = at + Math.floor(chance.between(1, 30_000))
      expect((await tus.patch(address, at, file.subarray(at, end))).status).toBe(204)
      acknowledged = end
    }
    const bytes = file.subarray(acknowledged, acknowledged + Math.floor(chance.between(0, 60_000)))
    const socket = await tus.beginPart(address, acknowledged, file.length - acknowledged, bytes)
    const way = ways[cut % ways.length]
    await way?.()
    socket.resetAndDestroy()
    if (!socket.closed) await once(socket, 'close')
    if (way === cuts.connection) continue
    expect((await examine(reelgate, memory)).breaches, `cut ${cut}`).toEqual([])
    await reelgate.restart()
  }
  const last = await tus.offsetWhenFree(address)
  expect((await tus.patch(address, last, file.subarray(last))).status).toBe(204)
  expect(sha256(await getStoredSource(reelgate, videoId).clear())).toBe(sha256(file))
  expect(reelgate.output()).not.toMatch(/"level":[56]0/)
  await reelgate.kill()
  expect(await examine(reelgate, memory)).toEqual({ breaches: [], orphans: [] })
}, 300_000)
