import { type Static, Type } from 'typebox'
import type { Actor } from '../../audit/audit-log.ts'
import { authenticateRequest } from '../server/caller.ts'
import type { App } from '../wire/app-type.ts'
import { isoTime } from '../wire/iso-time.ts'
import { operation } from '../wire/operation.ts'

const ChecksReply = Type.Object({
  rows: Type.Array(
    Type.Object({
      check: Type.String({ description: 'what was checked' }),
      state: Type.Union([Type.Literal('ok'), Type.Literal('warning'), Type.Literal('trouble')]),
      says: Type.String({ description: 'what was found and, where it is not ok, what to do' }),
    }),
  ),
})
export type ChecksBody = Static<typeof ChecksReply>
const ServersReply = Type.Object({
  rows: Type.Array(
    Type.Object({
      id: Type.String(),
      name: Type.String(),
      version: Type.String({ description: 'of Reelgate' }),
      state: Type.Union(
        [Type.Literal('serves'), Type.Literal('starts'), Type.Literal('stops'), Type.Literal('drained'), Type.Literal('silent')],
        { description: 'drained: it reports that it is not ready; silent: no sign of life in five seconds' },
      ),
      startedAt: Type.String({ description: 'ISO 8601' }),
      sessions: Type.Integer({ description: 'viewers that watch there now' }),
      load: Type.Number({ description: 'processes that wait for a processor of its machine, over a minute' }),
    }),
  ),
})
export type ServersBody = Static<typeof ServersReply>
const StatusReply = Type.Object({
  version: Type.String({ description: 'of Reelgate' }),
  node: Type.String({ description: 'version of Node' }),
  ffmpeg: Type.String({ description: 'version of ffmpeg' }),
  sandbox: Type.Boolean({ description: 'whether uploads are opened in the sandbox' }),
  startedAt: Type.String({ description: 'ISO 8601' }),
  dataFolder: Type.String(),
  database: Type.Union([Type.Literal('SQLite'), Type.Literal('PostgreSQL')]),
  files: Type.Object(
    {
      place: Type.String({ description: 'the data folder, or a bucket' }),
      move: Type.Union([
        Type.Object(
          {
            to: Type.String(),
            movedBytes: Type.Integer(),
            totalBytes: Type.Integer(),
            damagedCount: Type.Integer({ description: 'files that the old place does not have as they were published' }),
            waitsFor: Type.String({ description: 'why it does not get further; empty: nothing' }),
          },
          { description: 'of all files to another place, while it is not finished' },
        ),
        Type.Null(),
      ]),
    },
    { description: 'where the files of videos are' },
  ),
  disk: Type.Object({ freeBytes: Type.Integer(), sizeBytes: Type.Integer() }, { description: 'of the data folder' }),
  encoders: Type.Integer({ description: 'how many chunks are encoded concurrently' }),
  chunks: Type.Object({ pending: Type.Integer(), running: Type.Integer() }, { description: 'of the videos of all accounts' }),
  deliveries: Type.Integer({ description: 'of webhooks, not delivered yet' }),
  accounts: Type.Integer({ description: 'how many' }),
  masterKey: Type.Object({
    place: Type.String({ description: 'the variable that says where it comes from', examples: ['REELGATE_MASTER_KEY_FILE'] }),
    isBeingRotated: Type.Boolean({ description: 'a rotation is not finished; the server continues it' }),
    rotatedAt: Type.Union([Type.String(), Type.Null()], {
      description: 'ISO 8601; null: never, or longer ago than the audit log is kept',
    }),
  }),
  lastBackup: Type.Union([Type.Object({ name: Type.String(), at: Type.String({ description: 'ISO 8601' }) }), Type.Null()]),
})
export type SystemStatusBody = Static<typeof StatusReply>

type SystemStatus = Omit<Static<typeof StatusReply>, 'startedAt' | 'lastBackup' | 'masterKey'> & {
  startedAtS: number
  masterKey: { place: string; isBeingRotated: boolean; rotatedAtS: number | undefined }
  lastBackup: { name: string; atS: number } | undefined
}
type ListedServer = Omit<ServersBody['rows'][number], 'startedAt'> & { startedAtS: number }
export type SystemRoutesDeps = {
  system: {
    check(): Promise<Static<typeof ChecksReply>['rows']>
    readStatus(): Promise<SystemStatus>
    findServers(): Promise<ListedServer[]>
    setServerDrained(id: string, drained: boolean, by: Actor): Promise<void>
  }
}

const ServerParams = Type.Object({
  id: Type.String({
    pattern: '^[0-9a-f]{32}$',
    description: 'of the list of servers',
    examples: ['5d41402abc4b2a76b9719d911017c592'],
  }),
})
const ServerBody = Type.Object({ drained: Type.Union([Type.Literal(0), Type.Literal(1)], { examples: [1] }) })
const ServerReply = Type.Object({ id: Type.String(), drained: Type.Integer() })

/** What an administrator sees of the installation. */
export function systemRoutes(app: App, { system }: SystemRoutesDeps): void {
  const administrator = { permission: 'viewer', isForAdministrators: true } as const

  app.get(
    '/system/checks',
    operation(administrator, {
      summary: 'Check the system',
      description: 'For administrators: what `reelgate doctor` checks, at most ten seconds old.',
      response: { 200: ChecksReply },
    }),
    async (): Promise<Static<typeof ChecksReply>> => ({ rows: await system.check() }),
  )

  app.get(
    '/system/status',
    operation(administrator, {
      summary: 'State of the system',
      description: 'For administrators.',
      response: { 200: StatusReply },
    }),
    async (): Promise<Static<typeof StatusReply>> => {
      const { startedAtS, lastBackup, masterKey, ...status } = await system.readStatus()
      const { rotatedAtS, ...keyState } = masterKey
      return {
        ...status,
        startedAt: isoTime(startedAtS),
        masterKey: { ...keyState, rotatedAt: rotatedAtS === undefined ? null : isoTime(rotatedAtS) },
        lastBackup: lastBackup ? { name: lastBackup.name, at: isoTime(lastBackup.atS) } : null,
      }
    },
  )
  app.get(
    '/system/servers',
    operation(administrator, {
      summary: 'List the servers',
      description: 'For administrators: those that share the database, by name; none where it can have only one.',
      response: { 200: ServersReply },
    }),
    async (): Promise<ServersBody> => {
      const servers = await system.findServers()
      return { rows: servers.map(({ startedAtS, ...server }) => ({ ...server, startedAt: isoTime(startedAtS) })) }
    },
  )

  app.put(
    '/system/servers/:id',
    operation(administrator, {
      summary: 'Drain a server, or resume it',
      description:
        'For administrators. A drained server still answers, but `/readyz` is 503 within a second, so that load balancers send it nothing more; also after a restart.',
      params: ServerParams,
      body: ServerBody,
      response: { 200: ServerReply },
    }),
    async (request): Promise<Static<typeof ServerReply>> => {
      const drained = request.body.drained === 1
      await system.setServerDrained(request.params.id, drained, authenticateRequest(request))
      return { id: request.params.id, drained: Number(drained) }
    },
  )
}
