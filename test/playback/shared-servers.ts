import { collectChanges } from '../../src/db/changed-tables.ts'
import type { Database } from '../../src/db/database.ts'
import { openBatches } from '../../src/db/postgres/batches.ts'
import { createPostgresCommitter } from '../../src/db/postgres/commit.ts'
import { openConnection } from '../../src/db/postgres/connection.ts'
import { createPostgresKysely } from '../../src/db/postgres/dialect.ts'
import { toPublicError } from '../../src/db/postgres/failures.ts'
import { createGroupCommitter } from '../../src/db/write.ts'
import { openShared } from '../../src/playback/open.ts'
import type { PlaybackDeps } from '../../src/playback/playback-deps.ts'
import { admit, requestBeat, requestKey, requestLeave } from '../../src/playback/requests.ts'
import type { Beat } from '../../src/playback/serve.ts'
import type { SessionRequest } from '../../src/playback/sessions/admit-request.ts'
import { type Operation, readProof } from '../../src/playback/sessions/proof.ts'
import type { OtherServers } from '../../src/playback/shared/sharing.ts'
import { newChance } from '../seeded-random.ts'
import type { Viewer } from '../viewer.ts'
import { openBarePlayback } from './playback-deps.ts'

const SHARED: OtherServers = { isShared: () => true, onShared() {} }
const HOME = '192.0.2.1'

/** Several servers on one PostgreSQL, below HTTP. Each request goes to any of them. The caller closes them. */
export async function openSharedPlayback(
  database: Pick<Database, 'db' | 'write'> & { url: string },
  { durationS = 60, servers: count = 2 } = {},
) {
  const playback = await openBarePlayback({ durationS, database })
  const chance = newChance('servers')
  const pools: { close(): Promise<void> }[] = []

  async function openServer(others: OtherServers = SHARED): Promise<PlaybackDeps> {
    const batches = openBatches(database.url, toPublicError)
    pools.push(batches)
    const deps = { ...playback.openServer(), write: openWriter(database.url) }
    deps.sharing = await openShared({ ...deps, batches, servers: others })
    return deps
  }

  /** Transactions of a server of its own. */
  function openWriter(url: string) {
    const connection = openConnection({ url, settings: { default_transaction_isolation: 'serializable' } })
    pools.push(connection)
    const { execute, takeChanges } = collectChanges(connection.execute)
    const committer = createPostgresCommitter(createPostgresKysely(execute, connection.close), connection, toPublicError)
    return createGroupCommitter({ ...committer, takeChanges })
  }

  const servers: PlaybackDeps[] = []
  for (let n = 0; n < count; n++) servers.push(await openServer())

  function anyServer(): PlaybackDeps {
    const server = servers[Math.floor(chance.next() * servers.length)]
    if (!server) throw new Error('there is no server')
    return server
  }

  /** What a viewer's page sends, with a proof of its own. */
  function sign(
    viewer: Viewer,
    operation: Operation,
    {
      argument = '',
      address = HOME,
      nonce = anyServer().nonces.current(),
    }: { argument?: string; address?: string; nonce?: string } = {},
  ): SessionRequest {
    const sessionId = viewer.state.session
    const proof = readProof(viewer.proof({ operation, session: sessionId, argument: argument || undefined, nonce }))
    const signed = { operation, argument, body: Buffer.alloc(0) }
    return { sessionId, proof, signed, visit: { address, userAgent: '' }, isFlooding: false }
  }

  /** Sends a request to a server. */
  function send(request: SessionRequest, server = anyServer(), beat: Partial<Beat> = {}): Promise<unknown> {
    const { operation, argument } = request.signed
    if (operation === 'key') return requestKey(server, request, Number(argument))
    if (operation === 'beat') return requestBeat(server, request, () => ({ state: 'playing', positionS: 1, rate: 1, ...beat }))
    return operation === 'leave' ? requestLeave(server, request) : admit(server, request)
  }

  return {
    ...playback,
    async close() {
      await Promise.all(pools.map((pool) => pool.close()))
    },
    servers,
    openServer,
    anyServer,
    sign,
    send,
    async newViewer(options: Parameters<typeof playback.newOtp>[1] = {}, viewer = playback.newBrowser()): Promise<Viewer> {
      await playback.redeemBy(viewer, await playback.newOtp(3600, options), {}, anyServer())
      return viewer
    },
    key: (viewer: Viewer, window: number, address = HOME) => send(sign(viewer, 'key', { argument: String(window), address })),
    beat: (viewer: Viewer, beat: Partial<Beat> = {}) => send(sign(viewer, 'beat'), undefined, beat),
  }
}
