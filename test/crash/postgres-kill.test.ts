import { expect, test } from 'vitest'
import type { Cluster } from '../postgres/cluster.ts'
import { startPostgres } from '../postgres.ts'
import { startReelgate } from '../reelgate.ts'
import { readRows } from '../rows.ts'
import { sampleOf } from '../sample.ts'
import { newChance, rounds } from '../seeded-random.ts'
import { CLIENTS, type CrashTest, haveSomeReady, newCrashTest, untilBusy } from './crash-harness.ts'

/** What is killed, and what must hold once each client has met with it. While PostgreSQL is away the service stays up, and it goes on by itself. */
const KILLS: Record<string, (crashTest: CrashTest, postgres: Cluster, calling: Promise<void>) => Promise<string[]>> = {
  async postgres({ goOn }, postgres, calling) {
    await postgres.crash()
    await calling
    await postgres.start()
    return goOn()
  },
  async service({ reelgate, afterwards }, _, calling) {
    await reelgate.kill()
    await calling
    return afterwards()
  },
  /** One that is killed takes all others with it: PostgreSQL trusts its memory no more and begins anew. */
  async backend({ reelgate, goOn }, _, calling) {
    const [backend] = readRows<{ pid: number }>(
      reelgate,
      "select pid from pg_stat_activity where application_name = 'reelgate' order by random()",
    )
    if (backend) process.kill(backend.pid, 'SIGKILL')
    await calling
    return goOn()
  },
  async both({ reelgate, afterwards }, postgres, calling) {
    await Promise.all([postgres.crash(), reelgate.kill()])
    await calling
    await postgres.start()
    return afterwards()
  },
}

const TURNS = rounds(1, 20)
test(`I1–I6, I8–I10: nothing acknowledged is lost, nothing half done, when PostgreSQL and the server of eight clients are killed in turns (kill -9, ${TURNS} times)`, async () => {
  const chance = newChance('kill -9 of PostgreSQL and of the service')
  const postgres = await startPostgres({ durable: true })
  const crashTest = await newCrashTest(await startReelgate({ database: postgres }), chance, 'postgres-kills')
  await haveSomeReady(crashTest)
  const kills = sampleOf('what is killed', Object.entries(KILLS), 1)
  for (let turn = 0; turn < TURNS; turn++) {
    const [victim, kill] = kills[turn % kills.length] ?? []
    const calling = crashTest.runClients(CLIENTS)
    await Promise.race([untilBusy(crashTest, chance), calling])
    expect(await kill?.(crashTest, postgres, calling), `turn ${turn}: ${victim}`).toEqual([])
  }
  expect(await crashTest.settled()).toEqual([])
  process.stderr.write(`${TURNS} kills, ${crashTest.history.calls} calls, ${crashTest.world.videos.size} videos at the end\n`)
}, 3_600_000)
