import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { expect } from 'vitest'
import { wrapContentKey } from '../../src/crypto/content-key.ts'
import { type MasterKey, parseMasterKey, unwrap, wrap } from '../../src/crypto/master-key.ts'
import { sourceKeyPurpose } from '../../src/ingest/source.ts'
import { type KeyValue, WRAPPED_COLUMNS } from '../../src/installation/wrapped-columns.ts'
import { getMasterKey, type Installed } from '../data-folder.ts'
import { openDatabaseAt } from '../db/database.ts'
import type { Location } from '../installation-folder.ts'
import { readRows } from '../rows.ts'

// What the master key of an installation wraps, and which key opens it.

const BATCH = 500

/** Adds the keys of this many videos to a stopped installation: a content key and the key of a source for each. */
export async function addVideoKeys(location: Pick<Location, 'dataDir' | 'env'> & Installed, count: number): Promise<void> {
  const master = getMasterKey(location)
  const { write, close } = await openDatabaseAt(location)
  for (let added = 0; added < count; added += BATCH) {
    const ids = Array.from({ length: Math.min(BATCH, count - added) }, () => randomBytes(16).toString('hex'))
    const video = { number: 1, plan: '{}', encoder: '', createdAtS: 1 }
    const source = { sizeBytes: 1, sha256: Buffer.alloc(32), iv: Buffer.alloc(16), macs: Buffer.alloc(32) }
    const [contentKey, sourceKey] = [randomBytes(32), randomBytes(16)]
    await write(async (tx) => {
      const generations = ids.map((videoId) => ({
        ...{ ...video, videoId, wrappedContentKey: wrapContentKey(master, videoId, 1, contentKey) },
      }))
      await tx.insertInto('generation').values(generations).execute()
      const sources = ids.map((videoId) => ({
        ...{ ...source, videoId, file: `${videoId}/x`, wrappedKey: wrap(master, sourceKeyPurpose(videoId), sourceKey) },
      }))
      await tx.insertInto('source').values(sources).execute()
    })
  }
  await close()
}

/** The ids of the master keys that the database needs, and the keys in the file. */
export function masterKeysOf(installed: Installed): { ids: string[]; inFile: string[] } {
  const [row] = readRows<{ value: string }>(installed, `select value from setting where name = 'master-key-id'`)
  const keys = readFileSync(installed.masterKeyFile, 'utf8').trim().split('\n')
  return {
    ids: row?.value.split(' ') ?? [],
    inFile: keys.map((hex) => parseMasterKey(Buffer.from(hex, 'hex')).id.toString('hex')),
  }
}

type Sample = { column: string; purpose: string; wrapped: Buffer }

/** Every wrapped value of an installation. */
export function listWrapped(installed: Installed): Sample[] {
  return WRAPPED_COLUMNS.flatMap(({ table, column, key, also = [], purpose }) => {
    const names = [...Object.keys(key), ...also]
    const columns = [...names.map((name) => `${snake(name)} as "${name}"`), `${snake(column)} as wrapped`]
    const rows = readRows<Record<string, KeyValue> & { wrapped: Buffer }>(
      installed,
      `select ${columns.join(', ')} from ${snake(table)} where ${snake(column)} is not null`,
    )
    return rows.map((row) => ({ column: `${table}.${column}`, purpose: purpose(row), wrapped: row.wrapped }))
  })
}

/** Checks that the key in the file opens every wrapped value, and none of the earlier keys opens any. @returns how many there are */
export function expectOnlyCurrentOpens(installed: Installed, earlier: readonly MasterKey[]): number {
  const current = getMasterKey(installed)
  const wrapped = listWrapped(installed)
  const opens = (master: MasterKey, { purpose, wrapped }: Sample) => {
    try {
      return unwrap(master, purpose, wrapped).length > 0
    } catch {
      return false
    }
  }
  expect(wrapped.filter((value) => !opens(current, value)).map(({ column }) => column)).toEqual([])
  for (const old of earlier) expect(wrapped.filter((value) => opens(old, value))).toEqual([])
  return wrapped.length
}

export const snake = (name: string) => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
