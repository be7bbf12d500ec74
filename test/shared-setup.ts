import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { type Cluster, openCluster } from './postgres/cluster.ts'

// What all files of a run share. It is held here, in the process that outlives the files' own ones: one PostgreSQL, started when the
// first of them asks for it through a socket, and the folder of golden installations.

declare module 'vitest' {
  interface ProvidedContext {
    /** The socket that answers with the address of the run's PostgreSQL. */
    postgresSocket: string
    /** Where golden installations are made. */
    goldenFolder: string
  }
}

let folder: string
let server: Server
let cluster: Promise<Cluster> | undefined

export async function setup(project: TestProject): Promise<void> {
  folder = await mkdtemp(join(tmpdir(), 'reelgate-shared-'))
  const path = join(folder, 'socket')
  server = createServer((asker) => {
    cluster ??= openCluster({ settings: { shared_buffers: '64MB' } })
    asker.on('error', () => undefined) // it has ended meanwhile
    cluster.then(
      ({ url, folder }) => asker.end(JSON.stringify({ url, folder })),
      (error: Error) => asker.end(JSON.stringify({ error: error.message })),
    )
  }).listen(path)
  project.provide('postgresSocket', path)
  project.provide('goldenFolder', await mkdtemp(join(folder, 'golden-')))
}

export async function teardown(): Promise<void> {
  server.close()
  await (await cluster?.catch(() => undefined))?.remove()
  await rm(folder, { recursive: true, force: true })
}
