import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { readConfig } from '../../src/config/config.ts'
import { createMasterKey, readMasterKeyFile, unwrap, wrap } from '../../src/crypto/master-key.ts'
import { bindMasterKey, followKeyRing } from '../../src/installation/master-key.ts'
import { createRotation } from '../../src/installation/master-key-rotation.ts'
import { createRowWatch } from '../../src/installation/watch-rows.ts'
import { createSignals } from '../../src/signals/signals.ts'
import { openDatabaseAt } from '../db/database.ts'
import { makeLocation } from '../installation-folder.ts'

test('F-145: what is wrapped after another process has rotated the master key opens here within a second', async () => {
  const location = await makeLocation({})
  const database = await openDatabaseAt(location)
  const config = readConfig(location.env)
  const here = await bindMasterKey(database, createMasterKey(config.masterKeyFile), config)
  const there = await bindMasterKey(database, readMasterKeyFile(config.masterKeyFile) ?? expect.fail('no key'), config)
  const nowS = () => 1_000
  const signals = createSignals(database.write)
  signals.on('key-ring-changed', () => followKeyRing({ ...database, ...here }, config))
  const watchRows = createRowWatch({ ...database, nowS, signals })
  await watchRows()
  const before = wrap(here.masterKey, 'test', Buffer.from('before'))

  const elsewhere = createSignals(database.write)
  const rotation = createRotation({ ...database, config, nowS, signals: elsewhere }, there)
  let changes = 0
  elsewhere.on('key-ring-changed', () => changes++)
  await rotation.rotate()
  expect(changes).toBe(2)
  const after = wrap(there.masterKey, 'test', Buffer.from('after'))
  expect(() => unwrap(here.masterKey, 'test', after)).toThrow()
  await watchRows()
  expect(unwrap(here.masterKey, 'test', after).toString()).toBe('after')
  expect(() => unwrap(here.masterKey, 'test', before)).toThrow() // the old key is gone here, too
  expect(await readFile(config.masterKeyFile, 'utf8')).toContain(here.masterKey.bytes.toString('hex'))
  await database.close()
  await location.remove()
})
