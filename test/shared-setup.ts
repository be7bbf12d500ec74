import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { openCluster } from './postgres/cluster.ts'
import { openObjectStore } from './s3/radosgw.ts'

// What all files of a run share. It is held here, in the process that outlives the files' own ones: one PostgreSQL and one S3 store, each
// started when the first of them asks for it through a socket, and the folder of golden installations.

declare module 'vitest' {
  interface ProvidedContext {
    /** The socket that answers with the address of the run's PostgreSQL. */
    postgresSocket: string
    /** The socket that answers with the address and the keys of the run's S3 store. */
    objectStoreSocket: string
    /** Where golden installations are made. */
    goldenFolder: string
  }
}

type Shared = { remove(): Promise<void> }

let folder: string
const servers: Server[] = []
const started: Promise<Shared>[] = []

export async function setup(project: TestProject): Promise<void> {
  folder = await mkdtemp(join(tmpdir(), 'reelgate-shared-'))
  const postgres = async () => {
    const cluster = await openCluster({ settings: { shared_buffers: '64MB' } })
    return { reached: { url: cluster.url, folder: cluster.folder }, remove: cluster.remove }
  }
  const objectStore = async () => {
    const { remove, ...reached } = await openObjectStore()
    return { reached, remove }
  }
  project.provide('postgresSocket', share(join(folder, 'socket'), postgres))
  project.provide('objectStoreSocket', share(join(folder, 's3-socket'), objectStore))
  project.provide('goldenFolder', await mkdtemp(join(folder, 'golden-')))
}

/** Starts something for the first that connects to a socket, and answers each with how it is reached. @returns the socket */
function share(path: string, open: () => Promise<Shared & { reached: object }>): string {
  let opening: ReturnType<typeof open> | undefined
  const server = createServer((asker) => {
    if (!opening) {
      opening = open()
      started.push(opening)
    }
    asker.on('error', () => undefined) // it has ended meanwhile
    opening.then(
      ({ reached }) => asker.end(JSON.stringify(reached)),
      (error: Error) => asker.end(JSON.stringify({ error: error.message })),
    )
  })
  servers.push(server.listen(path))
  return path
}

export async function teardown(): Promise<void> {
  for (const server of servers) server.close()
  for (const shared of started) await (await shared.catch(() => undefined))?.remove()
  await rm(folder, { recursive: true, force: true })
}
