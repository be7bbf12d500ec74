import { isIP } from 'node:net'
import { join, resolve } from 'node:path'
import { type Static, Type } from 'typebox'
import { Value } from 'typebox/value'
import { Failure } from './errors.ts'

/** Every variable that Reelgate reads, with the sentence `reelgate serve --help` shows for it. */
export const VARIABLES = {
  PORT: 'port to listen on (8080)',
  HOST: 'address to listen on (127.0.0.1)',
  REELGATE_PUBLIC_URL: 'address that viewers and clients use, such as https://video.example.org (http://HOST:PORT)',
  REELGATE_DATA: 'data folder (./data)',
  REELGATE_MASTER_KEY_FILE: 'file with the master key (the data folder’s name with .key beside it)',
  REELGATE_MASTER_KEY: 'the master key itself, 64 hexadecimal digits, instead of a file',
  REELGATE_UPLOAD_MAX_BYTES: 'largest upload in bytes (32212254720, 30 GiB)',
  REELGATE_ENCODERS: 'films’ chunks encoded side by side (one per core)',
  REELGATE_LOG_LEVEL: 'fatal, error, warn, info, debug, trace or silent (info)',
} as const

const Variables = Type.Object({
  PORT: Type.String({ pattern: '^[0-9]{1,5}$', default: '8080' }),
  HOST: Type.String({ minLength: 1, default: '127.0.0.1' }),
  REELGATE_PUBLIC_URL: Type.Optional(Type.String({ pattern: '^https?://[^/?#@\\s]+(/[^?#\\s]*)?$' })),
  REELGATE_DATA: Type.String({ minLength: 1, default: './data' }),
  REELGATE_MASTER_KEY_FILE: Type.Optional(Type.String({ minLength: 1 })),
  REELGATE_MASTER_KEY: Type.Optional(Type.String({ pattern: '^[0-9a-fA-F]{64}$' })),
  REELGATE_UPLOAD_MAX_BYTES: Type.String({ pattern: '^[1-9][0-9]{0,15}$', default: String(30 * 2 ** 30) }),
  REELGATE_ENCODERS: Type.Optional(Type.String({ pattern: '^([1-9]|[1-5][0-9]|6[0-4])$' })),
  REELGATE_LOG_LEVEL: Type.Union(
    ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'].map((level) => Type.Literal(level)),
    { default: 'info' },
  ),
})
type Variables = Static<typeof Variables>

/** The one typed, frozen form of the environment. */
export type Config = Readonly<{
  port: number
  host: string
  /** Without a trailing slash. Undefined: made from the address that the server listens on. */
  publicUrl: string | undefined
  dataDir: string
  masterKeyFile: string
  /** 64 hexadecimal digits, when the environment and not a file holds the key. */
  masterKeyHex: string | undefined
  uploadMaxBytes: number
  /** Undefined: one per core. */
  encoders: number | undefined
  logLevel: string
}>

/**
 * Reads the environment; the only reader of it.
 * @throws Failure `invalid` that names the variable whose value cannot be
 */
export function readConfig(environment: NodeJS.ProcessEnv = process.env): Config {
  const set = Object.fromEntries(Object.keys(VARIABLES).flatMap((name) => (environment[name] ? [[name, environment[name]]] : [])))
  const variables = Value.Default(Variables, set)
  if (!Value.Check(Variables, variables)) throw new Failure('invalid', refusal(variables))
  return toConfig(variables)
}

function refusal(variables: unknown): string {
  const name = Value.Errors(Variables, variables)[0]?.instancePath.slice(1) ?? 'A variable'
  const meaning = Object.entries(VARIABLES).find(([known]) => known === name)?.[1]
  return `${name} has a value that cannot be. It stands for: ${meaning ?? 'a setting'}. Correct it and start again.`
}

function toConfig(variables: Variables): Config {
  const port = Number(variables.PORT)
  if (port > 65_535)
    throw new Failure('invalid', 'PORT has a value that cannot be: ports go from 0 to 65535. Correct it and start again.')
  if (variables.REELGATE_MASTER_KEY && variables.REELGATE_MASTER_KEY_FILE) {
    throw new Failure('invalid', 'REELGATE_MASTER_KEY and REELGATE_MASTER_KEY_FILE are both set: keep one of them.')
  }
  const dataDir = resolve(variables.REELGATE_DATA)
  return Object.freeze({
    port,
    host: variables.HOST,
    publicUrl: variables.REELGATE_PUBLIC_URL?.replace(/\/+$/, ''),
    dataDir,
    masterKeyFile: resolve(variables.REELGATE_MASTER_KEY_FILE ?? `${dataDir}.key`),
    masterKeyHex: variables.REELGATE_MASTER_KEY,
    uploadMaxBytes: Number(variables.REELGATE_UPLOAD_MAX_BYTES),
    encoders: variables.REELGATE_ENCODERS === undefined ? undefined : Number(variables.REELGATE_ENCODERS),
    logLevel: String(variables.REELGATE_LOG_LEVEL),
  })
}

/** Names that look like ours and are not: a mistyped variable would otherwise be ignored in silence. */
export function unknownVariables(environment: NodeJS.ProcessEnv = process.env): string[] {
  return Object.keys(environment).filter((name) => name.startsWith('REELGATE_') && !(name in VARIABLES))
}

/** The address that a server listening on `host:port` has for clients on this machine. */
export function listenUrl(host: string, port: number): string {
  const reachable = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host
  return `http://${isIP(reachable) === 6 ? `[${reachable}]` : reachable}:${port}`
}

/** Where the parts of an installation lie in its data folder. */
export function dataPaths(dataDir: string) {
  return {
    database: join(dataDir, 'reelgate.db'),
    lock: join(dataDir, 'lock.db'),
    controlSocket: join(dataDir, 'control.sock'),
    sources: join(dataDir, 'sources'),
    segments: join(dataDir, 'segments'),
    posters: join(dataDir, 'posters'),
    tmp: join(dataDir, 'tmp'),
  }
}
