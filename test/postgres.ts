import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { inject, onTestFinished } from 'vitest'
import { type Cluster, type ClusterOptions, createDatabase, dropDatabase, openCluster } from './postgres/cluster.ts'
import type {} from './postgres/shared.ts'

export type DatabaseKind = 'sqlite' | 'postgres'

/** What the servers under test keep their rows in, where a test does not say: the whole suite runs on either. */
export const DATABASE: DatabaseKind = process.env.REELGATE_TEST_DATABASE === 'postgres' ? 'postgres' : 'sqlite'

/** A PostgreSQL of this test's own, for what stops, kills or fills it. All others share one. */
export async function startPostgres(options: ClusterOptions = {}): Promise<Cluster> {
  const cluster = await openCluster(options)
  onTestFinished(() => cluster.remove())
  return cluster
}

/** What tells a server which database is its own: nothing for SQLite, whose database lies in its folder. */
export type MadeDatabase = { url: string | undefined; env: Record<string, string>; remove(): Promise<void> }

/** Makes an empty database for one server, or a copy of another's. */
export async function makeDatabase(
  where: DatabaseKind | Pick<Cluster, 'url'> = DATABASE,
  { copyOf }: { copyOf?: string | undefined } = {},
): Promise<MadeDatabase> {
  if (where === 'sqlite') return { url: undefined, env: {}, remove: async () => undefined }
  const server = where === 'postgres' ? await sharedUrl() : where.url
  const url = await createDatabase(copyOf ?? server, { copyOf })
  return { url, env: { REELGATE_DATABASE_URL: url }, remove: () => dropDatabase(url) }
}

let shared: Promise<string> | undefined

/** The PostgreSQL of this run. */
function sharedUrl(): Promise<string> {
  shared ??= askForShared()
  return shared
}

async function askForShared(): Promise<string> {
  const answer: { url?: string; error?: string } = JSON.parse(await text(connect(inject('postgresSocket'))))
  if (answer.url === undefined) throw new Error(answer.error)
  return answer.url
}
