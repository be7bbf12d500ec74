import { execFileSync } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { connect, createServer, isIPv6 } from 'node:net'
import { join } from 'node:path'

// The process that holds a world (network-namespace.ts): it runs in the world's network and mount namespaces, and ends with the test's process.
// `unshare --net --mount node server-in-namespace.ts FOLDER`

export type Wish = { listen: { address: string; port: number } } | { bind: { address: string; port: number } } | { door: number }

const [folder = ''] = process.argv.slice(2)

/** Whose name server every program of the world asks. */
const NAME_SERVER = '9.9.9.9'
const FILES = {
  '/etc/resolv.conf': `nameserver ${NAME_SERVER}\noptions timeout:1 attempts:1\n`,
  '/etc/hosts': '127.0.0.1 localhost\n::1 localhost\n',
  '/etc/nsswitch.conf': 'hosts: files dns\n',
}

for (const [path, text] of Object.entries(FILES)) {
  const ours = join(folder, path.replaceAll('/', '_'))
  writeFileSync(ours, text)
  execFileSync('mount', ['--bind', ours, path])
}
// Every address there is belongs to this machine's loopback, so anything can be dialled, listened on, and nothing gets out.
const COMMANDS = [
  ...['link set lo up', 'addr add 8.8.4.4/32 dev lo', '-6 addr add 2a00:1450::4/128 dev lo'],
  ...['route add local default dev lo', '-6 route add local default dev lo'],
]
for (const command of COMMANDS) execFileSync('ip', command.split(' '))

process.on('disconnect', () => process.exit())
process.on('message', (wish: Wish) => {
  grant(wish).catch((error: Error) => process.send?.({ error: error.message }))
})
process.send?.({ ready: true })

async function grant(wish: Wish): Promise<void> {
  if ('door' in wish) return openDoor(wish.door)
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

/** A way in from the test's own network, which shares the file system but no port with this one. */
async function openDoor(port: number): Promise<void> {
  const server = createServer((outer) => {
    const inner = connect(port, '127.0.0.1')
    outer.pipe(inner).pipe(outer)
    outer.on('error', () => inner.destroy()).on('close', () => inner.destroy())
    inner.on('error', () => outer.destroy()).on('close', () => outer.destroy())
  }).listen(join(folder, `door-${port}`))
  await once(server, 'listening')
  process.send?.({ given: true })
}
