import type { Socket as Datagrams } from 'node:dgram'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer as createHttpServer, type RequestListener } from 'node:http'
import { createServer, isIP, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { enterNamespace, type Namespace } from '../namespace/enter.ts'
import type { StartOptions } from '../reelgate.ts'
import { answerQuery, type NameQuestion } from './name-server.ts'

/**
 * An internet of the test's own: a network namespace in which every address, public or not, lies on the loopback, with a name server
 * that the test scripts. The server under test runs inside, unchanged, and reaches nothing else. Listeners of the world are ordinary
 * closures of the test.
 *
 *     const world = await openWorld()
 *     const reelgate = await startReelgate(await world.around())       // options for the server, environment as usual
 *     world.names.set('videos.example', ['8.8.8.8'])                    // or a function: one answer after another
 *     await world.site('8.8.8.8', (request, response) => …)            // port 80; `serve` takes any server and port
 *     const canary = await world.canaries('127.0.0.1', '169.254.169.254')
 *     … expect(canary.received()).toEqual([])
 *
 * The test talks to the server as to any other (`reelgate.owner`, `reelgate.url`): the world has a door for that one port.
 * It sees what was mounted before it was opened. Needs root, as the tests of small disks do; without namespaces it throws.
 */
export type World = {
  /** Goes when the world does. */
  folder: string
  /** What starts a server in this world. @param env as in `StartOptions` */
  around(env?: Record<string, string>): Promise<StartOptions>
  /** What a name has: addresses, or what the n-th question for its IPv4 (`A`) or IPv6 (`AAAA`) addresses is answered. Others do not exist. */
  names: Map<string, string[] | ((question: NameQuestion) => string[])>
  /** Names that were asked for, in order; `A` and `AAAA` are two questions. */
  asked(): NameQuestion[]
  /** While it is down, asking for a name fails immediately. */
  nameServer: { stop(): Promise<void>; start(): Promise<void> }
  /** A web site at an address, on port 80. */
  site(address: string, listener: RequestListener): Promise<void>
  /** Any server of TCP, not listening yet, at an address. An IPv6 address is written without brackets. */
  serve(server: Server, address: string, port: number): Promise<void>
  /** Listeners on ports 80 and 443 that must not be reached. An entry may have ports of its own: `127.0.0.1#22`. */
  canaries(...addresses: string[]): Promise<{ received(): string[] }>
}

const NAME_SERVER = '9.9.9.9'

/** Opens a world; it ends when the test has finished. */
export async function openWorld(): Promise<World> {
  const { world, end } = await beginWorld()
  onTestFinished(end)
  return world
}

/** For a file whose tests share one world: the caller ends it in `afterAll`, after the servers in it. */
export async function openSharedWorld(): Promise<World & { end(): Promise<void> }> {
  const { world, end } = await beginWorld()
  return { ...world, end }
}

async function beginWorld(): Promise<{ world: World; end(): Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'reelgate-world-'))
  const ends: (() => unknown)[] = [() => rm(folder, { recursive: true, force: true })]
  const end = async () => {
    for (const undo of ends.splice(0).reverse()) await undo()
  }
  try {
    const inside = await enterNamespace(join(import.meta.dirname, 'server-in-namespace.ts'), folder, [
      '--mount',
      '--propagation',
      'private',
    ])
    ends.push(() => inside.end())
    return { world: await furnish(inside, folder, ends), end }
  } catch (error) {
    await end()
    throw error
  }
}

async function furnish(inside: Namespace, folder: string, ends: (() => unknown)[]): Promise<World> {
  const names: World['names'] = new Map()
  const asked: NameQuestion[] = []
  let nameSocket: Datagrams | undefined
  const nameServer = {
    async start() {
      const made = await inside.bind(NAME_SERVER, 53)
      nameSocket = made.on('message', (query, from) => {
        const answer = answerQuery(query, (question) => {
          const turn = asked.filter(({ name, type }) => name === question.name && type === question.type).length
          asked.push({ ...question, turn })
          const script = names.get(question.name)
          return typeof script === 'function' ? script({ ...question, turn }) : script
        })
        made.send(answer, from.port, from.address)
      })
    },
    async stop() {
      const closing = nameSocket
      nameSocket = undefined
      await new Promise<void>((resolve) => (closing ? closing.close(() => resolve()) : resolve()))
    },
  }
  await nameServer.start()
  ends.push(nameServer.stop)

  async function serve(server: Server, address: string, port: number): Promise<void> {
    server.listen(await inside.listen(address, port))
    ends.push(() => closeNow(server))
  }

  async function around(env: Record<string, string> = {}): Promise<StartOptions> {
    // The same port on both sides, so that the server's own address is the one that the test asks.
    const { port, close } = await inside.openDoor()
    ends.push(close)
    const wrapper = ['nsenter', `--net=/proc/${inside.pid}/ns/net`, `--mount=/proc/${inside.pid}/ns/mnt`, '--']
    return { wrapper, bySocket: true, env: { ...env, PORT: String(port) } }
  }

  return {
    folder,
    around,
    names,
    asked: () => asked,
    nameServer,
    serve,
    site: (address, listener) => serve(createHttpServer(listener), address, 80),
    async canaries(...addresses) {
      const received: string[] = []
      for (const entry of addresses) {
        const [address = '', ...ports] = entry.split('#')
        for (const port of ports.length > 0 ? ports.map(Number) : [80, 443]) {
          const canary = createServer((socket) => {
            received.push(`${isIP(address) === 6 ? `[${address}]` : address}:${port}`)
            socket.destroy()
          })
          await serve(canary, address, port)
        }
      }
      return { received: () => received }
    },
  }
}

async function closeNow(server: Server): Promise<void> {
  if ('closeAllConnections' in server && typeof server.closeAllConnections === 'function') server.closeAllConnections()
  server.close()
}
