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
  /** As a client does: the request of a connection that was cut off may be read later than the one that asks for the offset. */
  const send = async (endOf: (at: number) => number): Promise<number> => {
    const at = await tus.offsetWhenFree(address)
    expect(at).toBeGreaterThanOrEqual(acknowledged)
    const { status } = await tus.patch(address, at, file.subarray(at, endOf(at)))
    if (status === 204) return endOf(at)
    expect([409, 423]).toContain(status)
    return send(endOf)
  }
  for (let cut = 0; cut < CUTS; cut++) {
    const at = await tus.offsetWhenFree(address)
    expect(at, `cut ${cut}`).toBeGreaterThanOrEqual(acknowledged)
    acknowledged = at
    const partBytes = Math.floor(chance.between(1, 30_000))
    if (chance.next() < 0.5) acknowledged = await send((from) => from + partBytes)
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
  await send(() => file.length)
  expect(sha256(await getStoredSource(reelgate, videoId).clear())).toBe(sha256(file))
  expect(reelgate.output()).not.toMatch(/"level":[56]0/)
  await reelgate.kill()
  expect(await examine(reelgate, memory)).toEqual({ breaches: [], orphans: [] })
}, 300_000)
