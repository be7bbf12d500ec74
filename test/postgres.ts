import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { inject, onTestFinished } from 'vitest'
import {
  type Cluster,
  type ClusterOptions,
  createDatabase,
  dropDatabase,
  openCluster,
  type Reached,
  throughSocket,
} from './postgres/cluster.ts'
import type {} from './shared-setup.ts'

export type DatabaseKind = 'sqlite' | 'postgres'

/** What the servers under test keep their rows in, where a test does not say: the whole suite runs on either. */
export const DATABASE: DatabaseKind = process.env.REELGATE_TEST_DATABASE === 'postgres' ? 'postgres' : 'sqlite'

/** A PostgreSQL of this test's own, for what stops, kills or fills it. All others share one. */
export async function startPostgres(options: ClusterOptions = {}): Promise<Cluster> {
  const cluster = await openCluster(options)
  onTestFinished(() => cluster.remove())
  return cluster
}

/** A database of one server's own. `env` tells the server of it: nothing for SQLite, whose database lies in its folder. */
export type MadeDatabase = { url: string | undefined; env: Record<string, string>; remove(): Promise<void> }

export type DatabaseOptions = {
  /** Without it, what the whole run is about. A PostgreSQL of the test's own, or the one that all tests share. */
  database?: DatabaseKind | Reached
  /** For a server in another network. */
  bySocket?: boolean
}

/** Makes an empty database for one server, or a copy of another's. */
export async function makeDatabase({
  database = DATABASE,
  bySocket = false,
  copyOf,
}: DatabaseOptions & { copyOf?: string | undefined } = {}): Promise<MadeDatabase> {
  if (database === 'sqlite') return { url: undefined, env: {}, remove: async () => undefined }
  const cluster = database === 'postgres' ? await sharedCluster() : database
  const made = await createDatabase(copyOf ?? cluster.url, { copyOf })
  const url = bySocket ? throughSocket(made, cluster) : made
  return { url, env: { REELGATE_DATABASE_URL: url }, remove: () => dropDatabase(url) }
}

/** The address of a database in the shared PostgreSQL for its superuser, who may look deeper than its owner. */
export async function asSuperuser(url: string): Promise<string> {
  const address = new URL(throughSocket(url, await sharedCluster()))
  address.username = 'postgres'
  return address.href
}

let shared: Promise<Reached> | undefined

/** The PostgreSQL of this run. */
function sharedCluster(): Promise<Reached> {
  shared ??= askForShared('postgresSocket')
  return shared
}

/** What all files of a run share, started when it is first asked for. */
export async function askForShared<T extends object>(socket: 'postgresSocket' | 'objectStoreSocket'): Promise<T> {
  const answer: T | { error: string } = JSON.parse(await text(connect(inject(socket))))
  if ('error' in answer) throw new Error(answer.error)
  return answer
}
