import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Reelgate, startSharedReelgate } from '../reelgate.ts'
import { readRows } from '../rows.ts'
import { sampleOf } from '../sample.ts'
import { newChance, rounds } from '../seeded-random.ts'
import { type CrashPoint, killAt, watch } from './strace.ts'

// A call under an Idempotency-Key whose server is killed before each of its system calls: sent again it has had one effect, and if
// it was answered before, the answer is the same.

let reelgate: Reelgate & { remove(): Promise<void> }
let video: string
const chance = newChance('keyed calls')
beforeAll(async () => {
  reelgate = await startSharedReelgate({ env: { UV_THREADPOOL_SIZE: '1' } })
  video = (await reelgate.owner.credentials('A video')).videoId
})
afterAll(() => reelgate.remove())

/** The table that the call adds a row to, and the call. */
const CALLS: Record<string, { table: string; send(key: string): Promise<Response> }> = {
  'upload credentials': {
    table: 'video',
    send: (key) => reelgate.owner.call('PUT', '/api/videos?title=Once', { headers: { 'Idempotency-Key': key } }),
  },
  'an OTP': {
    table: 'otp',
    send: (key) =>
      reelgate.owner.call('POST', `/api/videos/${video}/otp`, { body: { userId: 'ann' }, headers: { 'Idempotency-Key': key } }),
  },
}

test.each(sampleOf('keyed calls', Object.entries(CALLS), 1))(
  'F-02, I9: %s under a key, killed and sent again, happens once',
  async (_, { table, send }) => {
    const count = () => readRows<{ n: number }>(reelgate, `select count(*) as n from ${table}`)[0]?.n ?? 0
    const answered = async (key: string) => (await send(key)).text().catch(() => undefined)

    const watched = await watch(reelgate.pid, join(reelgate.dataDir, '..', 'places'))
    await answered(randomUUID())
    const points = await watched.points()
    let [kills, unanswered] = [0, 0]
    for (const point of choose(points)) {
      const key = randomUUID()
      const before = count()
      const attached = await killAt(reelgate.pid, point)
      const first = await answered(key).catch(() => undefined)
      await attached.detach()
      kills += Number(!(await isServing()))
      unanswered += Number(first === undefined)
      await reelgate.kill()
      await reelgate.restart()
      const where = `killed before ${point.syscall} ${point.nth}`
      const again = await answered(key)
      if (first !== undefined) expect(again, where).toBe(first)
      expect(await answered(key), where).toBe(again)
      expect(count(), where).toBe(before + 1)
    }
    expect(unanswered).toBeGreaterThan(0)
    process.stderr.write(`${points.length} places, ${kills} kills, ${unanswered} without an answer\n`)
  },
  600_000,
)

/** All, or one of each system call. */
function choose(points: readonly CrashPoint[]): CrashPoint[] {
  if (rounds(0, 1)) return [...points]
  const kinds = [...Map.groupBy(points, ({ syscall }) => syscall).values()]
  return kinds.flatMap((kind) => kind[Math.floor(chance.between(0, kind.length))] ?? [])
}

async function isServing(): Promise<boolean> {
  return fetch(`${reelgate.url}/healthz`).then(
    ({ ok }) => ok,
    () => false,
  )
}
