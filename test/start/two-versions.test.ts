import { execFile } from 'node:child_process'
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { startBalancer } from '../balancer.ts'
import { createOwner } from '../client.ts'
import { findLost, startLoad } from '../faults/load.ts'
import { startReelgate } from '../reelgate.ts'
import { readRows } from '../rows.ts'
import { startWatchers } from '../servers/watchers.ts'
import { startAnother } from '../several-servers.ts'
import { makeVideo } from '../videos.ts'

// A rolling upgrade: builds of the commit before and of this tree, with a migration more, on one database.

const ROOT = join(import.meta.dirname, '../..')
const MIGRATIONS = 'src/db/postgres/migrations.ts'
const run = promisify(execFile)

/** Builds the server of what a command of git writes as a tar archive; player and console are those of this tree. @returns the program */
async function buildTree(archive: string, change?: (folder: string) => Promise<void>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'reelgate-tree-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  await run('bash', ['-o', 'pipefail', '-c', `${archive} | tar -x -C "$1"`, 'bash', folder], { cwd: ROOT })
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  await change?.(folder)
  for (const part of ['player', 'console']) await cp(join(ROOT, 'dist', part), join(folder, 'dist', part), { recursive: true })
  await run(process.execPath, ['node_modules/vite/bin/vite.js', 'build', '--logLevel', 'warn'], {
    cwd: folder,
    env: { ...process.env, NODE_ENV: 'production' },
  })
  return join(folder, 'bin/main.js')
}

/** The commit before, or this one where it has changed the migration of a version that is not released. */
async function findBefore(): Promise<string> {
  const { stdout } = await run('git', ['diff', '--name-only', 'HEAD~1', 'HEAD', '--', 'src/db/**migrations*'], { cwd: ROOT })
  return stdout === '' ? 'HEAD~1' : 'HEAD'
}

/** A migration as the next version may have one: it only adds, to each table and to their number. */
const NEXT_MIGRATION = `
const next: Migration = {
  async up(db) {
    const names = await db.introspection.getTables()
    for (const { name } of names) await ofNext.raw(\`alter table "\${name}" add column of_next_version text default 'new'\`).execute(db)
    await ofNext\`create table of_next_version (id text primary key)\`.execute(db)
  },
}
`

async function addMigration(folder: string): Promise<void> {
  const file = join(folder, MIGRATIONS)
  const lines = (await readFile(file, 'utf8')).replace(/ \}\n$/, `, '0003-next': next }\n`)
  const imported = `import { sql as ofNext } from 'kysely'\n`
  await writeFile(file, imported + lines.replace('\n/**', `\n${NEXT_MIGRATION}\n/**`))
}

test('F-317: a server of the commit before and one of this tree, with a migration more, serve together; an upgrade loses nothing', async () => {
  const [before, after] = await Promise.all([
    buildTree(`git archive ${await findBefore()}`),
    buildTree('git ls-files -coz --exclude-standard | tar -c --ignore-failed-read --null -T -', addMigration),
  ])
  const old = await startReelgate({ database: 'postgres', storage: 'bucket', main: before })
  const oldToo = await startAnother(old, { main: before })
  const videoId = await old.owner.readyVideo(await makeVideo())
  const load = startLoad(old.owner, videoId)
  await load.goesOn()

  const next = await startAnother(old, { main: after })
  expect(readRows(next, "select name from kysely_migration where name = '0003-next'")).toHaveLength(1)
  const balanced = await startBalancer([old.url, oldToo.url, next.url])
  const loads = [load, startLoad(next.owner, videoId), startLoad(oldToo.owner, videoId)]
  const watchers = await startWatchers(balanced, createOwner(balanced, old.owner.apiKey), videoId, 4)
  const goOn = () => Promise.all([watchers.goOn(), ...loads.map((each) => each.goesOn())])
  await goOn()
  const uploadedThere = await next.owner.readyVideo(await makeVideo())
  const uploadedHere = await old.owner.readyVideo(await makeVideo())
  for (const owner of [old.owner, next.owner]) for (const id of [uploadedThere, uploadedHere]) await owner.until(id, 'ready')
  await goOn()
  await watchers.stop()

  await Promise.all(loads.map((each) => each.stop()))
  expect([...loads.flatMap(({ odd }) => odd), ...watchers.odd]).toEqual([])
  const logged = [old, oldToo, next].flatMap(({ output }) => output().split('\n'))
  // What waits for the migration while it waits for that is rolled back, and done again.
  expect(logged.filter((line) => /"level":[56]0/.test(line) && !line.includes('40P01'))).toEqual([])
  await oldToo.stop()
  await expect(startAnother(old, { main: before })).rejects.toThrow('newer version of Reelgate')
  const upgraded = await startAnother(old, { main: after })
  expect(await old.stop()).toBe(0)
  const last = startLoad(upgraded.owner, videoId)
  await last.goesOn()
  await last.stop()
  expect(last.odd).toEqual([])
  expect([...loads, last].flatMap((each) => findLost(upgraded, each))).toEqual([])
})
