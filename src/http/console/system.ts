import { type Static, Type } from 'typebox'
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
const StatusReply = Type.Object({
  version: Type.String({ description: 'of Reelgate' }),
  node: Type.String({ description: 'version of Node' }),
  ffmpeg: Type.String({ description: 'version of ffmpeg' }),
  sandbox: Type.Boolean({ description: 'whether uploads are opened in the sandbox' }),
  startedAt: Type.String({ description: 'ISO 8601' }),
  dataFolder: Type.String(),
  database: Type.Union([Type.Literal('SQLite'), Type.Literal('PostgreSQL')]),
  disk: Type.Object({ freeBytes: Type.Integer(), sizeBytes: Type.Integer() }, { description: 'of the data folder' }),
  encoders: Type.Integer({ description: 'how many chunks are encoded concurrently' }),
  chunks: Type.Object({ pending: Type.Integer(), running: Type.Integer() }, { description: 'of the videos of all accounts' }),
  workers: Type.Array(
    Type.Object({
      name: Type.String(),
      state: Type.Union(
        [
          Type.Literal('encodes'),
          Type.Literal('waits'),
          Type.Literal('silent'),
          Type.Literal('drained'),
          Type.Literal('suspended'),
        ],
        { description: 'silent: no request in ten minutes' },
      ),
      reason: Type.Union([Type.String(), Type.Null()], { description: 'why it is suspended' }),
      chunks: Type.Integer({ description: 'how many it encodes now' }),
      speed: Type.Union([Type.Number(), Type.Null()], { description: 'seconds of video in a second of a chunk' }),
      lastSeenAt: Type.Union([Type.String(), Type.Null()], { description: 'ISO 8601; null: never' }),
    }),
    { description: 'encoders on other machines, by name' },
  ),
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

type SystemStatus = Omit<Static<typeof StatusReply>, 'startedAt' | 'lastBackup' | 'masterKey' | 'workers'> & {
  workers: (Omit<SystemStatusBody['workers'][number], 'lastSeenAt'> & { lastSeenAtS: number | null })[]
  startedAtS: number
  masterKey: { place: string; isBeingRotated: boolean; rotatedAtS: number | undefined }
  lastBackup: { name: string; atS: number } | undefined
}
export type SystemRoutesDeps = {
  system: { check(): Promise<Static<typeof ChecksReply>['rows']>; readStatus(): Promise<SystemStatus> }
}

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
      const { startedAtS, lastBackup, masterKey, workers, ...status } = await system.readStatus()
      const { rotatedAtS, ...keyState } = masterKey
      return {
        ...status,
        startedAt: isoTime(startedAtS),
        workers: workers.map(({ lastSeenAtS, ...worker }) => ({
          ...worker,
          lastSeenAt: lastSeenAtS === null ? null : isoTime(lastSeenAtS),
        })),
        masterKey: { ...keyState, rotatedAt: rotatedAtS === undefined ? null : isoTime(rotatedAtS) },
        lastBackup: lastBackup ? { name: lastBackup.name, at: isoTime(lastBackup.atS) } : null,
      }
    },
  )
}
