import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { randomBytes, randomInt, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'

/** An S3 store of our own, Ceph's gateway on one disk in memory: on loopback, in a folder of its own. */
export type ObjectStore = ReachedStore & {
  /** Ends what answers, by kill -9. Objects stay where they are. */
  kill(): Promise<void>
  /** Starts it again. */
  start(): Promise<void>
  /** Ends it, and removes its folder. */
  remove(): Promise<void>
}

export type ReachedStore = { endpoint: string; accessKeyId: string; secretAccessKey: string }

/** Its processes end with the one that starts it, however that one ends. */
export async function openObjectStore(): Promise<ObjectStore> {
  for (let tries = 1; ; tries++) {
    const folder = await mkdtemp(join(tmpdir(), 'reelgate-s3-'))
    const daemons: ChildProcess[] = []
    async function remove() {
      for (const daemon of daemons.toReversed()) await endDaemon(daemon)
      await rm(folder, { recursive: true, force: true })
    }
    try {
      return { ...(await startIn(folder, daemons)), remove }
    } catch (error) {
      await remove()
      if (tries === 5) throw error
    }
  }
}

const run = promisify(execFile)

/** No daemon takes longer. */
const STARTS_WITHIN_MS = 60_000

async function startIn(folder: string, daemons: ChildProcess[]): Promise<Omit<ObjectStore, 'remove'>> {
  // Below the ports that the kernel gives away. A hundred for each store: the monitor, the disk's own, the gateway.
  const base = 20_000 + 100 * randomInt(100)
  const [monitorPort, gatewayPort] = [base, base + 90]
  for (const name of ['mon', 'osd', 'rgw']) await mkdir(join(folder, name))
  const configuration = join(folder, 'ceph.conf')
  const [cluster, disk] = [randomUUID(), randomUUID()]
  await writeFile(configuration, configurationOf({ folder, cluster, monitorPort, gatewayPort }))
  const env = { PATH: process.env.PATH, CEPH_CONF: configuration }

  const ceph = (program: string, ...args: string[]) => run(program, args, { cwd: folder, env, timeout: STARTS_WITHIN_MS })
  function start(program: string, ...args: string[]) {
    const daemon = spawn('setpriv', ['--pdeathsig=KILL', program, ...args, '-f'], { cwd: folder, env, stdio: 'ignore' })
    daemons.push(daemon)
    return daemon
  }
  async function until(daemon: ChildProcess, isReady: () => Promise<boolean>) {
    for (const begunMs = performance.now(); !(await isReady().catch(() => false)); await pause(20)) {
      if (daemon.exitCode === null && performance.now() - begunMs < STARTS_WITHIN_MS) continue
      const log = await readFile(join(folder, 'daemon.log'), 'utf8')
      throw new Error(`${daemon.spawnargs.slice(2).join(' ')} did not start. ${log.slice(-2000)}`)
    }
  }

  await ceph('monmaptool', '--create', '--fsid', cluster, '--addv', 'a', `[v2:127.0.0.1:${monitorPort}]`, 'monmap')
  await ceph('ceph-mon', '-i', 'a', '--mkfs', '--monmap', 'monmap')
  const monitor = start('ceph-mon', '-i', 'a')
  await until(monitor, () => isListening(monitorPort))
  await ceph('ceph', '--connect-timeout', '20', 'osd', 'new', disk)
  await ceph('ceph-osd', '-i', '0', '--mkfs', '--osd-uuid', disk)
  const osd = start('ceph-osd', '-i', '0')
  await until(osd, async () => (await ceph('ceph', 'osd', 'stat')).stdout.includes('1 up'))
  async function startGateway() {
    const daemon = start('radosgw', '-n', 'client.rgw')
    await until(daemon, () => isListening(gatewayPort))
    return daemon
  }
  let gateway = await startGateway()
  const keys = { accessKeyId: randomBytes(8).toString('hex'), secretAccessKey: randomBytes(16).toString('hex') }
  await ceph(
    ...(['radosgw-admin', 'user', 'create', '--uid=tests', '--display-name=tests'] as const),
    `--access-key=${keys.accessKeyId}`,
    `--secret-key=${keys.secretAccessKey}`,
  )
  return {
    ...{ endpoint: `http://127.0.0.1:${gatewayPort}`, ...keys },
    kill: () => endDaemon(gateway),
    async start() {
      gateway = await startGateway()
    },
  }
}

/**
 * One disk, in memory, without sign-in between the parts. `crc`, the two lines of `paxos` and `tcp_nodelay` are needed: without them the
 * gateway waits for ever, the start takes 16 s, and every small answer 40 ms.
 */
function configurationOf(of: { folder: string; cluster: string; monitorPort: number; gatewayPort: number }): string {
  return `[global]
fsid = ${of.cluster}
mon host = [v2:127.0.0.1:${of.monitorPort}]
public addr = 127.0.0.1
ms bind port min = ${of.monitorPort + 10}
ms bind port max = ${of.monitorPort + 80}
auth cluster required = none
auth service required = none
auth client required = none
ms mon client mode = crc
ms mon service mode = crc
ms mon cluster mode = crc
run dir = ${of.folder}
admin socket = ${of.folder}/$name.asok
log file = ${of.folder}/daemon.log
mon cluster log file = ${of.folder}/cluster.log
crash dir = ${of.folder}
pid file =
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 1
osd pool default pgp num = 1
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
mon allow pool size one = true
mon data avail crit = 1
paxos propose interval = 0.02
paxos min wait = 0.01
[mon.a]
mon data = ${of.folder}/mon
[osd.0]
osd data = ${of.folder}/osd
osd objectstore = memstore
memstore device bytes = 8589934592
osd class update on start = false
[client.rgw]
rgw frontends = beast endpoint=127.0.0.1:${of.gatewayPort} tcp_nodelay=1
rgw data = ${of.folder}/rgw
rgw thread pool size = 64
rgw gc obj min wait = 2
rgw gc processor period = 5
rgw gc processor max time = 5
rgw dynamic resharding = false
rgw override bucket index max shards = 1
`
}

async function isListening(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1')
  try {
    await once(socket, 'connect')
    return true
  } finally {
    socket.destroy()
  }
}

async function endDaemon(daemon: ChildProcess): Promise<void> {
  if (daemon.exitCode !== null || daemon.signalCode !== null) return
  const ended = once(daemon, 'exit')
  daemon.kill('SIGKILL')
  await ended
}
