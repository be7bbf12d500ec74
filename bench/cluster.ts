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
import { firstApiKey, type ListeningProcess, startService } from './service.ts'

// What several servers cost: processor time, which does not depend on how many cores there are, or on what else they do. Clients run in
// this process, and are not counted.

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

export const CLUSTER_ROWS: readonly Row[] = [
  clusterRow('otp', 'durable OTPs', { ratioAtLeast: 0.5 }, issueAll),
  clusterRow('redeem', 'OTPs that become sessions', { ratioAtLeast: 0.5 }, redeemAll),
  clusterRow('keys', 'first releases of keys', { oursAtLeast: 6_000 }, releaseAll),
  clusterRow('beats', 'beats of viewers', { ratioAtLeast: 0.25 }, beatAll),
  clusterRow('list', 'the newest 20 videos', { ratioAtLeast: 0.5 }, listAll),
]

function clusterRow(name: string, what: string, aim: Row['aim'], prepare: Prepare): Row {
  return {
    name: `cluster-${name}`,
    what: `${what} that the processor time of two cores suffices for, of servers and PostgreSQL: two servers, each call to the next one; peer: one server`,
    unit: 'per s',
    aim,
    measure: (scope) => measureCalls(scope, prepare),
  }
}

type Spent = { callsPerS: number; serversMs: number; postgresMs: number }

async function measureCalls(scope: Scope, prepare: Prepare): Promise<Measured> {
  const { several, one, postgres } = await startInstallations(scope)
  const spentBy = { several: [] as Spent[], one: [] as Spent[] }

  async function measure(installation: Installation): Promise<Spent> {
    const calls = await prepare(installation)
    const servers = installation.servers.map(({ pid }) => pid)
    const before = { servers: processorMs(servers), postgres: processorMs(postgres()) }
    await makeAll(calls)
    const serversMs = (processorMs(servers) - before.servers) / calls.length
    const postgresMs = (processorMs(postgres()) - before.postgres) / calls.length
    return { callsPerS: (1_000 * CORES) / (serversMs + postgresMs), serversMs, postgresMs }
  }

  async function measureAgain(which: 'several' | 'one'): Promise<number> {
    const spent = await measure(which === 'several' ? several : one)
    spentBy[which].push(spent)
    return spent.callsPerS
  }

  for (const installation of [several, one]) await measure(installation) // a program is slower at first
  const measured = await measureInterleaved(
    PAIRS,
    () => measureAgain('several'),
    () => measureAgain('one'),
  )
  return { ...measured, note: `two: ${describe(spentBy.several)}; one: ${describe(spentBy.one)}` }
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
  const viewers = await openPages(installation)
  return viewers.map(
    ({ viewer, otp }) =>
      () =>
        redeem(viewer, otp),
  )
}

/** Each viewer asks for each window once, at the servers in turn. */
async function releaseAll(installation: Installation) {
  const viewers = await openSessions(installation)
  return Array.from({ length: WINDOWS }, (_, window) =>
    viewers.map((viewer, n) => () => askInTurn(installation, viewer, n + window, 'key', String(window))),
  ).flat()
}

async function beatAll(installation: Installation) {
  const viewers = await openSessions(installation)
  const body = JSON.stringify({ state: 'playing', positionS: 1, rate: 1 })
  return Array.from({ length: BEATS }, (_, beat) =>
    viewers.map((viewer, n) => () => askInTurn(installation, viewer, n + beat, 'beat', undefined, body)),
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
  await makeAll(
    pages.map(
      ({ viewer, otp }) =>
        () =>
          redeem(viewer, otp),
    ),
  )
  return pages.map(({ viewer }) => viewer)
}

async function redeem(viewer: Viewer, otp: string): Promise<void> {
  const { status, body } = await viewer.redeem(otp)
  if (status !== 200) throw new Error(`redeem: ${status} ${JSON.stringify(body)}`)
}

/** A proof that is stale is signed again, as players do. */
async function askInTurn(
  { servers }: Installation,
  { state, proof }: Viewer,
  turn: number,
  operation: 'key' | 'beat',
  argument?: string,
  body?: string,
): Promise<void> {
  const path = ['/play', state.session, operation, ...(argument === undefined ? [] : [argument])].join('/')
  for (let tries = 1; ; tries++) {
    const header = proof({ operation, session: state.session, argument, body })
    const headers = { 'Reelgate-Proof': header, ...(body !== undefined && { 'Content-Type': 'application/json' }) }
    const method = body === undefined ? 'GET' : 'POST'
    const response = await fetch(`${at(servers, turn).url}${path}`, { method, headers, body })
    state.nonce = response.headers.get('Reelgate-Nonce') ?? state.nonce
    const answer = Buffer.from(await response.arrayBuffer())
    if (response.ok) return
    if (response.status !== 401 || tries === 3) throw new Error(`${operation}: ${response.status} ${answer}`)
  }
}

function at<T>(list: readonly T[], n: number): T {
  const item = list[n % list.length]
  if (item === undefined) throw new Error('the list is empty')
  return item
}

// --- servers ---

/** Two servers of one installation, and one of another, on one PostgreSQL, which waits for the disk, and one bucket. */
async function startInstallations(scope: Scope) {
  const database = await openCluster({ durable: true, settings: { shared_buffers: '128MB' } })
  scope.defer(() => database.remove())
  const { endpoint, remove, ...credentials } = await openObjectStore()
  scope.defer(remove)

  async function start(bucket: string, count: number): Promise<Installation> {
    await openBucket({ endpoint, region: 'us-east-1', bucket, prefix: '', credentials }).send({ method: 'PUT' })
    const env = {
      REELGATE_DATABASE_URL: await createDatabase(database.url),
      REELGATE_STORAGE_URL: `s3://${bucket}/?endpoint=${endpoint}`,
      REELGATE_MASTER_KEY: randomBytes(32).toString('hex'),
      AWS_ACCESS_KEY_ID: credentials.accessKeyId,
      AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
    }
    const servers: ListeningProcess[] = []
    while (servers.length < count) servers.push(await startService(scope, join(scope.folder, `${bucket}-${servers.length}`), env))
    const first = at(servers, 0)
    const owner = createOwner(first.url, firstApiKey(first))
    const videoId = await owner.readyVideo(await makeVideo({ seconds: VIDEO_S, rate: 5, dark: true, audioTrack: false }))
    for (let n = 1; n < VIDEOS; n++) await owner.credentials(`video ${n}`)
    return { servers, owner, videoId }
  }

  const several = await start('bench-several', 2)
  const one = await start('bench-one', 1)
  const [postmaster] = readFileSync(join(database.folder, 'data', 'postmaster.pid'), 'utf8').split('\n')
  return { several, one, postgres: () => familyOf(Number(postmaster)) }
}
