import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { openBucket } from '../src/storage/s3/bucket.ts'
import { createOwner, type Owner } from '../test/client.ts'
import { createDatabase, openCluster } from '../test/postgres/cluster.ts'
import { openObjectStore } from '../test/s3/radosgw.ts'
import { makeVideo } from '../test/videos.ts'
import { createViewer, type Viewer } from '../test/viewer.ts'
import { measureInterleaved, median } from './interleaved.ts'
import { familyOf, processorMs } from './processor-time.ts'
import type { Measured, Row, Scope } from './row.ts'
import { firstApiKey, type ListeningProcess, ROOT, startBuild, startService } from './service.ts'

// What servers cost: processor time, which does not depend on how many cores there are, or on what else they do. Clients run in this
// process, and are not counted; they sign their proofs before the measured part.

const PAIRS = 3
const CORES = 2
/** Requests at a time. */
const CONNECTIONS = 100
const VIEWERS = 300
/** Fewer than a viewer gets without waiting. */
const WINDOWS = 20
const VIDEO_S = 240
const BEATS = 10
const CALLS = 3_000
/** More than a page of a list. */
const VIDEOS = 40

/** Servers that answer for one installation. */
type Installation = { servers: readonly ListeningProcess[]; owner: Owner; videoId: string }

/** Prepares calls. @returns them, in the order in which they are made */
type Prepare = (installation: Installation) => Promise<(() => Promise<unknown>)[]>

const CALLS_OF: Record<string, { what: string; prepare: Prepare; aim: Row['aim'] }> = {
  otp: { what: 'durable OTPs', prepare: issueAll, aim: { ratioAtLeast: 0.5 } },
  redeem: { what: 'OTPs that become sessions', prepare: redeemAll, aim: { ratioAtLeast: 0.5 } },
  keys: { what: 'first releases of keys', prepare: releaseAll, aim: { oursAtLeast: 6_000 } },
  beats: { what: 'beats of viewers', prepare: beatAll, aim: { ratioAtLeast: 0.25 } },
  list: { what: 'the newest 20 videos', prepare: listAll, aim: { ratioAtLeast: 0.5 } },
}

export const CLUSTER_ROWS: readonly Row[] = Object.entries(CALLS_OF).flatMap(([name, { what, prepare, aim }]) => [
  {
    name: `cluster-${name}`,
    what: `${what} that the processor time of two cores suffices for, of servers and PostgreSQL: two servers, each call to the next one; peer: one server`,
    unit: 'per s',
    aim,
    measure: (scope) => measureCalls(scope, prepare, startInstallations),
  },
  ...(['sqlite', 'postgres'] as const).map((database): Row => {
    const where = database === 'sqlite' ? 'the server: one on SQLite' : 'the server and PostgreSQL: one server'
    return {
      name: `single-${database}-${name}`,
      what: `${what} that the processor time of two cores suffices for, of ${where}; peer: the build in REELGATE_BENCH_BEFORE, or this one`,
      unit: 'per s',
      aim: { ratioAtLeast: database === 'sqlite' ? 0.95 : 0.8 },
      measure: (scope) => measureCalls(scope, prepare, (within) => startBuilds(within, database)),
    }
  }),
])

type Spent = { callsPerS: number; serversMs: number; postgresMs: number }

/** What is measured, what it is compared with, and the processes of PostgreSQL. */
type Compared = { ours: Installation; peer: Installation; postgres: () => number[]; names: { ours: string; peer: string } }

async function measureCalls(scope: Scope, prepare: Prepare, start: (scope: Scope) => Promise<Compared>): Promise<Measured> {
  const { ours, peer, postgres, names } = await start(scope)
  const spentBy = { ours: [] as Spent[], peer: [] as Spent[] }

  async function measure(installation: Installation): Promise<Spent> {
    const calls = await prepare(installation)
    const servers = installation.servers.map(({ pid }) => pid)
    const before = { servers: processorMs(servers), postgres: processorMs(postgres()) }
    await makeAll(calls)
    const serversMs = (processorMs(servers) - before.servers) / calls.length
    const postgresMs = (processorMs(postgres()) - before.postgres) / calls.length
    return { callsPerS: (1_000 * CORES) / (serversMs + postgresMs), serversMs, postgresMs }
  }

  async function measureAgain(which: 'ours' | 'peer'): Promise<number> {
    const spent = await measure(which === 'ours' ? ours : peer)
    spentBy[which].push(spent)
    return spent.callsPerS
  }

  for (const installation of [ours, peer]) await measure(installation) // a program is slower at first
  const measured = await measureInterleaved(
    PAIRS,
    () => measureAgain('ours'),
    () => measureAgain('peer'),
  )
  return { ...measured, note: `${names.ours}: ${describe(spentBy.ours)}; ${names.peer}: ${describe(spentBy.peer)}` }
}

function describe(spent: readonly Spent[]): string {
  const medianOf = (part: 'serversMs' | 'postgresMs') => median(spent.map((each) => each[part])).toFixed(2)
  return `${medianOf('serversMs')} ms of servers and ${medianOf('postgresMs')} of PostgreSQL a call`
}

async function makeAll(calls: readonly (() => Promise<unknown>)[]): Promise<void> {
  const next = calls.values()
  async function makeOneByOne(): Promise<void> {
    for (const call of next) await call()
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, makeOneByOne))
}

// --- calls ---

async function issueAll({ servers, videoId, owner }: Installation) {
  const owners = servers.map(({ url }) => createOwner(url, owner.apiKey))
  return Array.from({ length: CALLS }, (_, n) => () => at(owners, n).issueOtp(videoId, { userId: `viewer-${n}` }))
}

async function redeemAll(installation: Installation) {
  const pages = await openPages(installation)
  return pages.map(({ viewer, otp }) => redeem(viewer, otp))
}

/** Each viewer asks for each window once, at the servers in turn. */
async function releaseAll(installation: Installation) {
  const viewers = await openSessions(installation)
  return Array.from({ length: WINDOWS }, (_, window) =>
    viewers.map((viewer, n) => askInTurn(installation, viewer, n + window, 'key', String(window))),
  ).flat()
}

async function beatAll(installation: Installation) {
  const viewers = await openSessions(installation)
  const body = JSON.stringify({ state: 'playing', positionS: 1, rate: 1 })
  return Array.from({ length: BEATS }, (_, beat) =>
    viewers.map((viewer, n) => askInTurn(installation, viewer, n + beat, 'beat', undefined, body)),
  ).flat()
}

async function listAll({ servers, owner }: Installation) {
  const headers = { Authorization: `Apisecret ${owner.apiKey}` }
  return Array.from({ length: CALLS }, (_, n) => async () => {
    const response = await fetch(`${at(servers, n).url}/api/videos?limit=20`, { headers })
    await response.text()
    if (response.status !== 200) throw new Error(`list: ${response.status}`)
  })
}

/** Pages of players, with an OTP each that has not been redeemed. */
async function openPages({ servers, owner, videoId }: Installation) {
  const pages: { viewer: Viewer; otp: string }[] = []
  async function open(n: number): Promise<void> {
    const viewer = createViewer(at(servers, n).url)
    const otp = await owner.issueOtp(videoId, { userId: randomBytes(8).toString('hex') })
    await (await viewer.openPage(`?otp=${otp}`)).text()
    pages.push({ viewer, otp })
  }
  await makeAll(Array.from({ length: VIEWERS }, (_, n) => () => open(n)))
  return pages
}

async function openSessions(installation: Installation): Promise<Viewer[]> {
  const pages = await openPages(installation)
  await makeAll(pages.map(({ viewer, otp }) => redeem(viewer, otp)))
  return pages.map(({ viewer }) => viewer)
}

/** @returns sends it, signed before */
function redeem(viewer: Viewer, otp: string): () => Promise<void> {
  const { state, proof, redeemBody, send } = viewer
  const body = JSON.stringify(redeemBody(otp))
  const header = proof({ operation: 'redeem', body })
  return async () => {
    const response = await send('POST', '/play/redeem', header, body)
    const answer = await response.text()
    if (response.status !== 200) throw new Error(`redeem: ${response.status} ${answer}`)
    state.session = JSON.parse(answer).session
  }
}

/** @returns sends it, signed before; a proof that is stale by then is signed again, as players do */
function askInTurn(
  { servers }: Installation,
  { state, proof }: Viewer,
  turn: number,
  operation: 'key' | 'beat',
  argument?: string,
  body?: string,
): () => Promise<void> {
  const path = ['/play', state.session, operation, ...(argument === undefined ? [] : [argument])].join('/')
  const sign = () => proof({ operation, session: state.session, argument, body })
  let header = sign()
  return async () => {
    for (let tries = 1; ; tries++) {
      const headers = { 'Reelgate-Proof': header, ...(body !== undefined && { 'Content-Type': 'application/json' }) }
      const method = body === undefined ? 'GET' : 'POST'
      const response = await fetch(`${at(servers, turn).url}${path}`, { method, headers, body })
      state.nonce = response.headers.get('Reelgate-Nonce') ?? state.nonce
      const answer = Buffer.from(await response.arrayBuffer())
      if (response.ok) return
      if (response.status !== 401 || tries === 3) throw new Error(`${operation}: ${response.status} ${answer}`)
      header = sign()
    }
  }
}

function at<T>(list: readonly T[], n: number): T {
  const item = list[n % list.length]
  if (item === undefined) throw new Error('the list is empty')
  return item
}

// --- servers ---

/** Two servers of one installation, and one of another, on one PostgreSQL, which waits for the disk, and one bucket. */
async function startInstallations(scope: Scope): Promise<Compared> {
  const { newUrl, postgres } = await startPostgres(scope)
  const { endpoint, remove, ...credentials } = await openObjectStore()
  scope.defer(remove)

  async function start(bucket: string, count: number): Promise<Installation> {
    await openBucket({ endpoint, region: 'us-east-1', bucket, prefix: '', credentials }).send({ method: 'PUT' })
    const env = {
      REELGATE_DATABASE_URL: await newUrl(),
      REELGATE_STORAGE_URL: `s3://${bucket}/?endpoint=${endpoint}`,
      REELGATE_MASTER_KEY: randomBytes(32).toString('hex'),
      AWS_ACCESS_KEY_ID: credentials.accessKeyId,
      AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
    }
    const servers: ListeningProcess[] = []
    while (servers.length < count) servers.push(await startService(scope, join(scope.folder, `${bucket}-${servers.length}`), env))
    return fill(servers)
  }

  const names = { ours: 'two', peer: 'one' }
  return { ours: await start('bench-several', 2), peer: await start('bench-one', 1), postgres, names }
}

/** One server of this build and one of another, each with a data folder. */
async function startBuilds(scope: Scope, database: 'sqlite' | 'postgres'): Promise<Compared> {
  const { newUrl, postgres } = database === 'postgres' ? await startPostgres(scope) : { newUrl: undefined, postgres: () => [] }
  async function start(root: string, name: string): Promise<Installation> {
    const env: Record<string, string> = newUrl ? { REELGATE_DATABASE_URL: await newUrl() } : {}
    return fill([await startBuild(scope, root, join(scope.folder, name), env)])
  }
  const ours = await start(ROOT, 'ours')
  const peer = await start(process.env.REELGATE_BENCH_BEFORE ?? ROOT, 'peer')
  return { ours, peer, postgres, names: { ours: 'this build', peer: 'the one before' } }
}

async function startPostgres(scope: Scope) {
  const database = await openCluster({ durable: true, settings: { shared_buffers: '128MB' } })
  scope.defer(() => database.remove())
  const [postmaster] = readFileSync(join(database.folder, 'data', 'postmaster.pid'), 'utf8').split('\n')
  return { newUrl: () => createDatabase(database.url), postgres: () => familyOf(Number(postmaster)) }
}

async function fill(servers: readonly ListeningProcess[]): Promise<Installation> {
  const first = at(servers, 0)
  const owner = createOwner(first.url, firstApiKey(first))
  const videoId = await owner.readyVideo(await makeVideo({ seconds: VIDEO_S, rate: 5, dark: true, audioTrack: false }))
  for (let n = 1; n < VIDEOS; n++) await owner.credentials(`video ${n}`)
  return { servers, owner, videoId }
}
