import { chmodSync, closeSync, existsSync, openSync, rmSync } from 'node:fs'
import { createConnection, createServer, type Socket } from 'node:net'
import { basename, dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Logger } from 'pino'
import type { Config } from '../config/config.ts'
import { dataPaths } from '../config/data-paths.ts'
import { Failure, type FailureKind } from '../errors.ts'
import { lockDataFolder } from '../installation/lock.ts'
import { COMMANDS, type CommandName } from './commands.ts'
import { SERVER_COMMANDS, type ServerCommandName, type ServerDeps } from './server-commands.ts'

// Commands for a running server: one JSON line each way over a socket that only its user can open.

/** A Unix socket's address holds 107 bytes; through the folder's handle any path is short enough. */
const MAX_PATH_BYTES = 100

/** Runs commands until stopped. The caller holds the folder's lock, so an existing socket is that of a dead server. */
export async function startControlSocket(path: string, deps: ServerDeps, log: Logger): Promise<{ stop(): Promise<void> }> {
  rmSync(path, { force: true })
  const idle = new Set<Socket>()
  const server = createServer((socket) => {
    idle.add(socket)
    serveClient(socket, deps, log, () => idle.delete(socket))
  })
  await using address = shortPath(path)
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(address.path, resolve))
  chmodSync(path, 0o600)
  return {
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        for (const socket of idle) socket.destroy() // commands in progress are answered; an idle client would delay the stop
      }),
  }
}

function serveClient(socket: Socket, deps: ServerDeps, log: Logger, onCommand: () => void): void {
  socket.once('close', onCommand)
  socket.on('error', (error) => log.debug({ err: error }, 'command: connection broken'))
  firstLine(socket, (line) => {
    onCommand()
    run(line, deps)
      .catch((error) => {
        if (!(error instanceof Failure)) log.error({ err: error }, 'command: failed')
        return error instanceof Failure
          ? { error: error.message, kind: error.kind }
          : { error: 'The command failed; the server’s log says why.' }
      })
      .then((reply) => socket.end(`${JSON.stringify(reply)}\n`, () => socket.destroy()))
  })
}

async function run(line: string, deps: ServerDeps): Promise<{ result: unknown }> {
  const { name, args }: { name?: unknown; args?: unknown } = JSON.parse(line)
  const command = Object.entries({ ...COMMANDS, ...SERVER_COMMANDS }).find(([known]) => known === name)?.[1]
  if (!command) throw new Failure('invalid', 'The running server does not know this command. Restart it with this version.')
  return { result: await command.run(deps, args) }
}

/** @throws Failure that says how to start one */
export function assertServerRuns(config: Config): void {
  if (existsSync(dataPaths(config.dataDir).lock)) {
    const lock = lockDataFolder(config)
    if (!lock) return
    lock.release()
  }
  throw new Failure(
    'unavailable',
    `No server runs on ${config.dataDir}. Start it with npm start in another terminal, or set REELGATE_DATA to the folder of the one that runs, then try again.`,
  )
}

/** Sends a command to the running server. @throws Failure with the server's message; `NotListening` */
export async function sendCommand(path: string, name: CommandName | ServerCommandName, args: unknown): Promise<unknown> {
  if (!existsSync(path)) throw new NotListening()
  await using address = shortPath(path)
  const socket = createConnection(address.path)
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  socket.once('error', (cause: NodeJS.ErrnoException) =>
    // No process listens: the socket is that of a dead server, and the one that holds the folder is still starting.
    reject(cause.code === 'ECONNREFUSED' ? new NotListening() : unreachable(cause)),
  )
  socket.once('close', () => reject(new Failure('unavailable', 'The server stopped before it answered.')))
  firstLine(socket, resolve)
  socket.write(`${JSON.stringify({ name, args })}\n`)
  const reply: { result?: unknown; error?: string; kind?: FailureKind } = JSON.parse(await promise)
  if (reply.error !== undefined) throw new Failure(reply.kind ?? 'invalid', reply.error)
  return reply.result
}

function firstLine(socket: Socket, read: (line: string) => void): void {
  const lines = createInterface(socket)
  lines.on('error', () => undefined) // it repeats the socket's, which has its own listener
  lines.once('line', read)
}

/** A server holds the folder before it listens, and another command holds it for a moment. */
export class NotListening extends Failure {
  constructor() {
    super('unavailable', 'The data folder is in use, but no server on it listens for commands yet. Try again in a moment.')
  }
}

function unreachable(cause: unknown): Failure {
  return new Failure('unavailable', 'The running server cannot be reached. Run this as the same user as the server.', { cause })
}

function shortPath(path: string): { path: string } & AsyncDisposable {
  if (Buffer.byteLength(path) <= MAX_PATH_BYTES) return { path, async [Symbol.asyncDispose]() {} }
  const folder = openSync(dirname(path), 'r')
  return {
    path: join('/proc/self/fd', String(folder), basename(path)),
    async [Symbol.asyncDispose]() {
      closeSync(folder)
    },
  }
}
