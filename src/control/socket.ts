import { chmodSync, closeSync, existsSync, openSync, rmSync } from 'node:fs'
import { createConnection, createServer, type Socket } from 'node:net'
import { basename, dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Logger } from 'pino'
import { type Config, dataPaths } from '../config.ts'
import { Failure, type FailureKind } from '../errors.ts'
import { lockDataFolder } from '../installation/lock.ts'
import { COMMANDS, type CommandName } from './commands.ts'
import { SERVER_COMMANDS, type ServerCommandName, type ServerDeps } from './server-commands.ts'

// Commands for a running server: one JSON line each way over a socket that only its user can open.

/** A Unix socket's address holds 107 bytes; through the folder's handle any path is short enough. */
const LONGEST_PATH = 100

/** Answers commands until stopped. The caller holds the folder's lock, so a socket that lies there is a dead server's. */
export async function startControlSocket(path: string, deps: ServerDeps, log: Logger): Promise<{ stop(): Promise<void> }> {
  rmSync(path, { force: true })
  const silent = new Set<Socket>()
  const server = createServer((socket) => {
    silent.add(socket)
    answer(socket, deps, log, () => silent.delete(socket))
  })
  await using place = shortPath(path)
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(place.path, resolve))
  chmodSync(path, 0o600)
  return {
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        for (const socket of silent) socket.destroy() // what was asked is answered; who asks nothing would hold up the stop
      }),
  }
}

function answer(socket: Socket, deps: ServerDeps, log: Logger, asked: () => void): void {
  socket.once('close', asked)
  socket.on('error', (error) => log.debug({ err: error }, 'a command’s connection broke'))
  firstLine(socket, (line) => {
    asked()
    run(line, deps)
      .catch((error) => {
        if (!(error instanceof Failure)) log.error({ err: error }, 'a command failed')
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

/** Sends a command to the running server. @throws Failure with the server's words */
export async function sendCommand(path: string, name: CommandName | ServerCommandName, args: unknown): Promise<unknown> {
  if (!existsSync(path)) throw notYetListening()
  await using place = shortPath(path)
  const socket = createConnection(place.path)
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  socket.once('error', (cause: NodeJS.ErrnoException) =>
    // Nobody listens: the socket is a dead server's, and who holds the folder has only just begun.
    reject(cause.code === 'ECONNREFUSED' ? notYetListening() : unreachable(cause)),
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

function notYetListening(): Failure {
  return new Failure(
    'unavailable',
    'The data folder is in use, but no server on it listens for commands yet. Try again in a moment.',
  )
}

function unreachable(cause: unknown): Failure {
  return new Failure('unavailable', 'The running server cannot be reached. Run this as the same user as the server.', { cause })
}

function shortPath(path: string): { path: string } & AsyncDisposable {
  if (Buffer.byteLength(path) <= LONGEST_PATH) return { path, async [Symbol.asyncDispose]() {} }
  const folder = openSync(dirname(path), 'r')
  return {
    path: join('/proc/self/fd', String(folder), basename(path)),
    async [Symbol.asyncDispose]() {
      closeSync(folder)
    },
  }
}
