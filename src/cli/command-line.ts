import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { Command, CommanderError, Option } from 'commander'
import packageJson from '../../package.json' with { type: 'json' }
import { PERMISSIONS } from '../accounts/permission.ts'
import { ALERT_CAUSES } from '../alerts/cause.ts'
import { readConfig } from '../config/config.ts'
import { describeVariables } from '../config/environment.ts'
import { isDatabaseUrl } from '../config/secrets.ts'
import type { CommandName } from '../control/commands.ts'
import type { ServerCommandName } from '../control/server-commands.ts'
import { HARDWARE_NAMES } from '../encode/hardware-names.ts'
import { Failure, hostFailure } from '../errors.ts'
import { printConsoleLink } from './console.ts'
import type { SendCommand } from './media-check.ts'
import { cacheSize, chunkKinds, durationS, integer, jsonOption, onOrOff, secondsUntil, sizeOrNone } from './option-parsers.ts'
import { restoreKey, rotateMasterKey, showPhrase } from './recovery.ts'
import { type JsonOption, printResult, runAndPrint, runCommand, runOnServer } from './run-command.ts'
import { serve } from './serve.ts'

/** Runs one command. @returns 0 done, 1 failed (one sentence on stderr), 2 wrong use */
export async function runCommandLine(argv: readonly string[]): Promise<number> {
  for (const out of [process.stdout, process.stderr]) out.on('error', ignoreClosedPipe)
  try {
    await createProgram().parseAsync([...argv])
    return 0
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
    const failure = error instanceof Failure ? error : hostFailure(error)
    if (!failure) throw error
    process.stderr.write(`${failure.message}\n`)
    return 1
  }
}

/** The reader of a pipe may stop early, as `head` does: the command is carried out nevertheless. */
function ignoreClosedPipe(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE') throw error
}

/** All options of all commands; each command has those that its row in the table below names. */
type Options = JsonOption & {
  upload: boolean
  import: boolean
  name: string
  permission: string[]
  expires?: number
  overlap: number
  account?: string
  limit: number
  session?: string
  cause?: string
  userId?: string
  video?: string
  otp?: string
  to?: string
  storage?: string
  media?: true
  fromStart?: true
  stream?: true
  verify?: true
  check?: true
  scratch: string
  strict?: true
  keep: number
  storageLimit?: number | 'none'
  transcribe?: string
  watchUrl?: string
  at?: string
  phrase?: true
  rows?: true
  pace: number
  from: string
  key: string
  server?: string
  tokenFile?: string
  jobs?: number
  only?: ('video' | 'audio')[]
  cache: string
  cacheSize: number
  trusted?: true
}

type Invocation = { argument: string; options: Options; command: Command }

type CommandSpec = {
  /** With its argument, as `create <name>`. */
  usage: string
  description: string
  options?: readonly Option[]
  run(invocation: Invocation): Promise<void>
}

type Topic = Pick<CommandSpec, 'description' | 'options'> & {
  name: string
  alias?: string
  commands: readonly CommandSpec[]
  /** Without one of its commands. */
  run?: CommandSpec['run']
}

const ACCOUNT: Topic = {
  name: 'account',
  description: 'manage accounts of owners',
  commands: [
    {
      usage: 'create <name>',
      description: 'create an account and print its API key, which is shown only once',
      options: [new Option('--no-upload', 'do not allow uploads'), new Option('--no-import', 'do not allow imports from URLs')],
      run: ({ argument: name, options }) =>
        runAndPrint('account create', { name, mayUpload: options.upload, mayImport: options.import }, options),
    },
    sends('list', 'list accounts', 'account list'),
    {
      usage: 'set <account>',
      description: 'change the permissions and limits of an account, given by name or id',
      options: [
        new Option('--upload <on|off>', 'whether it may upload').argParser(onOrOff),
        new Option('--import <on|off>', 'whether it may import from URLs').argParser(onOrOff),
        new Option('--limit-factor <times>', 'multiply its rate limits, 1 to 1000').argParser(integer(1, 1000)),
        new Option('--page-max <rows>', 'maximum page size of lists, 1 to 100').argParser(integer(1, 100)),
        new Option('--stream-limit <screens>', 'concurrent streams of one viewer (userId), 0 for no limit').argParser(
          integer(0, 100),
        ),
        new Option('--when-full <policy>', 'what to do when the stream limit is reached').choices(['refuse', 'stop-oldest']),
        new Option('--storage-limit <size>', 'what its videos may take on the disk, such as 50GB; none for no limit').argParser(
          sizeOrNone,
        ),
        new Option(
          '--otp-defaults-removable <on|off>',
          'whether an OTP with an empty watermark or whitelist goes without the default',
        ).argParser(onOrOff),
        new Option('--deletes-to-trash <on|off>', 'whether deletions through the API can be undone for 7 days').argParser(
          onOrOff,
        ),
        new Option('--normalizes-loudness <on|off>', 'whether the sound of new videos is brought to one loudness').argParser(
          onOrOff,
        ),
        new Option('--transcribe <language>', 'the language in which new videos are transcribed, such as en; none for none'),
        new Option(
          '--watch-url <url>',
          'where viewers watch, for public pages, such as https://school.example/lessons/{id}; none for none',
        ),
      ],
      async run({ argument: account, options, command }) {
        const { json, upload: mayUpload, import: mayImport, storageLimit, transcribe, watchUrl: url, ...changes } = options
        if (Object.keys(options).every((option) => option === 'json'))
          command.error(
            'expected one of --upload, --import, --limit-factor, --page-max, --stream-limit, --when-full, --storage-limit, --otp-defaults-removable, --deletes-to-trash, --normalizes-loudness, --transcribe, --watch-url',
          )
        const storageLimitBytes = storageLimit === 'none' ? null : storageLimit
        const transcribeLanguage = transcribe === 'none' ? null : transcribe
        const watchUrl = url === 'none' ? null : url
        const settings = { mayUpload, mayImport, storageLimitBytes, transcribeLanguage, watchUrl, ...changes }
        await runAndPrint('account set', { account, ...settings }, { json })
      },
    },
    sends(
      'disable <account>',
      'disable an account: its keys are rejected and its videos stop playing; nothing is deleted',
      'account disable',
    ),
    sends('enable <account>', 'enable an account again', 'account enable'),
  ],
}

const KEY: Topic = {
  name: 'key',
  description: 'manage the API keys of an account; rotate and restore the master key',
  commands: [
    {
      usage: 'create <account>',
      description: 'create a key for an account, given by name or id, and print it; it is shown only once',
      options: [
        new Option('--name <name>', 'what it is for').default('key'),
        new Option('--permission <permission...>', PERMISSIONS.join(', ')).default([...PERMISSIONS]),
        new Option(
          '--expires <when>',
          'after a duration such as 90d or 12h, or on a day such as 2027-03-31; default: never',
        ).argParser(secondsUntil),
      ],
      run: ({ argument: account, options: { name, permission, expires, json } }) =>
        runAndPrint('key create', { account, name, permissions: permission, lifeS: expires }, { json }),
    },
    sends('list <account>', 'list the keys of an account', 'key list'),
    {
      usage: 'rotate <keyId>',
      description: 'replace a key by a new one and print it; it is shown only once',
      options: [
        new Option('--overlap <duration>', 'how long the old key stays valid, such as 24h; 0h: not at all')
          .argParser(durationS)
          .default(durationS('24h'), '24h'),
      ],
      run: ({ argument: keyId, options }) => runAndPrint('key rotate', { keyId, overlapS: options.overlap }, options),
    },
    sends('revoke <keyId>', 'revoke a key immediately', 'key revoke'),
    {
      usage: 'restore',
      description: 'restore the master key’s file from its recovery phrase on stdin',
      run: ({ options }) => restoreKey(options),
    },
    {
      usage: 'rotate-master',
      description: 'replace the master key by a new one, and print its recovery phrase; the server may be running',
      run: ({ options }) => rotateMasterKey(options),
    },
    sendsToServer(
      'media-secret',
      'print the secret by which a proxy checks the addresses of segments (nginx: secure_link_md5)',
      'key media-secret',
    ),
    {
      usage: 'phrase',
      description: 'print the recovery phrase of the master key',
      run: ({ options }) => showPhrase(options),
    },
  ],
}

const WORKER: Topic = {
  name: 'worker',
  description: 'encode for a server on another machine; manage such encoders',
  options: [
    new Option('--server <url>', 'encode for this server: its public URL, https except on this machine'),
    new Option('--token-file <file>', 'file with the token of this worker; default: the variable REELGATE_WORKER_TOKEN'),
    new Option('--jobs <count>', 'how many chunks it encodes concurrently; default: one per core, with --encoder one').argParser(
      integer(1, 64),
    ),
    new Option('--only <kinds>', 'video, audio or video,audio').argParser(chunkKinds),
    new Option('--encoder <name>', 'encode with a graphics card in place of the processor, as ffmpeg names it').choices(
      HARDWARE_NAMES,
    ),
    new Option('--cache <folder>', 'where it keeps parts of sources, sealed; emptied at start and end').default(
      join(tmpdir(), 'reelgate-worker'),
    ),
    new Option('--cache-size <size>', 'how large that becomes').argParser(cacheSize).default(cacheSize('20GB'), '20GB'),
  ],
  async run({ options: { server, ...options }, command }) {
    if (server === undefined) command.error('expected --server <url>, or one of the commands below; see --help')
    const { work } = await import('./worker.ts')
    await work({ server: server ?? '', ...options })
  },
  commands: [
    {
      usage: 'add <name>',
      description: 'add a worker and print its token, which is shown only once',
      options: [new Option('--trusted', 'it is yours alone')],
      run: ({ argument: name, options: { trusted = false, json } }) => runAndPrint('worker add', { name, trusted }, { json }),
    },
    sends('list', 'list workers: what each does, how fast, and when it was last seen', 'worker list'),
    sends('drain <name>', 'give a worker no more chunks; it finishes those that it has', 'worker drain'),
    sends('resume <name>', 'give a worker chunks again that was drained or suspended', 'worker resume'),
    sends('remove <name>', 'remove a worker: its token is refused, and its chunks are encoded by others', 'worker remove'),
  ],
}

const WEBHOOK: Topic = {
  name: 'webhook',
  alias: 'hook',
  description: 'manage webhooks',
  commands: [
    sends('list <account>', 'list the webhooks of an account', 'webhook list'),
    sendsToServer(
      'test <webhookId>',
      'send a test event to a webhook through the running server, and print what it answered',
      'webhook test',
    ),
    sends('resume', 'let a restored copy of an installation send its webhooks: it is the live one from now on', 'webhook resume'),
  ],
}

const BAN: Topic = {
  name: 'ban',
  description: 'manage bans for exceeding rate limits',
  commands: [
    sends('list', 'list active bans', 'ban list'),
    sends('lift <subject>', 'lift the bans of an address, a key or an account, and clear its strikes', 'ban lift'),
  ],
}

const SESSION: Topic = {
  name: 'session',
  description: 'list and stop playback sessions',
  commands: [
    {
      usage: 'list <account>',
      description: 'list who watches now in an account, newest first',
      options: [new Option('--user-id <userId>', 'only of this viewer'), new Option('--video <videoId>', 'only on this video')],
      run: ({ argument: account, options: { userId, video, json } }) =>
        runAndPrint('session list', { account, userId, video }, { json }),
    },
    {
      usage: 'stop <account>',
      description: 'stop playback immediately, of one session or of all of a viewer, a video or an OTP',
      options: [
        new Option('--session <id>', 'one session, from the list'),
        new Option('--user-id <userId>', 'all sessions of a viewer'),
        new Option('--video <videoId>', 'all sessions on a video'),
        new Option('--otp <otp>', 'the session of an OTP, which opens nothing any more'),
      ],
      async run({ argument: account, options: { session, userId, video, otp, json }, command }) {
        const targets = [{ sessionId: session }, { userId }, { videoId: video }, { otp }]
        const named = targets.filter((target) => Object.values(target).some((value) => value !== undefined))
        if (named.length !== 1) command.error('expected one of --session, --user-id, --video, --otp')
        await runAndPrint('session stop', { account, target: named[0] }, { json })
      },
    },
  ],
}

const ALERT: Topic = {
  name: 'alert',
  description: 'alerts: suspicious playback, and what the operator should look at',
  commands: [
    {
      usage: 'list <account>',
      description: 'list the alerts of an account, newest first',
      options: [
        new Option('--cause <cause>', 'only of this cause').choices(ALERT_CAUSES),
        new Option('--user-id <userId>', 'only of this viewer'),
      ],
      run: ({ argument: account, options: { cause, userId, json } }) =>
        runAndPrint('alert list', { account, cause, userId }, { json }),
    },
    sends('test', 'send a test mail to REELGATE_ALERT_TO, and print what the mail server answered', 'alert test'),
  ],
}

const VIDEO: Topic = {
  name: 'video',
  description: 'encrypt a video again',
  commands: [
    sendsToServer(
      'reencrypt <videoId>',
      'encode a video again under a new key, through the running server; then the old key is destroyed',
      'video reencrypt',
    ),
  ],
}

const VIEWER: Topic = {
  name: 'viewer',
  description: 'what is kept about a viewer',
  commands: [
    {
      usage: 'erase <userId>',
      description: 'stop the sessions of a viewer and remove what is kept about it, through the running server',
      options: [new Option('--account <name>', 'name or id of the account of the viewer; default: the first one')],
      run: ({ argument: userId, options: { account, json } }) =>
        runOnServerAndPrint('viewer erase', { userId, account }, { json }),
    },
  ],
}

const CONSOLE: Topic = {
  name: 'console',
  description: 'who may open the console',
  commands: [
    {
      usage: 'link [user]',
      description:
        'print a link that signs a person in once, for a lost link or password; default: the oldest administrator, who is added if there is none',
      run: ({ argument: user, options }) => printConsoleLink(user || undefined, options),
    },
    sends('users', 'list the people of all accounts', 'console users'),
  ],
}

const DEMO: Topic = {
  name: 'demo',
  description: 'the demo video of a new installation',
  commands: [sendsToServer('remove', 'delete it permanently, through the running server', 'demo remove')],
}

/** A command that sends its argument, under the name that its usage has for it, and prints the answer. */
function sends(usage: string, description: string, name: CommandName): CommandSpec {
  return { usage, description, run: ({ argument, options }) => runAndPrint(name, argumentOf(usage, argument), options) }
}

/** The same through the running server, which alone can do it. */
function sendsToServer(usage: string, description: string, name: ServerCommandName): CommandSpec {
  return { usage, description, run: ({ argument, options }) => runOnServerAndPrint(name, argumentOf(usage, argument), options) }
}

function argumentOf(usage: string, argument: string): Record<string, string> {
  const [, name] = /<(\w+)>/.exec(usage) ?? []
  return name === undefined ? {} : { [name]: argument }
}

async function runOnServerAndPrint(name: ServerCommandName, args: unknown, options: JsonOption): Promise<void> {
  printResult(await runOnServer(readConfig(), name, args), options)
}

/** A folder, or the address of a bucket. */
const placeOf = (place: string) => (place.startsWith('s3:') ? place : resolve(place))

const INVALID_DATABASE_URL = 'expected --to postgres://USER:PASSWORD@HOST/NAME, with %40 for an @ and %2F for a / in the password'

const COMMANDS: readonly CommandSpec[] = [
  {
    usage: 'audit',
    description: 'print the audit log of the last year, newest first: accounts, keys, bans, deletions',
    options: [
      new Option('--account <account>', 'only one account, given by name or id'),
      new Option('--limit <rows>', 'maximum number of rows').argParser(integer(1, 999_999)).default(100),
    ],
    run: ({ options: { account, limit, json } }) => runAndPrint('audit', { account, limit }, { json }),
  },
  {
    usage: 'try <file>',
    description: 'upload a video to the running server, and print a link that opens it once',
    options: [new Option('--account <name>', 'name or id of the account that gets it; default: the first one')],
    async run({ argument: file, options: { account, json } }) {
      const { tryVideo } = await import('./try.ts')
      await tryVideo(readConfig(), file, { account, json })
    },
  },
  {
    usage: 'import',
    description: 'copy all videos of another server with the same API to the running server; run it again to continue',
    options: [
      new Option('--from <url>', 'its address, such as https://video.example.org').makeOptionMandatory(),
      new Option('--key <secret>', 'an API key of it with viewer and downloader').makeOptionMandatory(),
      new Option('--account <name>', 'name or id of the account here that gets them; default: the first one'),
      new Option('--pace <requests>', 'ask it at most this often in a minute').argParser(integer(1, 100_000)).default(300),
    ],
    async run({ options: { from, key, account, pace, json } }) {
      const { moveIn } = await import('./move-in.ts')
      await moveIn(readConfig(), { from, key, account, pace, json })
    },
  },
  {
    usage: 'migrate',
    description:
      'move the database from the data folder to PostgreSQL, or with --storage the files to or out of a bucket while the server runs',
    options: [
      new Option('--to <url>', 'postgres://USER:PASSWORD@HOST/NAME, an empty database; default: REELGATE_DATABASE_URL'),
      new Option(
        '--storage <url>',
        'where the files of videos go: folder, or the address of a bucket that the server has keys for',
      ),
    ],
    async run({ options: { to, storage, json }, command }) {
      if (storage !== undefined) {
        const { migrateStorage } = await import('./migrate-storage.ts')
        return migrateStorage(readConfig(), storage, { json })
      }
      // Not in a parser of the option: commander prints what a parser rejects, and it may hold a password.
      if (to !== undefined && !isDatabaseUrl(to)) command.error(INVALID_DATABASE_URL)
      const { migrate } = await import('./migrate.ts')
      await migrate(readConfig(), { to, json })
    },
  },
  {
    usage: 'backup [folder]',
    description: 'add a backup to a folder or a bucket; the server may be running. Only new files are copied',
    options: [
      new Option('--keep <count>', 'how many backups the folder keeps').argParser(integer(1, 1000)).default(7),
      new Option(
        '--media',
        'copy the files of videos, too, where they are in a bucket: a backup has their names and hashes alone without it',
      ),
      new Option('--verify', 'read every file again; without it those that were not read for 30 days, and of a bucket new ones'),
      new Option('--stream', 'write one backup to stdout as a tar archive instead'),
      new Option('--check', 'make none, but restore the newest one into a scratch folder, file by file, to prove that it can be'),
      new Option('--scratch <folder>', 'with --check: where to restore to, a file at a time').default(tmpdir()),
      new Option('--pace <MB>', 'with --check: read at most this many MB per second').argParser(integer(1, 100_000)).default(50),
    ],
    async run({ argument: folder, options: { keep, media, verify, stream, check, scratch, pace, json }, command }) {
      if ((folder === '') === (stream === undefined)) command.error('expected a folder, the address of a bucket, or --stream')
      if (stream && media) command.error('--media copies to a folder or a bucket, not to a stream')
      const { backup, checkNewestBackup, streamBackup } = await import('./backup.ts')
      const config = readConfig()
      const send: SendCommand = (name, args) => runCommand(config, name, args)
      if (stream) await streamBackup(config, send)
      else if (check) await checkNewestBackup(config, { folder: placeOf(folder), scratch: resolve(scratch), pace, json }, send)
      else await backup(config, { folder: placeOf(folder), keep, media, verify, json }, send)
    },
  },
  {
    usage: 'restore <folder>',
    description: 'restore the newest backup of a folder or a bucket into an empty data folder, and verify every file',
    options: [
      new Option('--at <name>', 'another backup of the folder, by its name'),
      new Option('--rows', 'only the rows, into an installation that keeps its files: to undo an upgrade'),
      new Option('--phrase', 'write the master key’s file, from the recovery phrase on stdin'),
      new Option('--strict', 'restore nothing if a single file is missing or damaged'),
    ],
    async run({ argument: folder, options: { at, phrase, rows, strict, json } }) {
      const { restore } = await import('./backup.ts')
      await restore(readConfig(), placeOf(folder), { at, phrase, rows, strict, json })
    },
  },
  {
    usage: 'doctor',
    description: 'check everything the installation needs, and print what to do; the server may be running',
    options: [
      new Option('--media', 'also read all files of videos and make damaged ones again; resumes an interrupted check'),
      new Option('--from-start', 'with --media: start at the first file'),
      // So that a running server is hardly affected.
      new Option('--pace <MB>', 'with --media: read at most this many MB per second').argParser(integer(1, 100_000)).default(50),
    ],
    async run({ options }) {
      const { doctor } = await import('./doctor.ts')
      const config = readConfig()
      await doctor(config, options, (name, args) => runCommand(config, name, args))
    },
  },
]

function createProgram(): Command {
  const program = new Command('reelgate')
    .description('A self-hosted video host that plays only to authorised viewers.')
    .version(packageJson.version)
    .exitOverride()
  program.command('serve').description('run the server').addHelpText('after', variablesHelp()).action(serve)
  for (const { name, alias, description, commands, options = [], run } of [
    ACCOUNT,
    KEY,
    CONSOLE,
    SESSION,
    ALERT,
    WEBHOOK,
    BAN,
    VIDEO,
    VIEWER,
    DEMO,
    WORKER,
  ]) {
    const topic = program.command(name).description(description)
    if (alias) topic.alias(alias)
    for (const option of options) topic.addOption(option)
    if (run) topic.action(() => run({ argument: '', options: topic.opts<Options>(), command: topic }))
    for (const spec of commands) addCommand(topic, spec)
  }
  for (const spec of COMMANDS) addCommand(program, spec)
  return program
}

function addCommand(parent: Command, { usage, description, options = [], run }: CommandSpec): void {
  const command = parent.command(usage).description(description)
  for (const option of [...options, jsonOption()]) command.addOption(option)
  command.action(() => run({ argument: command.args[0] ?? '', options: command.opts<Options>(), command }))
}

function variablesHelp(): string {
  const lines = describeVariables().map(
    (variable) => `  ${variable.name.padEnd(28)} ${variable.description} (${variable.defaultText ?? variable.default})`,
  )
  return `\nVariables:\n${lines.join('\n')}\n`
}
