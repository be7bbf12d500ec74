import { chmodSync, closeSync, existsSync, openSync, rmSync } from 'node:fs'
import { createConnection, createServer, type Socket } from 'node:net'
import { basename, dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Logger } from 'pino'
import type { AccountDeps } from '../accounts/api-key.ts'
import { Failure } from '../errors.ts'
import { COMMANDS, type CommandName, isCommandName } from './commands.ts'

// Commands for a running server: one JSON line each way over a socket that only its user can open.

/** A Unix socket's address holds 107 bytes; through the folder's handle any path is short enough. */
const LONGEST_PATH = 100

/** Answers commands until stopped. The caller holds the folder's lock, so a socket that lies there is a dead server's. */
export async function startControl(path: string, deps: AccountDeps, log: Logger): Promise<{ stop(): Promise<void> }> {
  rmSync(path, { force: true })
  const server = createServer((socket) => answer(socket, deps, log))
  await using place = shortPath(path)
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(place.path, resolve))
  chmodSync(path, 0o600)
  return {
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
      }),
  }
}

function answer(socket: Socket, deps: AccountDeps, log: Logger): void {
  socket.on('error', (error) => log.debug({ err: error }, 'a command’s connection broke'))
  createInterface(socket).once('line', (line) => {
    run(line, deps)
      .catch((error) => {
        if (!(error instanceof Failure)) log.error({ err: error }, 'a command failed')
        return { error: error instanceof Failure ? error.message : 'The command failed; the server’s log says why.' }
      })
      .then((reply) => socket.end(`${JSON.stringify(reply)}\n`))
  })
}

async function run(line: string, deps: AccountDeps): Promise<{ result: unknown }> {
  const { name, args }: { name?: unknown; args?: unknown } = JSON.parse(line)
  if (!isCommandName(name))
    throw new Failure('invalid', 'The running server does not know this command. Restart it with this version.')
  return { result: await COMMANDS[name].run(deps, args) }
}

/** Sends a command to the running server. @throws Failure with the server's words */
export async function sendCommand(path: string, name: CommandName, args: unknown): Promise<unknown> {
  if (!existsSync(path))
    throw new Failure(
      'unavailable',
      'The data folder is in use, but its server does not listen for commands yet. Try again in a moment.',
    )
  await using place = shortPath(path)
  const socket = createConnection(place.path)
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  socket.once('error', (cause) =>
    reject(
      new Failure('unavailable', 'The running server cannot be reached. Run this as the same user as the server.', { cause }),
    ),
  )
  socket.once('close', () => reject(new Failure('unavailable', 'The server stopped before it answered.')))
  createInterface(socket).once('line', resolve)
  socket.write(`${JSON.stringify({ name, args })}\n`)
  const reply: { result?: unknown; error?: string } = JSON.parse(await promise)
  if (reply.error !== undefined) throw new Failure('invalid', reply.error)
  return reply.result
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
