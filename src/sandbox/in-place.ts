import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { Server } from 'node:net'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { Failure } from '../errors.ts'
import { LOOPBACK } from './loopback-port.ts'
import type { SealedBlocks } from './media-run.ts'

// Sources that are too large for a copy: ffmpeg reads them with seeks over HTTP, from a server in this process, which reads the blocks that
// it needs where they are stored. The network of the sandbox is its own and has nothing but that server’s port.

const BLOCK_BYTES = 2 ** 20
/** Demuxers go back and forth between a few places. */
const BLOCKS_IN_MEMORY = 12
const BLOCKS_AHEAD = 2

/** The blocks from the first to the last. */
export async function* readOn({ sizeBytes, read }: SealedBlocks): AsyncGenerator<Buffer> {
  for (let number = 0; number * BLOCK_BYTES < sizeBytes; number++) yield await read(number)
}

type BlockServer = AsyncDisposable & {
  /** For a run without a sandbox. @returns the address */
  listen(): Promise<string>
  /** Opens the port in the network of a sandbox. @param pid of a process in it @param nsenter the program */
  listenIn(pid: number, nsenter: string | undefined): Promise<void>
}

/** @param onFailure called when what was asked for cannot be read: ffmpeg takes it for the end of the file, and reports no error */
export function serveBlocks(blocks: SealedBlocks, onFailure: (error: unknown) => void): BlockServer {
  const { sizeBytes } = blocks
  /** In the order of their last use. */
  const recent = new Map<number, Promise<Buffer>>()
  const listeners: Server[] = []
  const server = createServer((request, reply) => {
    send(request, reply).catch((error: unknown) => {
      onFailure(error)
      reply.destroy()
    })
  })

  function read(number: number): Promise<Buffer> {
    const block = recent.get(number) ?? blocks.read(number)
    block.catch(() => undefined) // one that was read ahead may never be needed
    recent.delete(number)
    recent.set(number, block)
    for (const oldest of recent.keys()) {
      if (recent.size <= BLOCKS_IN_MEMORY) break
      recent.delete(oldest)
    }
    return block
  }

  async function send({ headers }: IncomingMessage, reply: ServerResponse): Promise<void> {
    const [, from = '0'] = /^bytes=(\d{1,15})-$/.exec(headers.range ?? '') ?? []
    const first = Number(from)
    if (first >= sizeBytes) return void reply.writeHead(416, { 'Content-Range': `bytes */${sizeBytes}` }).end()
    reply.writeHead(206, {
      'Content-Range': `bytes ${first}-${sizeBytes - 1}/${sizeBytes}`,
      'Content-Length': sizeBytes - first,
      Connection: 'close',
    })
    const closed = new Promise((resolve) => reply.once('close', resolve).on('error', resolve))
    for (let at = first; at < sizeBytes && !reply.destroyed; ) {
      const number = Math.floor(at / BLOCK_BYTES)
      const block = read(number)
      for (let ahead = 1; ahead <= BLOCKS_AHEAD && (number + ahead) * BLOCK_BYTES < sizeBytes; ahead++) read(number + ahead)
      const bytes = (await block).subarray(at - number * BLOCK_BYTES)
      at += bytes.length
      if (!reply.write(bytes)) await Promise.race([closed, new Promise((resolve) => reply.once('drain', resolve))])
    }
    reply.end()
  }

  return {
    async listen() {
      server.listen(0, LOOPBACK.host)
      await once(server, 'listening')
      const address = server.address()
      return `http://${LOOPBACK.host}:${typeof address === 'object' ? address?.port : ''}/`
    },
    async listenIn(pid, nsenter) {
      if (nsenter === undefined) throw new Failure('unavailable', 'nsenter is not installed: run apt-get install util-linux')
      const listener = await openPortIn(pid, nsenter)
      listeners.push(listener.on('connection', (socket) => server.emit('connection', socket)))
    },
    async [Symbol.asyncDispose]() {
      for (const listener of listeners) listener.close()
      server.close()
      server.closeAllConnections()
    },
  }
}

/** A process joins the network, listens there, passes what it listens on to this one, and ends. */
async function openPortIn(pid: number, nsenter: string): Promise<Server> {
  const worker = fileURLToPath(new URL('./loopback-worker.ts', import.meta.url))
  const join = ['--target', String(pid), '--user', '--net', '--preserve-credentials', '--', process.execPath, worker]
  const child = spawn(nsenter, join, { stdio: ['ignore', 'ignore', 'pipe', 'ipc'], env: {} })
  const listener = Promise.withResolvers<Server>()
  child.once('message', (_, handle) => {
    if (handle instanceof Server) listener.resolve(handle)
  })
  child.once('error', listener.reject)
  const problem = child.stderr ? text(child.stderr) : Promise.resolve('')
  const disconnected = once(child, 'disconnect') // what it has sent comes first
  disconnected.catch(() => undefined)
  child.once('exit', async (code) => {
    await disconnected
    const [why] = (await problem).trim().split('\n')
    listener.reject(new Failure('unavailable', `A source cannot be read in place here: nsenter ended with ${code}: ${why}.`))
  })
  return listener.promise
}
