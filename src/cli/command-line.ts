import { existsSync } from 'node:fs'
import { flushCompileCache } from 'node:module'
import { setFlagsFromString } from 'node:v8'
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import packageJson from '../../package.json' with { type: 'json' }
import { PERMISSIONS } from '../accounts/permission.ts'
import { type Config, dataPaths, isDatabaseUrl, describeVariables, listUnknownVariables, readConfig } from '../config.ts'
import { COMMANDS, type CommandName } from '../control/commands.ts'
import { assertServerRuns, sendCommand } from '../control/socket.ts'
import { rowQueue } from '../encode/chunk-queue.ts'
import { reportDamage } from '../encode/repair.ts'
import { Failure, hostFailure } from '../errors.ts'
import { identifyingFiles, openDatabase } from '../installation/database.ts'
import { lockDataFolder } from '../installation/lock.ts'
import { getRecoveryPhrase, restoreMasterKey } from '../installation/master-key.ts'
import { sessionsOfAccounts } from '../playback/session.ts'
import { openRestoredCopy } from '../webhooks/restored-copy.ts'
import { openLog } from './log.ts'
import { formatPhrase, promptForPhrase } from './recovery.ts'
import { welcomeText } from './welcome.ts'

type AccountOptions = {
  upload?: boolean
  import?: boolean
  limitFactor?: number
  pageMax?: number
  streamLimit?: number
  whenFull?: string
  json?: true
}

/** Runs one command. @returns 0 done, 1 failed (one sentence on stderr), 2 wrong use */
export async function runCommandLine(argv: readonly string[]): Promise<number> {
  for (const out of [process.stdout, process.stderr]) out.on('error', passOverClosedPipe)
  try {
    await commandLine().parseAsync([...argv])
    return 0
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
    const failure = error instanceof Failure ? error : hostFailure(error)
    if (!failure) throw error
    process.stderr.write(`${failure.message}\n`)
    return 1
  }
}

/** Whoever reads may stop before the end, as `head` does: what was asked for is done nevertheless. */
function passOverClosedPipe(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE') throw error
}

function commandLine(): Command {
  const program = new Command('reelgate')
    .description('A self-hosted video host that plays only to authorised viewers.')
    .version(packageJson.version)
    .exitOverride()

  program.command('serve').description('run the server').addHelpText('after', variablesHelp()).action(serve)

  const account = program.command('account').description('owners’ accounts')
  account
    .command('create <name>')
    .description('make an account and print its API key, once')
    .option('--no-upload', 'without uploads')
    .option('--no-import', 'without imports from addresses')
    .addOption(jsonOption())
    .action((name: string, options: { upload: boolean; import: boolean; json?: true }) =>
      run('account create', { name, mayUpload: options.upload, mayImport: options.import }, options),
    )
  account
    .command('list')
    .description('list the accounts')
    .addOption(jsonOption())
    .action((options) => run('account list', {}, options))

  account
    .command('set <account>')
    .description('change what an account, given by name or id, may ask for')
    .option('--upload <on|off>', 'whether it may upload', onOrOff)
    .option('--import <on|off>', 'whether it may import from addresses', onOrOff)
    .option('--limit-factor <times>', 'how many times the limits, 1 to 1000', wholeNumber(1, 1000))
    .option('--page-max <rows>', 'largest page of a list, 1 to 100', wholeNumber(1, 100))
    .option('--stream-limit <screens>', 'screens of one viewer (userId) at once, 0 for no limit', wholeNumber(0, 100))
    .addOption(new Option('--when-full <what>', 'what one screen more brings about').choices(['refuse', 'stop-oldest']))
    .addOption(jsonOption())
    .action((name: string, options: AccountOptions, command: Command) => {
      const { json: _, upload: mayUpload, import: mayImport, ...changes } = options
      if (Object.keys(command.opts()).every((option) => option === 'json'))
        command.error('say what to set: --upload, --import, --limit-factor, --page-max, --stream-limit or --when-full')
      return run('account set', { account: name, mayUpload, mayImport, ...changes }, options)
    })
  account
    .command('disable <account>')
    .description('close an account: its keys are refused, its videos play no further; nothing is deleted')
    .addOption(jsonOption())
    .action((name: string, options) => run('account disable', { account: name }, options))
  account
    .command('enable <account>')
    .description('open an account again')
    .addOption(jsonOption())
    .action((name: string, options) => run('account enable', { account: name }, options))

  const key = program.command('key').description('API keys of an account; the recovery of the master key')
  key
    .command('create <account>')
    .description('make a key for an account, given by name or id, and print it, once')
    .option('--name <name>', 'what it is for', 'key')
    .option('--permission <permission...>', PERMISSIONS.join(', '), [...PERMISSIONS])
    .option('--expires <when>', 'after a time such as 90d or 12h, or on a day such as 2027-03-31; otherwise never', lifeUntil)
    .addOption(jsonOption())
    .action((account: string, options: { name: string; permission: string[]; expires?: number; json?: true }) =>
      run('key create', { account, name: options.name, permissions: options.permission, lifeS: options.expires }, options),
    )
  key
    .command('list <account>')
    .description('list an account’s keys')
    .addOption(jsonOption())
    .action((account: string, options) => run('key list', { account }, options))
  key
    .command('rotate <keyId>')
    .description('make a new key in the place of one that lives on for a while, and print it, once')
    .option('--overlap <time>', 'how long the old one lives on, such as 24h; 0h: not at all', timeSpan, timeSpan('24h'))
    .addOption(jsonOption())
    .action((keyId: string, options: { overlap: number; json?: true }) =>
      run('key rotate', { keyId, overlapS: options.overlap }, options),
    )
  key
    .command('revoke <keyId>')
    .description('make a key worthless, from its next request on')
    .addOption(jsonOption())
    .action((keyId: string, options) => run('key revoke', { keyId }, options))
  key
    .command('restore')
    .description('write the master key’s file again, from its recovery phrase on stdin')
    .addOption(jsonOption())
    .action(restoreKey)
  key
    .command('phrase')
    .description('show the recovery phrase of the master key that lies in its file')
    .addOption(jsonOption())
    .action(showPhrase)

  const hook = program.command('hook').description('webhooks')
  hook
    .command('list <account>')
    .description('list an account’s hooks')
    .addOption(jsonOption())
    .action((account: string, options) => run('hook list', { account }, options))
  hook
    .command('resume')
    .description('let a restored copy of an installation send its webhooks: it is the live one from now on')
    .addOption(jsonOption())
    .action((options) => run('hook resume', {}, options))

  const ban = program.command('ban').description('bans for asking too often')
  ban
    .command('list')
    .description('list the bans that stand')
    .addOption(jsonOption())
    .action((options) => run('ban list', {}, options))
  ban
    .command('lift <subject>')
    .description('lift the bans of an address, a key or an account, and forget its strikes')
    .addOption(jsonOption())
    .action((subject: string, options) => run('ban lift', { subject }, options))

  program
    .command('audit')
    .description('who did what: accounts, keys, bans, deletions; the newest first, for a year')
    .option('--account <account>', 'of one account, given by name or id')
    .option('--limit <rows>', 'at most so many', wholeNumber(1, 999_999), 100)
    .addOption(jsonOption())
    .action(({ json, ...which }: { account?: string; limit: number; json?: true }) => run('audit', which, { json }))

  program
    .command('try <file>')
    .description('upload a video to the running server, and print a link that opens it once')
    .option('--account <name>', 'name or id of the account that gets it (the first one)')
    .addOption(jsonOption())
    .action(async (file: string, options: { account?: string; json?: true }) => {
      const { tryVideo } = await import('./try.ts')
      await tryVideo(readConfig(), file, options)
    })

  program
    .command('migrate')
    .description('move the installation from the data folder’s database to PostgreSQL; go on with a move that was cut off')
    .option('--to <address>', 'postgres://USER:PASSWORD@HOST/NAME, an empty database (REELGATE_DATABASE_URL)')
    .addOption(jsonOption())
    .action(async (options: { to?: string; json?: true }, command: Command) => {
      // Here, since what a parser of options refuses is printed: it may hold a password.
      if (options.to !== undefined && !isDatabaseUrl(options.to)) command.error(NO_ADDRESS)
      const { migrate } = await import('./migrate.ts')
      await migrate(readConfig(), options)
    })

  program
    .command('doctor')
    .description('look at all that the installation stands on, and say what is to be done; beside a running server, too')
    .option(
      '--media',
      'read all segments, too, and have damaged ones encoded again; goes on where the last check was interrupted',
    )
    .option('--from-start', 'with --media: from the first segment on')
    .option('--pace <MB>', 'with --media: read so many MB a second at most', wholeNumber(1, 100_000), DEFAULT_PACE_MB)
    .addOption(jsonOption())
    .action(async (options: { json?: true; media?: true; decodesFromStart?: true; pace: number }) => {
      const { doctor } = await import('./doctor.ts')
      const config = readConfig()
      await doctor(config, options, (name, args) => ask(config, name, args))
    })

  program
    .command('demo')
    .description('the demo video of a new installation')
    .command('remove')
    .description('remove it for good, through the running server')
    .addOption(jsonOption())
    .action(removeDemo)
  return program
}

function wholeNumber(least: number, most: number) {
  return (text: string) => {
    if (!/^\d{1,6}$/.test(text) || Number(text) < least || Number(text) > most)
      throw new InvalidArgumentError(`It is a whole number from ${least} to ${most}.`)
    return Number(text)
  }
}

function onOrOff(text: string): boolean {
  if (text !== 'on' && text !== 'off') throw new InvalidArgumentError('It is on or off.')
  return text === 'on'
}

/** So that a running server hardly notices. */
const DEFAULT_PACE_MB = 50

const NO_ADDRESS =
  '--to is an address such as postgres://USER:PASSWORD@HOST/NAME, with %40 for an @ in the password, %2F for a slash'

const SECONDS = { d: 24 * 3600, h: 3600, m: 60 } as const

/** `90d`, `24h`, `30m` in seconds. */
function timeSpan(text: string): number {
  const [, count, unit] = /^(\d{1,5})([dhm])$/.exec(text) ?? []
  if (unit !== 'd' && unit !== 'h' && unit !== 'm') throw new InvalidArgumentError('It is a time such as 90d, 24h or 30m.')
  return Number(count) * SECONDS[unit]
}

/** Seconds from now to the end of a time, or to the beginning of a day (UTC). */
function lifeUntil(text: string): number {
  if (!/^\d{4}-\d\d-\d\d$/.test(text)) return Math.max(1, timeSpan(text))
  const lifeS = Math.floor((Date.parse(text) - Date.now()) / 1000)
  if (!(lifeS > 0)) throw new InvalidArgumentError('It is a day to come, such as 2027-03-31, or a time such as 90d.')
  return lifeS
}

function jsonOption(): Option {
  return new Option('--json', 'print one JSON value and nothing else')
}

function variablesHelp(): string {
  const lines = describeVariables().map(
    (variable) => `  ${variable.name.padEnd(28)} ${variable.description} (${variable.defaultText ?? variable.default})`,
  )
  return `\nVariables:\n${lines.join('\n')}\n`
}

/** Runs a command and prints what it answers. */
async function run(name: CommandName, args: unknown, options: { json?: true }): Promise<void> {
  print(await ask(readConfig(), name, args), options)
}

/** Runs a command on the data folder itself, or, while a server holds it, through that server. */
async function ask(config: Config, name: CommandName, args: unknown): Promise<unknown> {
  const lock = lockDataFolder(config)
  if (!lock) return sendCommand(dataPaths(config.dataDir).controlSocket, name, args)
  return runHere(config, name, args).finally(lock.release)
}

function print(result: unknown, { json }: { json?: true }): void {
  process.stdout.write(json ? `${JSON.stringify(result)}\n` : readable(result))
}

async function runHere(config: Config, name: CommandName, args: unknown): Promise<unknown> {
  const database = await openDatabase(config)
  try {
    const deps = { ...database, nowS: () => Math.floor(Date.now() / 1000) }
    const sessions = sessionsOfAccounts({ ...deps, sessions: new Map() })
    return await COMMANDS[name].run(
      {
        accounts: { ...deps, sessions },
        copy: () => openRestoredCopy(database, identifyingFiles(config), deps.nowS),
        bans: { ...deps, forget: () => undefined, pardon: () => undefined, banEndsAtS: ({ endsAtS }) => endsAtS },
        // No server works on it: the rows wait for the next start.
        media: {
          ...deps,
          noteDamage: (damage) => reportDamage({ ...deps, chunkQueue: rowQueue, log: openLog('silent') }, damage),
        },
      },
      args,
    )
  } finally {
    await database.close()
  }
}

async function restoreKey(options: { json?: true }): Promise<void> {
  const config = readConfig()
  if (config.masterKeyHex)
    throw new Failure('invalid', 'REELGATE_MASTER_KEY is set, so no key file is read. Unset it, then restore the file.')
  if (config.databaseUrl === undefined && !existsSync(dataPaths(config.dataDir).database))
    throw new Failure('not-found', `There is no installation in ${config.dataDir}. Set REELGATE_DATA to its data folder.`)
  const bound = await ask(config, 'master key id', {})
  if (!Value.Check(KeyId, bound))
    throw new Failure('conflict', `${config.dataDir} has no master key yet: its first start makes one. Nothing was changed.`)
  const restored = restoreMasterKey(config, await promptForPhrase(), bound.id)
  const { masterKeyFile } = config
  if (options.json) return print({ masterKeyFile, restored }, options)
  print(restored ? `The master key lies in ${masterKeyFile} again.` : `The master key lies in ${masterKeyFile} already.`, options)
}

const KeyId = Type.Object({ id: Type.String() })

async function showPhrase(options: { json?: true }): Promise<void> {
  const phrase = getRecoveryPhrase(readConfig())
  print(options.json ? { phrase: phrase.join(' ') } : formatPhrase(phrase), options)
}

async function removeDemo(options: { json?: true }): Promise<void> {
  const config = readConfig()
  assertServerRuns(config)
  print(await sendCommand(dataPaths(config.dataDir).controlSocket, 'demo remove', {}), options)
}

/** A list becomes lines of its own, a record lines of `name  value`. */
function readable(result: unknown): string {
  if (Array.isArray(result)) return result.length === 0 ? 'none\n' : result.map(readable).join('\n')
  if (typeof result !== 'object' || result === null) return `${String(result)}\n`
  const entries = Object.entries(result).filter(([, value]) => value !== null)
  return entries.map(([name, value]) => `${name.padEnd(12)} ${readableValue(name, value)}\n`).join('')
}

function readableValue(name: string, value: unknown): string {
  if (/(^a|A)tS$/.test(name)) return new Date(Number(value) * 1000).toISOString()
  if (Array.isArray(value)) return value.join(', ')
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

async function serve(): Promise<void> {
  const config = readConfig()
  const log = openLog(config.logLevel)
  for (const name of listUnknownVariables()) log.warn(`${name} is not a variable of this version and has no effect`)
  if (!config.limits) log.warn('REELGATE_LIMITS is off: nobody is slowed down or banned. Set it so for measurements alone.')
  // What a start leaves behind comes only once: room for it would be kept for good.
  setFlagsFromString('--semi-space-growth-factor=1')
  // Loaded here: the other commands start without the server's parts. ffmpeg is tried while they load.
  const { findSandbox } = await import('../encode/sandbox.ts')
  const sandbox = findSandbox(config)
  sandbox.catch(() => undefined) // the server says it, after what is wrong with its database
  const { startServer } = await import('../server.ts')
  const stopped = stopSignal() // before the start: whoever reads its last line may stop it at once
  let server = await startServer(config, log, { sandbox })
  setFlagsFromString('--semi-space-growth-factor=2')
  flushCompileCache() // Node would do it at an orderly end only
  process.stdout.write(welcomeText(config, server))
  if (server.sandboxAdvice) log.warn(server.sandboxAdvice.effect)
  const port = Number(new URL(server.url).port)
  while (await Promise.race([stopped.then(() => false), server.outdated.then(() => true)])) {
    await server.stop()
    server = await startServer({ ...config, port }, log, { sandbox })
  }
  // A database that says nothing must not hold it up: whatever was acknowledged is durable already.
  setTimeout(() => process.exit(0), STOPS_WITHIN_MS).unref()
  await server.stop()
}

/** Less than those who stop services wait before they kill: what in peace takes longest, answers on their way, has 6 s. */
const STOPS_WITHIN_MS = 9_000

function stopSignal(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => resolve())
  })
}
