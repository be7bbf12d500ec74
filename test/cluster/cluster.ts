import { randomBytes } from 'node:crypto'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { findNginx } from '../../bench/peers/nginx.ts'
import { type BucketAddress, openBucket } from '../../src/storage/s3/bucket.ts'
import { writeCertificate } from '../certificate.ts'
import { readSteps } from '../docs/steps.ts'
import { shiftedClock } from '../faults/faked-clock.ts'
import { createDatabase, openCluster as openPostgres, type Reached } from '../postgres/cluster.ts'
import { handlesOf, serverEnvironment } from '../reelgate.ts'
import { openObjectStore, type ReachedStore } from '../s3/radosgw.ts'
import { type Machine, type Network, type NetworkName, openNetwork } from './network.ts'
import { type Program, startProgram } from './program.ts'

// Servers, workers, a database, a store and a proxy, each on a machine of its own in network namespaces: for tests, and by hand with
// scripts/cluster.js. What there is comes as a list.

/** One machine and what runs there. Parts are started in their order, and use those before them. */
export type Part =
  /** PostgreSQL: for all servers. @param of one that runs; else one of its own */
  | { kind: 'database'; name: string; of?: Reached }
  /** An S3 store: for the files of all servers. */
  | { kind: 'store'; name: string; of?: ReachedStore }
  /** Without a database it has SQLite, without a store a folder. All have one master key. */
  | { kind: 'server'; name: string; env?: Record<string, string>; wrapper?: string[] }
  /** nginx with TLS on the network outside, in front of all servers in turn. */
  | { kind: 'proxy'; name: string }
  /** It reaches the proxy's one port, and nothing else. */
  | ({ kind: 'worker'; name: string } & WorkerOptions)

export type WorkerOptions = {
  isTrusted?: boolean
  /** Of `reelgate worker`, such as `--jobs 1`. */
  options?: string[]
  env?: Record<string, string>
  /** What starts it, such as `taskset -c 0` or faketime. */
  wrapper?: string[]
  /** Where parts of sources are kept, such as a small disk. */
  cacheFolder?: string
}

type Server = ReturnType<typeof handlesOf> & { machine: Machine; program: Program }
type Worker = { machine: Machine; program: Program; token: string; cacheFolder: string }

export type Cluster = {
  folder: string
  /** The way in of this process: through the proxy where there is one, else the first server. */
  url: string
  server(name?: string): Server
  worker(name: string): Worker
  machine(name: string): Machine
  program(name: string): Program
  setCut: Network['setCut']
  /** Starts one more part. */
  add(part: Part): Promise<void>
  end(): Promise<void>
}

const ROOT = join(import.meta.dirname, '..', '..')
const REELGATE = [process.execPath, join(ROOT, 'bin', 'main.js')]
const ON: Record<Part['kind'], NetworkName[]> = {
  database: ['inside'],
  store: ['inside'],
  server: ['inside'],
  proxy: ['inside', 'outside'],
  worker: ['outside'],
}

/** Starts all parts. The caller ends it. */
export async function startCluster(parts: readonly Part[]): Promise<Cluster> {
  const folder = await mkdtemp(join(tmpdir(), 'reelgate-cluster-'))
  const ends: (() => unknown)[] = [() => rm(folder, { recursive: true, force: true })]
  const end = async () => {
    for (const undo of ends.splice(0).reverse()) await undo()
  }
  const machines = new Map<string, Machine>()
  const programs = new Map<string, Program>()
  const servers = new Map<string, Server>()
  const workers = new Map<string, Worker>()
  /** For the environment of servers. */
  const shared: Record<string, string> = { REELGATE_MASTER_KEY_FILE: join(folder, 'master.key') }
  let databaseUrl: string | undefined
  let bucket: BucketAddress | undefined
  let proxy: { machine: Machine; certificate: string; url: string } | undefined

  async function startDatabase(machine: Machine, of?: Reached): Promise<void> {
    const reached = of ?? (await openOwn(openPostgres({ settings: { shared_buffers: '64MB' } })))
    databaseUrl = await createDatabase(reached.url)
    shared.REELGATE_DATABASE_URL = await movedTo(machine, databaseUrl, 5432)
  }

  async function startStore(machine: Machine, of?: ReachedStore): Promise<void> {
    const { endpoint, ...credentials } = of ?? (await openOwn(openObjectStore()))
    bucket = { endpoint, region: 'us-east-1', bucket: `cluster-${randomBytes(6).toString('hex')}`, prefix: '', credentials }
    await openBucket(bucket).send({ method: 'PUT' })
    shared.REELGATE_STORAGE_URL = `s3://${bucket.bucket}?endpoint=${await movedTo(machine, endpoint, 9000)}`
    shared.AWS_ACCESS_KEY_ID = credentials.accessKeyId
    shared.AWS_SECRET_ACCESS_KEY = credentials.secretAccessKey
  }

  async function openOwn<T extends { remove(): Promise<void> }>(opening: Promise<T>): Promise<T> {
    const own = await opening
    ends.push(() => own.remove())
    return own
  }

  async function startServer(machine: Machine, { name, env = {}, wrapper = [] }: Part & { kind: 'server' }): Promise<void> {
    const port = await machine.openDoor()
    const dataDir = join(folder, name, 'data')
    await mkdir(join(folder, name))
    const proxies = [...machines.values()]
      .filter((each) => each.name !== name && isProxy(each))
      .map((each) => each.addressOn('inside'))
    const location = {
      ...{ dataDir, databaseUrl, bucket, masterKeyFile: shared.REELGATE_MASTER_KEY_FILE ?? '', remove: async () => undefined },
      env: {
        ...shared,
        REELGATE_DATA: dataDir,
        ...(proxies.length > 0 && { REELGATE_TRUSTED_PROXIES: proxies.join() }),
      },
    }
    const all = serverEnvironment(location, { HOST: '0.0.0.0', PORT: String(port), ...env })
    const program = await startProgram([...machine.wrapper, ...wrapper, ...REELGATE, 'serve'], all, /serves http/)
    programs.set(name, program)
    const [first] = servers.values()
    const apiKey = first?.owner.apiKey ?? /API secret {2}(\w{64})/.exec(program.output())?.[1] ?? ''
    servers.set(name, { ...handlesOf(location, all, `http://127.0.0.1:${port}`, apiKey), machine, program })
  }

  const isProxy = ({ name }: Machine) => parts.some((part) => part.kind === 'proxy' && part.name === name)

  async function startProxy(machine: Machine): Promise<void> {
    const { REELGATE_PUBLIC_URL: url = '' } = shared
    const own = join(folder, machine.name)
    await mkdir(own)
    const outside = machine.addressOn('outside')
    const { file, keyFile } = writeCertificate(own, `IP:${outside}`, 20, shiftedClock('-1d'))
    const behind = [...servers.values()].map((server) => `${server.machine.addressOn('inside')}:${new URL(server.url).port}`)
    await writeFile(
      join(own, 'nginx.conf'),
      await proxyConfiguration({ folder: own, listens: [`${outside}:443 ssl`, new URL(url).host], behind, file, keyFile }),
    )
    const args = ['-p', own, '-c', join(own, 'nginx.conf'), '-e', join(own, 'error.log')]
    programs.set(machine.name, await startProgram([...machine.wrapper, findNginx(), ...args], {}))
    while (
      !(await fetch(`${url}/healthz`).then(
        ({ ok }) => ok,
        () => false,
      ))
    )
      await pause(50)
    proxy = { machine, certificate: file, url }
  }

  async function startWorker(machine: Machine, part: { name: string } & WorkerOptions): Promise<void> {
    const { name, isTrusted = false, options = ['--jobs', '1'], env = {}, wrapper = [] } = part
    const [server] = servers.values()
    if (!server || !proxy) throw new Error('a worker needs a server, and a proxy with TLS')
    const { stdout, stderr } = await server.cli('worker', 'add', name, ...(isTrusted ? ['--trusted'] : []), '--json')
    if (stdout === '') throw new Error(stderr)
    const { token } = JSON.parse(stdout) as { token: string }
    const cacheFolder = part.cacheFolder ?? join(folder, name, 'cache')
    const args = ['worker', '--server', `https://${proxy.machine.addressOn('outside')}`, '--cache', cacheFolder, ...options]
    const all = { REELGATE_WORKER_TOKEN: token, REELGATE_SANDBOX: 'weak', NODE_EXTRA_CA_CERTS: proxy.certificate, ...env }
    const program = await startProgram([...machine.wrapper, ...wrapper, ...REELGATE, ...args], all)
    programs.set(name, program)
    workers.set(name, { machine, program, token, cacheFolder })
  }

  function start(part: Part): Promise<void> {
    const machine = get(machines, part.name)
    if (part.kind === 'database') return startDatabase(machine, part.of)
    if (part.kind === 'store') return startStore(machine, part.of)
    if (part.kind === 'server') return startServer(machine, part)
    if (part.kind === 'proxy') return startProxy(machine)
    return startWorker(machine, part)
  }

  try {
    const network = await openNetwork()
    ends.push(() => network.end())
    ends.push(() => Promise.all([...programs.values()].map((program) => program.kill())))
    const addMachine = async ({ name, kind }: Part) => void machines.set(name, await network.addMachine(name, ON[kind]))
    // All addresses are known before the first program starts.
    for (const part of parts) await addMachine(part)
    const front = parts.find(({ kind }) => kind === 'proxy')
    if (front) shared.REELGATE_PUBLIC_URL = `http://127.0.0.1:${await get(machines, front.name).openDoor()}`
    for (const part of parts) await start(part)
    return {
      folder,
      get url() {
        return proxy?.url ?? [...servers.values()][0]?.url ?? ''
      },
      server: (name) => (name === undefined ? first(servers) : get(servers, name)),
      worker: (name) => get(workers, name),
      machine: (name) => get(machines, name),
      program: (name) => get(programs, name),
      setCut: network.setCut,
      async add(part) {
        await addMachine(part)
        await start(part)
      },
      end,
    }
  } catch (error) {
    await end()
    throw error
  }
}

/** The same address on another machine. */
async function movedTo(machine: Machine, url: string, port: number): Promise<string> {
  const moved = new URL(url)
  await machine.offer('inside', port, Number(moved.port))
  moved.host = `${machine.addressOn('inside')}:${port}`
  return moved.pathname === '/' ? moved.origin : moved.href
}

function get<T>(from: ReadonlyMap<string, T>, name: string): T {
  const found = from.get(name)
  if (found === undefined) throw new Error(`the cluster has no "${name}" of this kind`)
  return found
}

function first<T>(from: ReadonlyMap<string, T>): T {
  for (const each of from.values()) return each
  throw new Error('the cluster has no server')
}

type Proxied = { folder: string; listens: string[]; behind: string[]; file: string; keyFile: string }

/** The lines of docs/operations.md for several servers, with these addresses and files. */
async function proxyConfiguration({ folder, listens, behind, file, keyFile }: Proxied): Promise<string> {
  const ofItsOwn = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((kind) => `${kind}_temp_path ${folder}/${kind};`)
  const lines = (await readSteps('Several servers')).at(-1)?.lines?.text ?? ''
  const servers = /^ *server 10\.0\.0\.1:8080(.*\n)(?: *server 10\.0\.0\..*\n)*/gm
  const recipe = lines
    .replace(servers, (_, options: string) => behind.map((address) => `server ${address}${options}`).join(''))
    .replace('listen 443 ssl;', listens.map((address) => `listen ${address};`).join(' '))
    .replace(/server_name .*;/, '')
    .replace(/ssl_certificate .*;/, `ssl_certificate ${file};`)
    .replace(/ssl_certificate_key .*;/, `ssl_certificate_key ${keyFile};`)
    .replace('Host $host', 'Host $http_host') // its port is not that of https
  return `${process.getuid?.() === 0 ? 'user root;' : ''}
daemon off; pid ${folder}/pid;
events {}
http {
  access_log off;
  ${ofItsOwn.join('\n  ')}
  ${recipe}
}
`
}
