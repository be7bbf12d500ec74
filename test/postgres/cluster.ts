import { spawn, spawnSync } from 'node:child_process'
import { randomBytes, randomInt } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { chown, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'

/** A PostgreSQL of our own: on loopback, in a folder of its own, not run by root. */
export type Cluster = Reached & {
  /** The superuser, who has no password. */
  admin: { host: string; port: number; user: string; database: string }
  /** The same as an address. */
  adminUrl: string
  /** What it logged. */
  output(): string
  /** Starts it, unless it runs. */
  start(): Promise<void>
  /** Ends it as an administrator would: connections are cut, nothing is to be recovered. */
  stop(): Promise<void>
  /** Ends it as a power cut would. */
  crash(): Promise<void>
  /** Ends one of its processes, after which it recovers by itself. */
  killProcess(): void
  /** Ends it, and removes its folder. */
  remove(): Promise<void>
}

export type Reached = {
  /** Where `createDatabase` makes databases; its role owns them, and is not the superuser. */
  url: string
  /** The folder with its socket, which only its user and root reach. */
  folder: string
}

export type ClusterOptions = {
  /** Whether a commit waits for the disk, as it does on an owner's machine. Off where no test cuts the power. */
  durable?: boolean
  /** Where its folder is made, such as a small disk. */
  within?: string
  settings?: Record<string, string>
  /** A folder that outlives it: what lies there is gone on with. */
  kept?: string
  /** It follows this one, as it is, until it is promoted. */
  standbyOf?: Pick<Cluster, 'admin' | 'url'>
}

const PROGRAMS = '/usr/lib/postgresql'

/** PostgreSQL refuses to be run by root. */
const UNPRIVILEGED_ID = 65_534

/** Smaller than what an owner runs, and without what its start or a new database would wait for. */
const SETTINGS = {
  listen_addresses: '127.0.0.1',
  shared_buffers: '32MB',
  max_connections: '200',
  max_wal_size: '128MB',
  wal_level: 'minimal',
  max_wal_senders: '0',
  jit: 'off',
}
const NOT_DURABLE = { fsync: 'off', full_page_writes: 'off' }

/** In the folder of a cluster that was made whole. */
const MADE = 'made'

export async function openCluster(options: ClusterOptions = {}): Promise<Cluster> {
  const { durable = false, within = tmpdir(), settings = {}, kept, standbyOf } = options
  const folder = kept ?? (await mkdtemp(join(within, 'reelgate-postgres-')))
  await mkdir(folder, { recursive: true })
  if (isRoot()) await chown(folder, UNPRIVILEGED_ID, UNPRIVILEGED_ID)
  const data = join(folder, 'data')
  // Every client of the socket is let in: the folder is its owner's alone. Over the network a password is asked for.
  const isNew = !existsSync(join(folder, MADE))
  if (isNew) await rm(data, { recursive: true, force: true })
  if (standbyOf) copyFrom(standbyOf, data)
  else if (isNew) initialise(['-D', data, '--username=postgres', '--auth-local=trust', '--auth-host=scram-sha-256'], durable)
  const password = standbyOf ? new URL(standbyOf.url).password : randomBytes(16).toString('hex')
  let port = 0
  let run: Run | undefined

  async function start() {
    if (run) return
    const all = { ...SETTINGS, ...(durable ? {} : NOT_DURABLE), unix_socket_directories: folder, port, ...settings }
    run = await startPostmaster(['-D', data, ...Object.entries(all).map(([name, value]) => `-c${name}=${value}`)])
    const begun = run
    void begun.ended.then(() => {
      if (run === begun) run = undefined // it ended by itself
    })
  }

  async function end(work: (postmaster: number) => void) {
    const ending = run
    run = undefined
    if (!ending) return
    const family = [ending.pid, ...childrenOf(ending.pid)]
    work(ending.pid)
    await ending.ended
    while (family.some(isAlive)) await pause(5)
  }

  /** Only below the ports that the kernel gives away: this one is not taken while PostgreSQL is stopped. */
  async function startSomewhere() {
    for (let tries = 1; ; tries++) {
      port = randomInt(20_000, 30_000)
      try {
        return await start()
      } catch (error) {
        if (tries === 10 || !/Address already in use/.test(String(error))) throw error
      }
    }
  }

  async function remove() {
    await end(cutOff)
    if (kept === undefined) await rm(folder, { recursive: true, force: true })
  }

  try {
    await startSomewhere()
    const admin = { host: folder, port, user: 'postgres', database: 'postgres' }
    if (!standbyOf) await ask(admin, `${isNew ? 'create' : 'alter'} role reelgate login createdb password '${password}'`)
    await writeFile(join(folder, MADE), '')
    return {
      url: `postgres://reelgate:${password}@127.0.0.1:${port}/postgres`,
      folder,
      admin,
      adminUrl: `postgres://postgres@localhost:${port}/postgres?host=${folder}`,
      output: () => run?.output() ?? '',
      start,
      stop: () => end((postmaster) => process.kill(postmaster, 'SIGINT')),
      crash: () => end(cutOff),
      killProcess() {
        const [child] = run ? childrenOf(run.pid) : []
        if (child !== undefined) process.kill(child, 'SIGKILL')
      },
      remove,
    }
  } catch (error) {
    await remove()
    throw error
  }
}

/** Makes an empty database, or a copy of one that is not in use. @returns its address */
export async function createDatabase(url: string, { copyOf }: { copyOf?: string } = {}): Promise<string> {
  const name = `reelgate_${randomBytes(6).toString('hex')}`
  await ask(homeOf(url), `create database ${name}${copyOf ? ` template ${nameOf(copyOf)}` : ''}`)
  const made = new URL(url)
  made.pathname = `/${name}`
  return made.href
}

/** The same database for whom loopback is another one: through the socket in the cluster's folder. */
export function throughSocket(url: string, { folder }: Reached): string {
  const other = new URL(url)
  other.hostname = 'localhost'
  other.searchParams.set('host', folder)
  return other.href
}

/** Drops a database, even when it is in use: autovacuum's worker may be ended by no role of ours, and is done in a moment. */
export async function dropDatabase(url: string): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return await ask(homeOf(url), `drop database if exists ${nameOf(url)} with (force)`)
    } catch (error) {
      if (tries === 100 || !(error instanceof pg.DatabaseError && error.code === '42501')) throw error
      await pause(100)
    }
  }
}

const nameOf = (url: string) => new URL(url).pathname.slice(1)

/** The database in which others are made. */
function homeOf(url: string): string {
  const home = new URL(url)
  home.pathname = '/postgres'
  return home.href
}

async function ask(where: string | pg.ClientConfig, statement: string): Promise<void> {
  const client = new pg.Client(where)
  client.on('error', () => undefined) // the statement tells
  await client.connect()
  try {
    await client.query(statement)
  } finally {
    await client.end()
  }
}

// --- processes ---

function isRoot(): boolean {
  return process.getuid?.() === 0
}

/** Of the newest version that Debian has put there. */
function programOf(name: string): string {
  const versions = existsSync(PROGRAMS) ? readdirSync(PROGRAMS).map(Number) : []
  return join(PROGRAMS, `${Math.max(...versions)}`, 'bin', name)
}

/** A command line that root runs without privileges. */
function unprivileged(command: string[]): [string, string[]] {
  const ids = isRoot() ? [`--reuid=${UNPRIVILEGED_ID}`, `--regid=${UNPRIVILEGED_ID}`, '--clear-groups'] : []
  return ['setpriv', [...ids, ...command]]
}

function initialise(args: string[], durable: boolean): void {
  const all = [...args, '--encoding=UTF8', '--locale=C.UTF-8', ...(durable ? [] : ['--no-sync'])]
  const { status, stdout, stderr, error } = spawnSync(...unprivileged([programOf('initdb'), ...all]), {
    cwd: '/',
    encoding: 'utf8',
  })
  if (status !== 0) throw new Error(`initdb failed: ${error?.message ?? ''}${stdout ?? ''}${stderr ?? ''}`)
}

/** What another has, as it is now, with the note that it is to be followed. */
function copyFrom({ admin }: Pick<Cluster, 'admin'>, data: string): void {
  const args = [
    '-D',
    data,
    '-h',
    admin.host,
    '-p',
    `${admin.port}`,
    '-U',
    admin.user,
    '-R',
    '-X',
    'stream',
    '-c',
    'fast',
    '--no-sync',
  ]
  const { status, stderr } = spawnSync(...unprivileged([programOf('pg_basebackup'), ...args]), { cwd: '/', encoding: 'utf8' })
  if (status !== 0) throw new Error(`pg_basebackup failed: ${stderr}`)
}

type Run = { pid: number; output(): string; ended: Promise<unknown> }

/** Resolves when connections are accepted. It ends with the process that starts it, however that one ends. */
async function startPostmaster(args: string[]): Promise<Run> {
  const command = unprivileged(['--pdeathsig=QUIT', programOf('postgres'), ...args])
  const child = spawn(...command, { cwd: '/', stdio: ['ignore', 'ignore', 'pipe'] })
  let output = ''
  const ended = once(child, 'exit')
  await new Promise<void>((resolve, reject) => {
    child.stderr.on('data', (text: Buffer) => {
      output += text
      if (/ready to accept (read-only )?connections/.test(output)) resolve()
    })
    child.on('close', () => reject(new Error(`PostgreSQL ended before it was ready: ${output}`)))
    child.on('error', reject)
  })
  return { pid: child.pid ?? 0, output: () => output, ended }
}

/** The postmaster is stopped first: it can neither see its children die nor start others. */
function cutOff(postmaster: number): void {
  process.kill(postmaster, 'SIGSTOP')
  for (const pid of [...childrenOf(postmaster), postmaster]) process.kill(pid, 'SIGKILL')
}

function childrenOf(pid: number): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number)
}

/** A process that has ended, and was not waited for, counts as ended. */
function isAlive(pid: number): boolean {
  try {
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}
