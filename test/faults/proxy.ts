import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'

/** The network between two programs, on loopback. */
export type Network = {
  /** The address with the proxy's port. */
  through(url: string): string
  /** Passes everything on, to `target` from now on. */
  forward(target?: string): void
  /** Nothing comes through any more, in either direction, without notice: new connections are taken and say nothing. */
  blackHole(): void
  /** New connections are cut immediately, and those that are open. */
  refuse(): void
  /** Cuts what stands without a goodbye; the next one comes through. */
  reset(): void
  /** Once a client has sent `asked`, its next answer with these words does not come through, and its connection says nothing from then on. */
  swallowAnswer(words: string, asked: string): Promise<void>
  /** What the server says has another text in the place of this one, of the same length. */
  rewrite(from: string, to: string): void
}

type Mode = 'forward' | 'black-hole' | 'refuse'
type Pair = { client: Socket; server: Socket }

export async function startProxy(target: string): Promise<Network> {
  let mode: Mode = 'forward'
  let to = portOf(target)
  let swallowing: { words: string; asked: string; swallowed: () => void } | undefined
  let rewriting: { from: Buffer; to: Buffer } | undefined
  const pairs = new Set<Pair>()

  const proxy = createServer((client) => {
    if (mode === 'refuse') return void client.resetAndDestroy()
    const server = connect(to, '127.0.0.1')
    const pair = { client, server }
    pairs.add(pair)
    let isSilent = false
    let hasAsked = false
    client.on('data', (bytes: Buffer) => {
      hasAsked ||= swallowing !== undefined && bytes.includes(swallowing.asked)
      if (mode === 'forward' && !isSilent) server.write(bytes)
    })
    server.on('data', (bytes: Buffer) => {
      if (swallowing && hasAsked && bytes.includes(swallowing.words)) {
        isSilent = true
        swallowing.swallowed()
        swallowing = undefined
      }
      if (mode === 'forward' && !isSilent) client.write(rewriting ? replaced(bytes, rewriting.from, rewriting.to) : bytes)
    })
    for (const [here, there] of [
      [client, server],
      [server, client],
    ] as const) {
      here.on('error', () => undefined) // its end follows
      here.on('close', () => {
        // In a black hole an end is not noticed either, until it is cut.
        if (mode === 'black-hole' || isSilent) return
        pairs.delete(pair)
        there.destroy()
      })
    }
  }).listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  const { port } = proxy.address() as AddressInfo

  function cutAll() {
    for (const { client, server } of pairs) {
      client.resetAndDestroy()
      server.resetAndDestroy()
    }
  }
  onTestFinished(() => {
    proxy.close()
    cutAll()
  })
  return {
    through(url) {
      const address = new URL(url)
      address.port = String(port)
      return address.href
    },
    forward(target) {
      if (target !== undefined) to = portOf(target)
      mode = 'forward'
    },
    blackHole() {
      mode = 'black-hole'
    },
    refuse() {
      mode = 'refuse'
      cutAll()
    },
    reset: cutAll,
    swallowAnswer: (words, asked) =>
      new Promise((swallowed) => {
        swallowing = { words, asked, swallowed }
      }),
    rewrite(from, into) {
      rewriting = { from: Buffer.from(from), to: Buffer.from(into) }
    },
  }
}

const portOf = (url: string) => Number(new URL(url).port)

function replaced(bytes: Buffer, from: Buffer, to: Buffer): Buffer {
  const at = bytes.indexOf(from)
  if (at >= 0) to.copy(bytes, at)
  return bytes
}
