import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { expect } from 'vitest'
import { sampledTests } from '../sample.ts'
import { type Chance, newChance, rounds } from '../seeded-random.ts'
import { CLIENTS, haveSomeReady, type Ordeal, startOrdeal, untilBusy } from './crash-harness.ts'

const { test, draw } = sampledTests('kills under load', 1)

const MAIN = join(import.meta.dirname, '../../bin/main.js')

const KILLS = rounds(1, 30)
test(`I1–I6, I8–I10: nothing acknowledged is lost, nothing half done, when the server of eight clients is killed (kill -9, ${KILLS} times)`, async () => {
  const chance = newChance('kill -9 under mixed calls')
  const ordeal = await startOrdeal(chance, 'kills')
  await haveSomeReady(ordeal)
  for (let round = 1; round <= KILLS; round++) {
    const calling = ordeal.clients.run(CLIENTS)
    await Promise.race([untilBusy(ordeal, chance), calling])
    await ordeal.reelgate.kill()
    await calling
    if (chance.next() < 0.3) await killAStart(ordeal, chance)
    expect(await ordeal.afterwards(), `round ${round}`).toEqual([])
  }
  expect(await ordeal.settled()).toEqual([])
  process.stderr.write(`${KILLS} kills, ${ordeal.history.calls} calls, ${ordeal.world.videos.size} videos at the end\n`)
}, 3_600_000)

const RESTARTS = rounds(1, 20)
test(`F-10: nor when it is restarted under load again and again, by kill -9 or SIGTERM (${RESTARTS} times)`, async () => {
  const chance = newChance('restarts under load')
  const ordeal = await startOrdeal(chance, 'restarts')
  await haveSomeReady(ordeal)
  for (let round = 1; round <= RESTARTS; round++) {
    const calling = ordeal.clients.run(CLIENTS)
    await Promise.race([untilBusy(ordeal, chance), calling])
    if (round % 2) expect(await ordeal.reelgate.stop(), 'exit code after SIGTERM').toBe(0)
    else await ordeal.reelgate.kill()
    await calling
    expect(await ordeal.afterwards(), `round ${round}`).toEqual([])
  }
  expect(await ordeal.settled()).toEqual([])
  process.stderr.write(`${RESTARTS} restarts, ${ordeal.history.calls} calls\n`)
}, 3_600_000)

/** A start that is killed in its turn, while it mends what the kill before it left. */
async function killAStart({ reelgate }: Ordeal, chance: Chance): Promise<void> {
  const env = { PATH: process.env.PATH ?? '', ...reelgate.env, PORT: '0' }
  const child = spawn(process.execPath, [MAIN, 'serve'], { env, stdio: 'ignore' })
  const ended = new Promise((resolve) => child.once('exit', resolve))
  await pause(chance.between(100, 900))
  child.kill('SIGKILL')
  await ended
}

draw()
