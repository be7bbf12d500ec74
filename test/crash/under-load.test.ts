import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { expect } from 'vitest'
import type { Cluster } from '../postgres/cluster.ts'
import { startPostgres } from '../postgres.ts'
import { startReelgate } from '../reelgate.ts'
import { readRows } from '../rows.ts'
import { sampledTests, sampleOf } from '../sample.ts'
import { type Chance, newChance, rounds } from '../seeded-random.ts'
import { BACKUPS, checkBackupsUnderLoad } from './backup-under-load.ts'
import { CLIENTS, type CrashTest, haveSomeReady, newCrashTest, startCrashTest, untilBusy } from './crash-harness.ts'

const { test, draw } = sampledTests('kills and backups under load', 1)

const MAIN = join(import.meta.dirname, '../../bin/main.js')

const KILLS = rounds(1, 30)
test(`I1–I6, I8–I10: nothing acknowledged is lost, nothing half done, when the server of eight clients is killed (kill -9, ${KILLS} times)`, async () => {
  const chance = newChance('kill -9 under mixed calls')
  const crashTest = await startCrashTest(chance, 'kills')
  await haveSomeReady(crashTest)
  for (let round = 1; round <= KILLS; round++) {
    const calling = crashTest.runClients(CLIENTS)
    await Promise.race([untilBusy(crashTest, chance), calling])
    await crashTest.reelgate.kill()
    await calling
    if (chance.next() < 0.3) await killAStart(crashTest, chance)
    expect(await crashTest.afterwards(), `round ${round}`).toEqual([])
  }
  expect(await crashTest.settled()).toEqual([])
  process.stderr.write(`${KILLS} kills, ${crashTest.history.calls} calls, ${crashTest.world.videos.size} videos at the end\n`)
}, 3_600_000)

const RESTARTS = rounds(1, 20)
test(`F-10: nor when it is restarted under load again and again, by kill -9 or SIGTERM (${RESTARTS} times)`, async () => {
  const chance = newChance('restarts under load')
  const crashTest = await startCrashTest(chance, 'restarts')
  await haveSomeReady(crashTest)
  for (let round = 1; round <= RESTARTS; round++) {
    const calling = crashTest.runClients(CLIENTS)
    await Promise.race([untilBusy(crashTest, chance), calling])
    if (round % 2) expect(await crashTest.reelgate.stop(), 'exit code after SIGTERM').toBe(0)
    else await crashTest.reelgate.kill()
    await calling
    expect(await crashTest.afterwards(), `round ${round}`).toEqual([])
  }
  expect(await crashTest.settled()).toEqual([])
  process.stderr.write(`${RESTARTS} restarts, ${crashTest.history.calls} calls\n`)
}, 3_600_000)

test.each(['sqlite', 'postgres'] as const)(
  `F-18: each of ${BACKUPS} backups of the server of eight clients, on %s, is whole, whatever is killed meanwhile: restored, it has all that was acknowledged before, and its videos play`,
  checkBackupsUnderLoad,
  3_600_000,
)

/** What is killed, and what must hold once each client has met with it. While PostgreSQL is away the service stays up, and it resumes by itself. */
const VICTIMS: Record<string, (crashTest: CrashTest, postgres: Cluster, calling: Promise<void>) => Promise<string[]>> = {
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
  /** One that is killed takes all others with it: PostgreSQL no longer trusts its memory and restarts. */
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
  const kills = sampleOf('what is killed', Object.entries(VICTIMS), 1)
  for (let turn = 0; turn < TURNS; turn++) {
    const [victim, kill] = kills[turn % kills.length] ?? []
    const calling = crashTest.runClients(CLIENTS)
    await Promise.race([untilBusy(crashTest, chance), calling])
    expect(await kill?.(crashTest, postgres, calling), `turn ${turn}: ${victim}`).toEqual([])
  }
  expect(await crashTest.settled()).toEqual([])
  process.stderr.write(`${TURNS} kills, ${crashTest.history.calls} calls, ${crashTest.world.videos.size} videos at the end\n`)
}, 3_600_000)

/** A start that is killed in its turn, while it mends what the kill before it left. */
async function killAStart({ reelgate }: CrashTest, chance: Chance): Promise<void> {
  const env = { PATH: process.env.PATH ?? '', ...reelgate.env, PORT: '0' }
  const child = spawn(process.execPath, [MAIN, 'serve'], { env, stdio: 'ignore' })
  const ended = new Promise((resolve) => child.once('exit', resolve))
  await pause(chance.between(100, 900))
  child.kill('SIGKILL')
  await ended
}

draw()
