import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Installed } from './data-folder.ts'
import { type DatabaseOptions, makeDatabase } from './postgres.ts'
import { changeRows } from './rows.ts'
import { makeStorage, type StorageOptions } from './s3.ts'

/** Where an installation lies: a data folder, and a database and a bucket where they are not in that folder. */
export type Location = Installed & {
  /** What tells a server of it. */
  env: Record<string, string>
  remove(): Promise<void>
}

export type PlaceOptions = DatabaseOptions &
  StorageOptions & {
    /** Where the folder is made, such as a small disk. */
    within?: string
    /** A stopped installation to go on from. */
    copyOf?: Installed
  }

/** Makes a location for an installation, empty or a copy. The caller removes it. */
export async function makeLocation({ within = tmpdir(), copyOf, storage, ...options }: PlaceOptions = {}): Promise<Location> {
  const folder = await mkdtemp(join(within, 'reelgate-'))
  const dataDir = join(folder, 'data')
  const masterKeyFile = `${dataDir}.key`
  const sameKind: DatabaseOptions = copyOf ? { database: copyOf.databaseUrl === undefined ? 'sqlite' : 'postgres' } : {}
  const { url, env, remove } = await makeDatabase({ ...sameKind, ...options, copyOf: copyOf?.databaseUrl })
  const files = await makeStorage({
    storage: storage ?? (copyOf && (copyOf.bucket ? 'bucket' : 'folder')),
    copyOf: copyOf?.bucket,
  })
  if (copyOf) {
    await cp(copyOf.dataDir, dataDir, { recursive: true, filter: (path) => !/\.(sock|reserve)$/.test(path) })
    await cp(copyOf.masterKeyFile, masterKeyFile)
    // A test continues in the copy: for the server it is the original.
    changeRows({ dataDir, databaseUrl: url }, `delete from setting where name in ('database-file', 'lock-file')`)
  }
  return {
    dataDir,
    masterKeyFile,
    databaseUrl: url,
    bucket: files.address,
    env: { REELGATE_DATA: dataDir, ...env, ...files.env },
    async remove() {
      await rm(folder, { recursive: true, force: true })
      await remove()
      await files.remove()
    },
  }
}
