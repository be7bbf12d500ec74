import { setTimeout as pause } from 'node:timers/promises'
import type { Static, TSchema } from 'typebox'
import { Value } from 'typebox/value'
import { recordDamagedFile } from '../assets/damaged-file.ts'
import { type Config, readConfig } from '../config/config.ts'
import { dataPaths } from '../config/data-paths.ts'
import { COMMANDS, type CommandName } from '../control/commands.ts'
import type { ServerCommandName } from '../control/server-commands.ts'
import { assertServerRuns, NotListening, sendCommand } from '../control/socket.ts'
import { reportDamage } from '../encode/repair.ts'
import { Failure } from '../errors.ts'
import { identifyingFiles, openDatabase } from '../installation/database.ts'
import { lockDataFolder } from '../installation/lock.ts'
import { openRotation } from '../installation/master-key-rotation.ts'
import { openCountries } from '../playback/rules/countries.ts'
import type { LiveSessions } from '../playback/sessions/live-session.ts'
import { endSessionsOfAccount } from '../playback/sessions/session-store.ts'
import { openRateLimiting } from '../rate-limits/open.ts'
import { createSignals } from '../signals/signals.ts'
import { openRestoredCopy } from '../webhooks/restored-copy.ts'
import { openLog } from './log.ts'

export type JsonOption = { json?: true }

export async function runAndPrint(name: CommandName, args: unknown, options: JsonOption): Promise<void> {
  printResult(await runCommand(readConfig(), name, args), options)
}

/** Runs a command on the data folder itself, or through the server that holds it. */
export function runCommand(config: Config, name: CommandName, args: unknown): Promise<unknown> {
  return untilListening(() => {
    const lock = lockDataFolder(config)
    if (!lock) return sendCommand(dataPaths(config.dataDir).controlSocket, name, args)
    return runOnDataFolder(config, name, args).finally(lock.release)
  })
}

/** Runs a command that needs a running server. @throws Failure that says how to start one */
export function runOnServer(config: Config, name: CommandName | ServerCommandName, args: unknown): Promise<unknown> {
  return untilListening(async () => {
    assertServerRuns(config)
    return sendCommand(dataPaths(config.dataDir).controlSocket, name, args)
  })
}

const PATIENCE_MS = 20_000
const RETRY_MS = 100

/** Tries again while a server is starting: the command before this one is often a restart, which ends before the server listens. */
async function untilListening<T>(run: () => Promise<T>): Promise<T> {
  for (const startMs = performance.now(); ; await pause(RETRY_MS)) {
    try {
      return await run()
    } catch (error) {
      if (!(error instanceof NotListening) || performance.now() - startMs >= PATIENCE_MS) throw error
    }
  }
}

async function runOnDataFolder(config: Config, name: CommandName, args: unknown): Promise<unknown> {
  const database = await openDatabase(config)
  try {
    const deps = { ...database, signals: createSignals(database.write), nowS: () => Math.floor(Date.now() / 1000) }
    const quiet = { log: openLog('silent') }
    const sessions: LiveSessions = { peek: () => undefined, values: () => [] } // of a running server
    const { bans } = await openRateLimiting({ ...deps, log: quiet.log }, undefined)
    return await COMMANDS[name].run(
      {
        accounts: { ...deps, endAccountSessions: endSessionsOfAccount },
        ...{ alertMail: config.alertMail, transcriber: config.transcriber },
        rotation: () => openRotation({ ...deps, config }),
        copy: () => openRestoredCopy(database, identifyingFiles(config), deps.nowS),
        bans,
        workers: { ...deps, workerTasks: undefined },
        stops: { ...deps, sessions, suspicions: undefined, countries: openCountries(config.countriesFile) },
        // No server encodes now: the rows wait for the next start.
        media: {
          ...deps,
          isEncoding: false,
          reportDamage: (damage) => reportDamage({ ...deps, ...quiet }, damage),
          recordDamagedFile: (file, problem) => recordDamagedFile({ ...deps, ...quiet }, file, problem),
        },
      },
      args,
    )
  } finally {
    await database.close()
  }
}

/** What a server answered. @throws Failure `conflict` when it is of another version */
export function parseResult<S extends TSchema>(schema: S, result: unknown): Static<S> {
  if (Value.Check(schema, result)) return result
  throw new Failure('conflict', 'The running server is another version. Restart it with this one, then try again.')
}

export function printResult(result: unknown, { json }: JsonOption): void {
  process.stdout.write(json ? `${JSON.stringify(result)}\n` : formatResult(result))
}

/** A list becomes a paragraph per entry, a record a line `name  value` per property. */
function formatResult(result: unknown): string {
  if (Array.isArray(result)) return result.length === 0 ? 'none\n' : result.map(formatResult).join('\n')
  if (typeof result !== 'object' || result === null) return `${String(result)}\n`
  const entries = Object.entries(result).filter(([, value]) => value !== null)
  return entries.map(([name, value]) => `${name.padEnd(12)} ${formatValue(name, value)}\n`).join('')
}

function formatValue(name: string, value: unknown): string {
  if (/(^a|A)tS$/.test(name)) return new Date(Number(value) * 1000).toISOString()
  if (Array.isArray(value)) return value.join(', ')
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}
