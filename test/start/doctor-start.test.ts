import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, open, rename, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { dataPaths } from '../../src/config/data-paths.ts'
import { runCli, startSharedReelgate } from '../reelgate.ts'
import { changeRows } from '../rows.ts'
import { sampleOf } from '../sample.ts'
import { copyToHurt, serve, startOriginal } from './refusals.ts'

// Every state in which a server does not start: the doctor fails, too, and gives the same reason.

let stopped: Awaited<ReturnType<typeof startOriginal>>
/** Ended by kill -9: its last commits are in the log alone. */
let killed: Awaited<ReturnType<typeof startSharedReelgate>>
beforeAll(async () => {
  stopped = await startOriginal({ database: 'sqlite' })
  killed = await startSharedReelgate({ database: 'sqlite' })
  await killed.owner.credentials('in the log')
  await killed.kill()
})
afterAll(async () => {
  await stopped.remove()
  await killed.remove()
})

type Location = { dataDir: string; env: Record<string, string> }

async function copyOfStopped(): Promise<Location> {
  return copyToHurt(stopped)
}

async function copyOfKilled(): Promise<Location> {
  const folder = await mkdtemp(join(tmpdir(), 'reelgate-killed-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const dataDir = join(folder, 'data')
  await cp(killed.dataDir, dataDir, { recursive: true, filter: (path) => !/\.(sock|reserve)$/.test(path) })
  await cp(killed.masterKeyFile, `${dataDir}.key`)
  return { dataDir, env: { REELGATE_DATA: dataDir } }
}

/** Variables that belong to a state. */
type Variables = () => Promise<Record<string, string>>

async function takePort(): Promise<string> {
  const other = createServer().listen(0, '127.0.0.1')
  onTestFinished(() => void other.close())
  await new Promise((resolve) => other.once('listening', resolve))
  const address = other.address()
  return String(typeof address === 'object' ? address?.port : '')
}

/** Replaces what has this name by a folder. */
async function makeFolder(path: string): Promise<void> {
  await rm(path, { recursive: true, force: true })
  await mkdir(path)
}

/** Replaces what has this name by a file. */
async function makeFile(path: string, text = 'x'): Promise<void> {
  await rm(path, { recursive: true, force: true })
  await writeFile(path, text)
}

const FOLDERS = ['sources', 'segments', 'posters', 'files', 'tmp', 'before-upgrade']
const FILES = ['reelgate.db', 'reelgate.mark', 'reelgate.reserve', 'lock.db', 'control.sock', '../data.key']

type State = {
  state: string
  says: RegExp
  of?: () => Promise<Location>
  hurt?: (location: Location) => Promise<unknown>
  variables?: Variables
}

const STATES: readonly State[] = [
  {
    state: 'the log of the database is gone',
    of: copyOfKilled,
    says: /is older than its data folder: its log reelgate\.db-wal is missing/,
    async hurt({ dataDir }) {
      for (const ending of ['-wal', '-shm']) await rm(join(dataDir, `reelgate.db${ending}`), { force: true })
    },
  },
  {
    state: 'the log of the database has other bytes',
    of: copyOfKilled,
    says: /is older than its data folder|cannot be opened: it is damaged/,
    async hurt({ dataDir }) {
      await rm(join(dataDir, 'reelgate.db-shm'), { force: true })
      const path = join(dataDir, 'reelgate.db-wal')
      const { size } = await stat(path)
      await using file = await open(path, 'r+')
      await file.write(Buffer.alloc(size, 0xa5), 0, size, 0)
    },
  },
  {
    state: 'the mark is damaged',
    says: /The high-water mark .* is damaged/,
    hurt: ({ dataDir }) => writeFile(join(dataDir, 'reelgate.mark'), 'NaN\n'),
  },
  {
    state: 'the mark is ahead of the database',
    says: /is older than its data folder/,
    hurt: ({ dataDir }) => writeFile(join(dataDir, 'reelgate.mark'), '99999999999\n'),
  },
  {
    state: 'the mark names a PostgreSQL database',
    says: /has moved to postgres:/,
    hurt: ({ dataDir }) => writeFile(join(dataDir, 'reelgate.mark'), '99999999999\npostgres://db/reelgate\n'),
  },
  {
    state: 'a restore was interrupted',
    says: /was restored to .* only in part/,
    hurt: ({ dataDir }) => writeFile(join(dataDir, 'restoring'), 'a backup\n'),
  },
  {
    state: 'the lock has other bytes in it',
    says: /The lock .*lock\.db is damaged: .*empty it/,
    hurt: ({ dataDir }) => writeFile(join(dataDir, 'lock.db'), 'x'.repeat(5000)),
  },
  {
    state: 'the database is missing',
    says: /There are videos in .* but no database/,
    hurt: ({ dataDir }) => rm(join(dataDir, 'reelgate.db')),
  },
  {
    state: 'the database is cut off',
    says: /is damaged/,
    hurt: ({ dataDir }) => truncate(join(dataDir, 'reelgate.db'), 40_000),
  },
  {
    state: 'the database cannot be written',
    says: /damaged or not writable/,
    async hurt({ dataDir }) {
      const { database } = dataPaths(dataDir)
      await promisify(execFile)('chattr', ['+i', database])
      onTestFinished(async () => void (await promisify(execFile)('chattr', ['-i', database])))
    },
  },
  {
    state: 'the database is of a newer version',
    says: /newer version of Reelgate \(it has the migration 0099-later\)/,
    hurt: async ({ dataDir }) =>
      changeRows(
        { dataDir, databaseUrl: undefined },
        'insert into kysely_migration values (?, ?)',
        '0099-later',
        new Date().toISOString(),
      ),
  },
  {
    state: 'the master key is missing',
    says: /The master key .* is missing/,
    hurt: ({ dataDir }) => rename(`${dataDir}.key`, `${dataDir}.away`),
  },
  {
    state: 'the data folder is a file',
    says: /The data folder .* cannot be written: it is no folder/,
    hurt: ({ dataDir }) => makeFile(dataDir),
  },
  { state: 'the port is taken', says: /Port \d+ is in use/, variables: async () => ({ PORT: await takePort() }) },
  {
    state: 'the port of the metrics is taken',
    says: /Port \d+ is in use by another program. Stop it, or set REELGATE_METRICS_PORT/,
    variables: async () => ({ REELGATE_METRICS_PORT: await takePort() }),
  },
  { state: 'the address is not of this machine', says: /cannot listen on/, variables: async () => ({ HOST: '192.0.2.1' }) },
  {
    state: 'an allowed destination is neither host nor range',
    says: /REELGATE_OUTBOUND_ALLOW has "images\.lan"/,
    variables: async () => ({ REELGATE_OUTBOUND_ALLOW: 'images.lan' }),
  },
]

const NOT_FOLDERS = FOLDERS.map(
  (name): State => ({
    state: `${name} is a file`,
    says: new RegExp(`${name} is a file, and should be a folder`),
    hurt: ({ dataDir }) => makeFile(join(dataDir, name)),
  }),
)
const NOT_FILES = FILES.map(
  (name): State => ({
    state: `${name} is a folder`,
    says: new RegExp(`${name.replace('../', '')} is a folder, and should be a (file|socket)`),
    hurt: ({ dataDir }) => makeFolder(join(dataDir, name)),
  }),
)

test.each([
  ...sampleOf('states in which no server starts', STATES, 6),
  ...sampleOf('files in place of folders', NOT_FOLDERS, 1),
  ...sampleOf('folders in place of files', NOT_FILES, 1),
])('F-55: where $state, no server starts, and the doctor fails with the same sentence', async ({ of, says, hurt, variables }) => {
  const location = await (of ?? copyOfStopped)()
  await hurt?.(location)
  const env = { PORT: '0', ...location.env, ...(await variables?.()) }
  // The doctor first: it changes nothing, whatever the state.
  const { code, stdout } = await runCli(['doctor', '--json'], env)
  const start = await serve(env)
  expect(start).toRefuse(says)
  const checks: { state: string; says: string }[] = JSON.parse(stdout)
  const failures = checks.filter(({ state }) => state === 'trouble').map((check) => check.says)
  expect({ code, failures }).toEqual({ code: 1, failures: expect.arrayContaining([start.stderr.trim()]) })
})

test('F-55: a start that fails for an unforeseen reason says it in one sentence, and logs the rest', async () => {
  const { dataDir, env } = await copyOfStopped()
  changeRows({ dataDir, databaseUrl: undefined }, 'alter table account rename to lost')
  expect(await serve(env)).toRefuse(/^Reelgate cannot start: no such table: account. See what reelgate doctor says\./)
  const { stderr } = await runCli(['serve'], { PORT: '0', ...env })
  // On a slow machine what has been started may log its own failures before.
  const line = stderr.split('\n').find((line) => line.includes('start: failed'))
  expect(JSON.parse(line ?? '')).toMatchObject({ msg: 'start: failed', err: { stack: expect.any(String) } })
})
