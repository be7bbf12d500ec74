import { execFileSync } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { connect, createServer, isIPv6 } from 'node:net'
import { join } from 'node:path'
import { joinSockets } from './join-sockets.ts'

// What a process in a network namespace does for the one that made it (enter.ts).

export type Wish = { listen: { address: string; port: number } } | { bind: { address: string; port: number } } | { door: number }

/** Says that the namespace is ready, and grants wishes until its maker ends. @param folder of sockets: files are the same on both sides */
export function grantWishes(folder: string): void {
  process.on('disconnect', () => process.exit())
  process.on('message', (wish: Wish) => {
    grant(folder, wish).catch((error: Error) => process.send?.({ error: error.message }))
  })
  process.send?.({ ready: true })
}

async function grant(folder: string, wish: Wish): Promise<void> {
  if ('door' in wish) return openDoor(folder, wish.door)
  if ('bind' in wish) return bindFor(wish.bind)
  const { address, port } = wish.listen
  // Of IPv6 a route alone allows no listener.
  if (isIPv6(address)) execFileSync('ip', ['-6', 'addr', 'replace', `${address}/128`, 'dev', 'lo', 'nodad'])
  const server = createServer().listen({ host: address, port, ipv6Only: true })
  await once(server, 'listening')
  handOver(server)
}

async function bindFor({ address, port }: { address: string; port: number }): Promise<void> {
  const socket = createSocket('udp4').bind(port, address)
  await once(socket, 'listening')
  handOver(socket)
}

/** A socket keeps the network in which it was made, whichever process reads it. */
function handOver(made: ReturnType<typeof createServer> | ReturnType<typeof createSocket>): void {
  process.send?.({ made: true }, made, {}, () => made.close(() => process.send?.({ given: true })))
}

/** A way in from the maker's network, which shares the file system but no port with this one. */
async function openDoor(folder: string, port: number): Promise<void> {
  const server = createServer((outer) => joinSockets(outer, connect(port, '127.0.0.1'))).listen(join(folder, `door-${port}`))
  await once(server, 'listening')
  process.send?.({ given: true })
}
