import { type ChildProcess, spawn } from 'node:child_process'
import { Socket as Datagrams } from 'node:dgram'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, Server } from 'node:net'
import { join } from 'node:path'
import { joinSockets } from './join-sockets.ts'
import type { Wish } from './wishes.ts'

/** A network namespace, held by a process that ends with this one. Needs root. */
export type Namespace = {
  pid: number
  /** A socket that listens there, for this process. */
  listen(address: string, port: number): Promise<Server>
  /** A datagram socket there, for this process. */
  bind(address: string, port: number): Promise<Datagrams>
  /** A port of this process's loopback that leads to the same port of that loopback. */
  openDoor(): Promise<{ port: number; close(): void }>
  end(): Promise<void>
}

/**
 * @param program what runs in it: it grants wishes (wishes.ts)
 * @param unshared further namespaces, as options of `unshare`
 */
export async function enterNamespace(program: string, folder: string, unshared: string[] = []): Promise<Namespace> {
  const command = ['--net', ...unshared, '--', process.execPath, program, folder]
  const child = spawn('unshare', command, { stdio: ['ignore', 'inherit', 'pipe', 'ipc'] })
  const ended = once(child, 'exit')
  let output = ''
  child.stderr?.on('data', (text: Buffer) => {
    output += text
  })
  const ready = new Promise<void>((resolve) => child.once('message', () => resolve()))
  await Promise.race([
    ready,
    ended.then(() => {
      throw new Error(`no network namespace could be made; it takes root, util-linux and iproute2: ${output}`)
    }),
  ])
  let turn: Promise<unknown> = Promise.resolve()
  /** One wish at a time. */
  function ask(wish: Wish): Promise<Server | Datagrams | undefined> {
    const answer = turn.then(() => askChild(child, wish))
    turn = answer.catch(() => undefined)
    return answer
  }
  return {
    pid: child.pid ?? 0,
    async listen(address, port) {
      const made = await ask({ listen: { address, port } })
      if (made instanceof Server) return made
      throw new Error('nothing listens there')
    },
    async bind(address, port) {
      const made = await ask({ bind: { address, port } })
      if (made instanceof Datagrams) return made
      throw new Error('no socket was bound there')
    },
    async openDoor() {
      const door = createServer((outer) => joinSockets(outer, connect(join(folder, `door-${port}`)))).listen(0, '127.0.0.1')
      await once(door, 'listening')
      const { port } = door.address() as AddressInfo
      await ask({ door: port })
      return { port, close: () => void door.close() }
    },
    async end() {
      child.kill('SIGKILL')
      await ended
    },
  }
}

/** The socket that was made, once it is this process's alone. */
function askChild(child: ChildProcess, wish: Wish): Promise<Server | Datagrams | undefined> {
  return new Promise((resolve, reject) => {
    let made: Server | Datagrams | undefined
    const listener = (message: { made?: true; given?: true; error?: string }, handle: unknown) => {
      if (message.made && (handle instanceof Server || handle instanceof Datagrams)) made = handle
      if (message.made) return
      child.off('message', listener)
      if (message.error) reject(new Error(`${JSON.stringify(wish)}: ${message.error}`))
      else resolve(made)
    }
    child.on('message', listener)
    child.send(wish)
  })
}
