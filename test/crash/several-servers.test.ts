import { setTimeout as pause } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { createOwner } from '../client.ts'
import { type Cluster as Machines, startCluster } from '../cluster/cluster.ts'
import { type Cluster as Postgres, throughSocket } from '../postgres/cluster.ts'
import { startPostgres } from '../postgres.ts'
import type { Reelgate } from '../reelgate.ts'
import { readRows } from '../rows.ts'
import { type ObjectStore, openObjectStore } from '../s3/radosgw.ts'
import { newBucketOf } from '../s3.ts'
import { drawSome } from '../sample.ts'
import { type Chance, newChance } from '../seeded-random.ts'
import { createViewer } from '../viewer.ts'
import { CLIENTS, type CrashTest, haveSomeReady, newCrashTest, untilBusy } from './crash-harness.ts'
import { examineBucket } from './examine-bucket.ts'

// Two servers on machines of their own behind nginx, with a worker, PostgreSQL and a bucket: any part of it is lost, again and again.

const VIA_SERVERS = { REELGATE_MEDIA_DELIVERY: 'server' }

/** `REELGATE_TEST_MINUTES` sets how long parts are lost. */
const MINUTES = Number(process.env.REELGATE_TEST_MINUTES ?? 30)

/** A way in which a part is lost, and how it comes back. */
type Loss = { how: string; lose(): unknown; mend(): unknown }

/** By the name of the part: at most one of its ways at a time. */
function lossesIn(machines: Machines, postgres: Postgres, store: ObjectStore, databaseUrl: string): Record<string, Loss[]> {
  const killed = (name: string): Loss => ({
    how: 'killed',
    lose: () => machines.program(name).kill(),
    mend: () => machines.program(name).start(),
  })
  const suspended = (name: string): Loss => ({
    how: 'suspended',
    lose: () => machines.program(name).setFrozen(true),
    mend: () => machines.program(name).setFrozen(false),
  })
  const cutOff = (name: string, from: string): Loss => ({
    how: `cut off from the ${from}`,
    lose: () => machines.setCut(name, from, true),
    mend: () => machines.setCut(name, from, false),
  })
  const server = (name: string) => [
    ...[killed(name), suspended(name)],
    ...['database', 'store', 'proxy'].map((from) => cutOff(name, from)),
  ]
  return {
    left: server('left'),
    right: server('right'),
    worker: [killed('worker'), suspended('worker'), cutOff('worker', 'proxy')],
    proxy: [killed('proxy')],
    database: [
      { how: 'killed', lose: () => postgres.crash(), mend: () => postgres.start() },
      { how: 'restarted', lose: () => postgres.stop(), mend: () => postgres.start() },
      // One that is killed takes all others with it: PostgreSQL recovers by itself.
      { how: 'one of its processes killed', lose: () => killBackend(databaseUrl), mend: () => undefined },
    ],
    store: [{ how: 'killed', lose: () => store.kill(), mend: () => store.start() }],
  }
}

function killBackend(databaseUrl: string): void {
  const sql = "select pid from pg_stat_activity where application_name = 'reelgate' order by random() limit 1"
  for (const { pid } of readRows<{ pid: number }>({ dataDir: '', databaseUrl }, sql)) process.kill(pid, 'SIGKILL')
}

/** The installation as clients see it, with its rows. */
function handlesThrough(machines: Machines, databaseUrl: string): Reelgate {
  const left = machines.server('left')
  const outputs = ['left', 'right'].map((name) => machines.program(name))
  const refuse = () => {
    throw new Error('the parts of a cluster are ended one by one')
  }
  return {
    ...left,
    ...{ url: machines.url, owner: createOwner(machines.url, left.owner.apiKey), videoId: '', pid: 0, databaseUrl },
    newViewer: () => createViewer(machines.url),
    output: () => outputs.map((program) => program.output()).join('\n'),
    ...{ stop: refuse, kill: refuse, restart: refuse },
  }
}

test(
  `F-341: nothing acknowledged is lost, nothing half done, while any parts of two servers with their worker, database and bucket are lost (${MINUTES} min)`,
  async () => {
    const chance = newChance('parts of several servers')
    const postgres = await startPostgres({ durable: true })
    const store = await openObjectStore()
    onTestFinished(() => store.remove())
    const machines = await startCluster([
      { kind: 'database', name: 'database', of: postgres },
      { kind: 'store', name: 'store', of: store },
      { kind: 'server', name: 'left', env: { REELGATE_SERVER_NAME: 'left', ...VIA_SERVERS } },
      { kind: 'server', name: 'right', env: { REELGATE_SERVER_NAME: 'right', ...VIA_SERVERS } },
      { kind: 'proxy', name: 'proxy' },
      { kind: 'worker', name: 'worker', isTrusted: true },
    ])
    onTestFinished(() => machines.end())
    const databaseUrl = throughSocket(machines.server('left').databaseUrl ?? '', postgres)
    const crashTest = await newCrashTest(handlesThrough(machines, databaseUrl), chance, 'several-servers')
    await haveSomeReady(crashTest)

    const losses = Object.entries(lossesIn(machines, postgres, store, databaseUrl))
    const counts = new Map<string, number>()
    const breaches: string[] = []
    const endsAtMs = performance.now() + MINUTES * 60_000
    for (let round = 1; performance.now() < endsAtMs; round++) {
      const lost = drawSome(losses, chance.next() < 0.7 ? 1 : 2, chance).flatMap(([part, ways]) => {
        const loss = ways[Math.floor(chance.between(0, ways.length))]
        return loss ? [{ ...loss, what: `${part} ${loss.how}` }] : []
      })
      for (const { what } of lost) counts.set(what, (counts.get(what) ?? 0) + 1)
      const what = lost.map((each) => each.what).join(', ')
      process.stderr.write(`${new Date().toISOString()} round ${round}: ${what}\n`)
      const found = await loseSome(crashTest, chance, lost)
      breaches.push(...found.map((breach) => `round ${round}: ${what}: ${breach}`))
      for (const breach of found) process.stderr.write(`  ${breach}\n`)
    }
    expect(breaches).toEqual([])
    expect(await crashTest.finished()).toEqual([])
    for (const name of ['left', 'right', 'worker']) await machines.program(name).kill()
    const { reelgate } = crashTest
    const examined = await examineBucket(reelgate, newBucketOf(reelgate), { isRestored: true })
    expect(examined.breaches).toEqual([])
    expect(examined.kept).toEqual(examined.named)
    process.stderr.write(`${crashTest.history.calls} calls, ${crashTest.world.videos.size} videos at the end\n`)
    for (const [what, count] of [...counts].sort()) process.stderr.write(`  ${what}: ${count}\n`)
  },
  2 * 3_600_000,
)

/** Clients call until parts are lost, and while they are. @returns one sentence for each broken promise */
async function loseSome(crashTest: CrashTest, chance: Chance, losses: readonly Loss[]): Promise<string[]> {
  let isOver = false
  const calling = crashTest.runClients(CLIENTS, () => isOver)
  await untilBusy(crashTest, chance)
  for (const { lose } of losses) await lose()
  // For longer or shorter than others wait before they take a server for dead.
  await pause(chance.between(0, 15_000))
  for (const { mend } of losses) await mend()
  // Some calls meet what has just come back.
  await pause(chance.between(0, 2_000))
  isOver = true
  await calling
  return crashTest.goOn()
}
