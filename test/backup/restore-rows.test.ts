import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rename, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { dataPaths } from '../../src/config/data-paths.ts'
import { startReelgate } from '../in-process.ts'
import { readRows } from '../rows.ts'

const MAIN = join(import.meta.dirname, '../../bin/main.js')

/** A stopped installation that has a title more than its backup. */
async function backedUp() {
  const reelgate = await startReelgate({ database: 'sqlite' })
  const folder = await mkdtemp(join(tmpdir(), 'reelgate-backup-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  await reelgate.owner.credentials('before')
  expect((await reelgate.cli('backup', folder)).code).toBe(0)
  await reelgate.owner.credentials('after')
  await reelgate.stop()
  const { database } = dataPaths(reelgate.dataDir)
  const titles = () => readRows(reelgate, 'select title from video order by title').map(({ title }) => title)
  return { ...reelgate, command: ['restore', folder, '--rows'], database, replaced: `${database}.replaced`, titles }
}

test('F-49: restore --rows that is run twice does not destroy the database that it moved aside', async () => {
  const { cli, command, replaced, titles } = await backedUp()
  expect(await cli(...command)).toMatchObject({ code: 0 })
  expect(titles()).toEqual(['before'])
  const moved = await readFile(replaced)
  expect(await cli(...command)).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/reelgate\.db\.replaced is the database that an earlier restore replaced\. Move it out of/),
  })
  expect((await readFile(replaced)).equals(moved)).toBe(true)
  await rename(replaced, `${replaced}.kept`)
  expect(await cli(...command)).toMatchObject({ code: 0 })
})

test('F-49: a restore --rows that was killed after it moved the database aside says how to move it back, and then works', async () => {
  const { cli, command, env, database, replaced, titles } = await backedUp()
  // The first rename names the copy of the rows, the second moves the database aside, the third would put the copy in its place.
  const inject = ['-f', '-qq', '-o', '/dev/null', '-e', 'trace=rename', '-e', 'inject=rename:signal=KILL:when=3']
  const child = spawn('strace', [...inject, process.execPath, MAIN, ...command], {
    env: { PATH: process.env.PATH, UV_THREADPOOL_SIZE: '1', ...env }, // strace counts the calls of each thread
    stdio: 'ignore',
  })
  await new Promise((resolve) => child.once('exit', resolve))
  expect([existsSync(database), existsSync(replaced)]).toEqual([false, true])
  expect(await cli(...command)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(`Move it back, then try again: mv ${replaced} ${database}`),
  })
  await rename(replaced, database)
  expect(titles()).toEqual(['after', 'before'])
  expect(await cli(...command)).toMatchObject({ code: 0 })
  expect(titles()).toEqual(['before'])
})
