import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { enterNamespace, type Namespace } from '../namespace/enter.ts'
import { joinSockets } from '../namespace/join-sockets.ts'

/** `inside` is that of servers, database and store; `outside` stands for the internet, and no way leads from one to the other. */
export type NetworkName = 'inside' | 'outside'

/** A computer of its own as far as the network goes; its files and cores are this computer's. */
export type Machine = {
  name: string
  addresses: string[]
  /** Where others on a network reach it. @throws Error when it is not on it */
  addressOn(network: NetworkName): string
  /** Starts a program there, put before its command line. */
  wrapper: string[]
  /** Offers what listens on this process's loopback at a port of this machine. */
  offer(network: NetworkName, port: number, behindPort: number): Promise<void>
  /** A port of this process's loopback that leads to the same port there. */
  openDoor(): Promise<number>
  /** Pulls its cables, or plugs them in again: what is sent meanwhile is lost without a word. */
  setLinked(isLinked: boolean): Promise<void>
}

/** Machines and their cables. They end with this process, however it ends. */
export type Network = {
  addMachine(name: string, on: readonly NetworkName[]): Promise<Machine>
  /** Breaks the way between two machines, or mends it: what is sent meanwhile is lost without a word. */
  setCut(name: string, other: string, isCut: boolean): Promise<void>
  end(): Promise<void>
}

const run = promisify(execFile)
const SUBNETS: Record<NetworkName, string> = { inside: '10.77.1', outside: '10.77.2' }
const HOLDER = join(import.meta.dirname, 'machine-in-namespace.ts')

export async function openNetwork(): Promise<Network> {
  const folder = await mkdtemp(join(tmpdir(), 'reelgate-network-'))
  const ends: (() => unknown)[] = [() => rm(folder, { recursive: true, force: true })]
  const namespaces: Namespace[] = []
  const machines = new Map<string, { entered: Namespace; addresses: string[] }>()

  async function enter(): Promise<Namespace> {
    const entered = await enterNamespace(HOLDER, folder)
    ends.push(() => entered.end())
    namespaces.push(entered)
    return entered
  }

  // Both switches are in a namespace of their own: this computer's interfaces stay as they are.
  const hub = await enter()
  const ipIn = ({ pid }: Namespace, command: string) =>
    run('nsenter', [`--net=/proc/${pid}/ns/net`, '--', 'ip', ...command.split(' ')])
  for (const network of Object.keys(SUBNETS)) {
    await ipIn(hub, `link add ${network} type bridge`)
    await ipIn(hub, `link set ${network} up`)
  }

  return {
    async addMachine(name, on) {
      const entered = await enter()
      const number = namespaces.length
      const cables = on.map((network) => ({ network, plug: `${network}${number}`, address: `${SUBNETS[network]}.${number}` }))
      for (const { network, plug, address } of cables) {
        await ipIn(hub, `link add ${plug} type veth peer name ${network} netns ${entered.pid}`)
        await ipIn(hub, `link set ${plug} master ${network} up`)
        await ipIn(entered, `addr add ${address}/24 dev ${network}`)
        await ipIn(entered, `link set ${network} up`)
      }
      function addressOn(network: NetworkName): string {
        const cable = cables.find((each) => each.network === network)
        if (!cable) throw new Error(`${name} is not on the network ${network}`)
        return cable.address
      }
      machines.set(name, { entered, addresses: cables.map(({ address }) => address) })
      return {
        name,
        addresses: cables.map(({ address }) => address),
        addressOn,
        wrapper: ['nsenter', `--net=/proc/${entered.pid}/ns/net`, '--'],
        async offer(network, port, behindPort) {
          const server = await entered.listen(addressOn(network), port)
          server.on('connection', (socket) => joinSockets(socket, connect(behindPort, '127.0.0.1')))
          ends.push(() => void server.close())
        },
        async openDoor() {
          const { port, close } = await entered.openDoor()
          ends.push(close)
          return port
        },
        async setLinked(isLinked) {
          for (const { plug } of cables) await ipIn(hub, `link set ${plug} ${isLinked ? 'up' : 'down'}`)
        },
      }
    },
    async setCut(name, other, isCut) {
      const there = machines.get(other)
      if (!there) throw new Error(`there is no machine ${other}`)
      // Answers have no way back.
      for (const address of machines.get(name)?.addresses ?? [])
        await ipIn(there.entered, `route ${isCut ? 'add' : 'del'} blackhole ${address}`)
    },
    async end() {
      for (const undo of ends.splice(0).reverse()) await undo()
    },
  }
}
