import { spawnSync } from 'node:child_process'
import { rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openSqlite } from '../../../src/db/sqlite/database.ts'
import { MIGRATIONS } from '../../../src/db/sqlite/migrations.ts'
import { untilFinished } from '../../data-folder.ts'
import { startReelgate } from '../../reelgate.ts'
import { readRows } from '../../rows.ts'
import { newChance, rounds } from '../../seeded-random.ts'
import { makeVideo } from '../../videos.ts'
import { newPath, using } from './database.ts'
import { copyRows, makeOlder } from './older.ts'

/** The last step of each version whose installations this one takes over. */
const RELEASES = ['0006-limits']

test.each(RELEASES)('F-37: an installation of the version with %s goes on with all it has', async (lastStep) => {
  const reelgate = await startReelgate()
  const { owner } = reelgate
  const video = await owner.readyVideo(await makeVideo({ seconds: 10, rate: 10 }), 'LIGHT and shadow')
  await untilFinished(reelgate, video)
  expect((await owner.call('POST', '/api/videos/tags', { body: { videos: [video], tags: ['course'] } })).status).toBe(200)
  const waiting = await owner.credentials('To be sent later')
  const otp = await owner.issueOtp(video)
  const viewer = reelgate.newViewer()
  expect((await viewer.redeem(await owner.issueOtp(video, { userId: 'ann', streamLimit: 1 }))).playing).toBe(true)
  const before = await owner.list()

  await reelgate.stop()
  const path = join(reelgate.dataDir, 'reelgate.db')
  await makeOlder(`${path}.older`, lastStep)
  copyRows(path, `${path}.older`)
  for (const end of ['-wal', '-shm', '.older-wal', '.older-shm']) await rm(`${path}${end}`, { force: true })
  await rename(`${path}.older`, path)
  expect(readRows(reelgate, 'select name from kysely_migration order by name').at(-1)).toEqual({ name: lastStep })
  await reelgate.restart()

  expect(await owner.list()).toEqual(before)
  for (const filter of ['?q=light', '?tag=course', `?q=${video.slice(4, 12)}`])
    expect(
      (await owner.list(filter)).rows.map(({ id }) => id),
      filter,
    ).toEqual([video])
  await viewer.key(0) // tells a new nonce
  expect((await viewer.key(0)).status).toBe(200)
  const late = reelgate.newViewer()
  expect((await late.redeem(otp)).playing).toBe(true)
  expect((await late.download('1')).segments.length).toBeGreaterThan(0)
  expect((await owner.send(waiting, new Blob(['This is no video. ']))).status).toBe(201)
  expect((await owner.credentials('Of this version')).videoId).toMatch(/^[0-9a-f]{32}$/)
  expect(await owner.delete([video])).toMatchObject({ message: 'Successfully deleted 1 videos' })
  await expect.poll(() => readRows(reelgate, 'select 1 from video where id = ?', video)).toEqual([])
})

test('F-08: whenever kill -9 comes in the steps up to this version, the next start has all of them and every row', async () => {
  const chance = newChance('killed migrations')
  const whole = await newPath()
  await (await openSqlite(whole)).close()
  const versions = [undefined, ...Object.keys(MIGRATIONS).slice(0, -1)]
  const chosen = rounds(0, 1) ? versions : [undefined, versions[Math.floor(chance.between(1, versions.length))]]
  let kills = 0
  for (const version of chosen) {
    const undisturbed = await older(version)
    const writes = openTraced(undisturbed, []).stderr.match(/pwrite64\(/g)?.length ?? 0
    expect(writes).toBeGreaterThan(10)
    expect(schemaOf(undisturbed)).toEqual(schemaOf(whole))
    const places = Array.from({ length: writes }, (_, i) => i + 1)
    for (const nth of rounds(0, 1) ? places : [1, 2, 3].map(() => Math.floor(chance.between(1, writes + 1)))) {
      const path = await older(version)
      const { signal } = openTraced(path, ['-e', `inject=pwrite64:signal=KILL:when=${nth}`])
      kills += Number(signal === 'SIGKILL')
      await (await openSqlite(path)).close()
      expect(schemaOf(path), `from ${version}, killed at write ${nth}`).toEqual(schemaOf(whole))
      if (version)
        expect(using(path, (database) => database.prepare('select name from account').all())).toEqual([{ name: 'ann' }])
    }
  }
  expect(kills).toBeGreaterThan(0)
}, 3_600_000)

/** A database of that version with a row in it. */
async function older(lastStep: string | undefined): Promise<string> {
  const path = await newPath()
  await makeOlder(path, lastStep)
  if (lastStep)
    using(path, (database) =>
      database.exec(
        "insert into account (id, name, created_at_s, may_upload, may_import) values ('0123456789abcdef0123456789abcdef', 'ann', 1, 1, 1)",
      ),
    )
  return path
}

/** Opens it in a process of its own, of which strace sees every write to the database. */
function openTraced(path: string, inject: readonly string[]) {
  const script = join(import.meta.dirname, 'open-once.ts')
  const args = ['-f', '-e', 'trace=pwrite64', '-e', 'signal=none', ...inject, process.execPath, script, path]
  return spawnSync('strace', args, { encoding: 'utf8', maxBuffer: 2 ** 26 })
}

/** Tables, indexes and triggers as they were written, and the steps that were taken. */
function schemaOf(path: string) {
  return using(path, (database) => [
    ...database.prepare('select type, name, sql from sqlite_master order by type, name').all(),
    ...database.prepare('select name from kysely_migration order by name').all(),
  ])
}
