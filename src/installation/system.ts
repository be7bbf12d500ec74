import { statfs } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { sql } from 'kysely'
import packageJson from '../../package.json' with { type: 'json' }
import { countAccounts } from '../accounts/account-store.ts'
import { type Actor, findMasterKeyRotation } from '../audit/audit-log.ts'
import type { Config } from '../config/config.ts'
import type { Db } from '../db/database.ts'
import type { Write } from '../db/write.ts'
import { type Check, failure, ok } from '../health-check.ts'
import { countOpenChunks } from '../progress/progress-store.ts'
import { type Sandbox, sandboxAdvice } from '../sandbox/bubblewrap.ts'
import { findServers, setServerDrained } from '../servers/server-list.ts'
import { countOpenDeliveries } from '../webhooks/delivery-store.ts'
import { findLastBackup } from './backup/last-backup.ts'
import { examineInstallation } from './doctor.ts'
import type { FileMove } from './file-move.ts'
import { findMasterKeyIds } from './master-key.ts'

// What an administrator sees of the installation in the console.

type SystemDeps = {
  config: Config
  db: Db
  slowQueryDb: Db
  sandbox: Sandbox
  /** Why the database cannot be used. */
  databaseProblem(): string | undefined
  wallNowS: () => number
  /** The playback clock: the database's, where there are several servers. */
  nowS: () => number
  write: Write
  fileMove: Pick<FileMove, 'status'>
}

/** How long results are kept: the checks start processes and ask the public address. */
const CHECKS_KEPT_MS = 10_000

export function createSystem(deps: SystemDeps) {
  const { config, db, slowQueryDb, sandbox, databaseProblem, wallNowS, nowS, write, fileMove } = deps
  const startedAtS = wallNowS()
  let latest: { atMs: number; checks: Promise<Check[]> } | undefined

  /** The running server answers for its database: a check of the whole file would stop everything else. */
  async function checkDatabase(): Promise<Check[]> {
    const finding = await sql`select 1`.execute(db).then(
      () => databaseProblem(),
      (error: unknown) => (error instanceof Error ? error.message : String(error)),
    )
    const name = nameOf(config)
    const answers = `${name} answers. Stop the server, and reelgate doctor checks all of its rows.`
    return [{ check: 'database', ...(finding === undefined ? ok(answers) : failure(finding)) }]
  }

  return {
    /** The checks of `reelgate doctor`, at most a few seconds old. */
    async check(): Promise<Check[]> {
      if (!latest || performance.now() - latest.atMs > CHECKS_KEPT_MS)
        latest = { atMs: performance.now(), checks: examineInstallation(config, checkDatabase) }
      return latest.checks
    },

    findServers: () => findServers(db, nowS()),
    setServerDrained: (id: string, drained: boolean, by: Actor) => setServerDrained({ write, nowS }, id, drained, by),

    async readStatus() {
      const { bavail, blocks, bsize } = await statfs(config.dataDir)
      return {
        version: packageJson.version,
        node: process.versions.node,
        ffmpeg: sandbox.ffmpegVersion,
        sandbox: sandboxAdvice(sandbox) === undefined,
        startedAtS,
        dataFolder: config.dataDir,
        database: nameOf(config),
        files: await describeFiles(fileMove),
        disk: { freeBytes: bavail * bsize, sizeBytes: blocks * bsize },
        encoders: config.encoders ?? availableParallelism(),
        chunks: await countOpenChunks(slowQueryDb),
        deliveries: await countOpenDeliveries(slowQueryDb),
        accounts: await countAccounts(db),
        lastBackup: await findLastBackup({ db }),
        masterKey: await readMasterKeyState(config, db),
      }
    },
  }
}

/** Where the files of videos are, and how far a move of them is. */
async function describeFiles(fileMove: Pick<FileMove, 'status'>) {
  const { state, from, to, movedBytes, totalBytes, damagedCount, waitsFor } = await fileMove.status()
  if (state !== 'moving') return { place: to, move: null }
  return { place: from, move: { to, movedBytes, totalBytes, damagedCount, waitsFor } }
}

/** From the database alone: the place of the key may be a program that is slow to answer. */
async function readMasterKeyState({ masterKeyVariable }: Config, db: Db) {
  const [id = '', ...older] = await findMasterKeyIds(db)
  return { place: masterKeyVariable, isBeingRotated: older.length > 0, rotatedAtS: await findMasterKeyRotation(db, id) }
}

function nameOf({ databaseUrl }: Config): 'SQLite' | 'PostgreSQL' {
  return databaseUrl === undefined ? 'SQLite' : 'PostgreSQL'
}
