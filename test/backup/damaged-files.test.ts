import { existsSync, mkdtempSync } from 'node:fs'
import { copyFile, mkdir, readdir, readFile, rename, rm, rmdir, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import SqliteDatabase from 'better-sqlite3'
import { expect, onTestFinished } from 'vitest'
import { dataPaths } from '../../src/config/data-paths.ts'
import { listFiles, listSegments } from '../data-folder.ts'
import { mountSmallDisk } from '../faults/small-disk.ts'
import { type Reelgate, startReelgate } from '../in-process.ts'
import { makeLocation } from '../installation-folder.ts'
import { runCli } from '../reelgate.ts'
import { changeRows, readRows } from '../rows.ts'
import { sampledTests } from '../sample.ts'
import { makeVideo } from '../videos.ts'

const { test, draw } = sampledTests('damaged files and backups', 6)

/** Wherever other suites keep their files: those of a bucket are in `bucket.test.ts`. */
const IN_FOLDER = { storage: 'folder' } as const

// Of one colour, so that a segment that is encoded again has the same bytes.
const start = async () => startReelgate({ ...IN_FOLDER, video: await makeVideo({ seconds: 9, dark: true }) })

async function newFolder(within = tmpdir()): Promise<string> {
  const folder = mkdtempSync(join(within, 'reelgate-backup-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return folder
}

/** Replaces the file, so that one with other names stays as it is. */
async function flipByte(path: string): Promise<Buffer> {
  const before = await readFile(path)
  const changed = Buffer.from(before)
  changed.writeUInt8(changed.readUInt8(40) ^ 1, 40)
  await rm(path)
  await writeFile(path, changed)
  return before
}

async function firstFile({ dataDir }: { dataDir: string }, kind: string): Promise<string> {
  const [name] = (await listFiles({ dataDir, masterKeyFile: '' }, kind)).filter((file) => file.includes('.'))
  return name ?? expect.fail(`there is no file in ${kind}`)
}

async function backUp({ cli }: Pick<Reelgate, 'cli'>, folder: string, ...options: string[]) {
  const { code, stdout, stderr } = await cli('backup', folder, '--json', ...options)
  return { code, stderr, made: stdout === '' ? undefined : JSON.parse(stdout) }
}

test('F-50: a byte that has changed in a segment is repaired from the source before the backup is finished', async () => {
  const reelgate = await start()
  const folder = await newFolder()
  const segment = listSegments(reelgate, reelgate.videoId)[1] ?? expect.fail()
  const published = await flipByte(join(reelgate.dataDir, 'segments', segment.file))
  const { code, made } = await backUp(reelgate, folder)
  expect({ code, made }).toMatchObject({ code: 0, made: { lostCount: 0 } })
  expect(await readFile(join(folder, 'media/segments', segment.file))).toEqual(published)
})

test('F-50: a byte that has changed in an uploaded file or a poster is named, and the backup exits with 1 and does not count as good', async () => {
  const reelgate = await start()
  await reelgate.stop()
  const folder = await newFolder()
  const good = (await backUp(reelgate, folder)).made
  for (const kind of ['sources', 'posters'])
    await flipByte(join(dataPaths(reelgate.dataDir).sources, '..', kind, await firstFile(reelgate, kind)))
  await rm(folder, { recursive: true })
  const { code, stderr, made } = await backUp(reelgate, folder)
  expect(code).toBe(1)
  expect(stderr).toMatch(/2 files of the installation are missing or damaged, such as (sources|posters)\//)
  expect(made.lost.map((name: string) => name.split('/')[0]).sort()).toEqual(['posters', 'sources'])
  const [last] = readRows(reelgate, "select value from setting where name = 'last-backup'")
  expect(JSON.parse(String(last?.value))).toMatchObject({ name: good.name })
})

test('F-120: while the disk of segments is not mounted a backup fails and says so; nothing counts as damaged, and the next one is good', async () => {
  const reelgate = await start()
  const folder = await newFolder()
  const { segments } = dataPaths(reelgate.dataDir)
  await rename(segments, `${segments}.away`)
  await mkdir(segments)
  const { code, stderr } = await backUp(reelgate, folder)
  expect({ code, stderr }).toMatchObject({ code: 1, stderr: expect.stringContaining('The folder segments is empty') })
  expect((await readdir(folder)).filter((name) => name.endsWith('Z'))).toEqual([])
  await rmdir(segments)
  await rename(`${segments}.away`, segments)
  expect(readRows(reelgate, 'select 1 from segment where damaged = 1')).toEqual([])
  expect(await backUp(reelgate, folder)).toMatchObject({ code: 0, made: { lostCount: 0 } })
})

test('F-120: a folder of a backup that may not be read is not taken for lost files: the restore fails, and continues later', async () => {
  const reelgate = await start()
  await reelgate.stop()
  const folder = await newFolder()
  await backUp(reelgate, folder)
  const location = await makeLocation(IN_FOLDER)
  onTestFinished(() => location.remove())
  await copyFile(reelgate.masterKeyFile, location.masterKeyFile)
  const posters = join(folder, 'media/posters')
  await rename(posters, `${posters}.away`)
  await writeFile(posters, 'a file in its place')
  expect(await runCli(['restore', folder], location.env)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('Files in the folder posters cannot be read (ENOTDIR)'),
  })
  await rm(posters)
  await rename(`${posters}.away`, posters)
  expect(await runCli(['restore', folder, '--json'], location.env)).toMatchObject({ code: 0, stderr: '' })
})

test('F-51: a file of a backup is read again by --verify and after 30 days, and replaced if it has changed', async () => {
  const reelgate = await start()
  await reelgate.stop()
  const folder = await newFolder('/dev/shm')
  const { made } = await backUp(reelgate, folder)
  const segment = listSegments(reelgate, reelgate.videoId)[0] ?? expect.fail()
  const copy = join(folder, 'media/segments', segment.file)
  const published = await flipByte(copy)
  expect(await backUp(reelgate, folder)).toMatchObject({ code: 0, made: { copiedBytes: 0 } })
  expect((await readFile(copy)).equals(published)).toBe(false)
  expect(await backUp(reelgate, folder, '--verify')).toMatchObject({ code: 0, made: { copiedBytes: published.length } })
  expect((await readFile(copy)).equals(published)).toBe(true)

  await flipByte(copy)
  const newest =
    (await readdir(folder))
      .filter((name) => name > made.name && name.endsWith('Z'))
      .sort()
      .at(-1) ?? expect.fail()
  const list = new SqliteDatabase(join(folder, newest, 'files.db'))
  list.prepare('update file set verified_at_ms = verified_at_ms - ?').run(31 * 24 * 3_600_000)
  list.close()
  expect(await backUp(reelgate, folder)).toMatchObject({ code: 0, made: { copiedBytes: published.length } })
  expect((await readFile(copy)).equals(published)).toBe(true)
})

test('F-52: a damaged file of a backup is named by the restore, its segment is encoded again, and its MP4 made again; --strict refuses', async () => {
  const reelgate = await start()
  const { owner, videoId } = reelgate
  await owner.call('POST', `/api/videos/${videoId}/files`, { body: { type: 'mp4' } })
  const mp4Size = (at: Reelgate) =>
    Number(readRows(at, "select size_bytes from file where type = 'mp4' and blob is not null")[0]?.size_bytes ?? 0)
  await expect.poll(() => mp4Size(reelgate)).toBeGreaterThan(0)
  const sizeBytes = mp4Size(reelgate)
  await reelgate.stop()
  const folder = await newFolder()
  await backUp(reelgate, folder)
  const segment = listSegments(reelgate, videoId)[1] ?? expect.fail()
  const published = await flipByte(join(folder, 'media/segments', segment.file))
  await rm(join(folder, 'media/files', await firstFile(reelgate, 'files')))

  const location = await makeLocation(IN_FOLDER)
  onTestFinished(() => location.remove())
  await copyFile(reelgate.masterKeyFile, location.masterKeyFile)
  expect(await runCli(['restore', folder, '--strict'], location.env)).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/is missing or damaged, so this backup cannot be restored/),
  })
  expect(await runCli(['restore', folder], location.env)).toMatchObject({
    code: 0,
    stderr: expect.stringMatching(new RegExp(`2 files are missing or damaged in the backup:[^]*segments/${segment.file}`)),
  })
  const restored = await startReelgate({ location, copyOf: reelgate })
  const path = join(location.dataDir, 'segments', segment.file)
  await expect.poll(() => existsSync(path) && readFile(path)).toEqual(published)
  await expect.poll(() => mp4Size(restored)).toBe(sizeBytes)
  await expect.poll(() => readRows(restored, 'select number from segment where damaged = 1')).toEqual([])
})

test('F-53: a backup whose manifest is damaged is named and blocks no other: neither a backup, nor a restore', async () => {
  const reelgate = await startReelgate(IN_FOLDER)
  await reelgate.stop()
  const folder = await newFolder()
  const first = (await backUp(reelgate, folder)).made
  const second = (await backUp(reelgate, folder)).made
  await writeFile(join(folder, second.name, 'manifest.json'), '{')
  const location = await makeLocation(IN_FOLDER)
  onTestFinished(() => location.remove())
  await copyFile(reelgate.masterKeyFile, location.masterKeyFile)
  const restored = await runCli(['restore', folder, '--json'], location.env)
  expect(restored).toMatchObject({ code: 0, stderr: expect.stringMatching(/manifest\.json is damaged/) })
  expect(JSON.parse(restored.stdout)).toMatchObject({ name: first.name })
  const third = await backUp(reelgate, folder, '--keep', '1')
  expect(third).toMatchObject({ code: 0, stderr: expect.stringMatching(/manifest\.json is damaged/) })
  expect((await readdir(folder)).filter((name) => name.endsWith('Z')).sort()).toEqual([second.name, third.made.name])
})

test('F-53: a folder below the data folder is refused for a backup, also by a symbolic link', async () => {
  const reelgate = await startReelgate(IN_FOLDER)
  const link = join(await newFolder(), 'link')
  await symlink(reelgate.dataDir, link)
  for (const folder of [join(reelgate.dataDir, 'backups'), join(link, 'backups'), reelgate.dataDir])
    expect(await backUp(reelgate, folder)).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/is in the data folder .*Name a folder on another disk/),
    })
  expect(existsSync(join(reelgate.dataDir, 'backups'))).toBe(false)
})

test('F-53: a backup whose disk is full says so in one sentence, and is continued when there is space', async () => {
  const reelgate = await start()
  const disk = await mountSmallDisk(8)
  const folder = join(disk.path, 'backups')
  await disk.leave(1)
  expect(await backUp(reelgate, folder)).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/^The disk of \S+ is full, so the backup is not finished; [^\n]*\n$/),
  })
  await disk.makeRoom()
  expect(await backUp(reelgate, folder)).toMatchObject({ code: 0 })
})

test('F-54: backup --check restores the newest backup to a scratch folder: a damaged one fails, and is the last good one no longer', async () => {
  const reelgate = await start()
  const [folder, scratch] = [await newFolder(), await newFolder()]
  await backUp(reelgate, folder)
  const check = () => reelgate.cli('backup', folder, '--check', '--scratch', scratch)
  expect(await check()).toMatchObject({ code: 0, stdout: expect.stringMatching(/can be restored: 1 videos, \d+ files/) })
  expect(await lastBackup(reelgate)).toMatchObject({ state: 'ok' })
  const segment = listSegments(reelgate, reelgate.videoId)[1] ?? expect.fail()
  await flipByte(join(folder, 'media/segments', segment.file))
  expect(await check()).toMatchObject({ code: 1, stderr: expect.stringContaining(`lacks 1 file: segments/${segment.file}`) })
  expect(await lastBackup(reelgate)).toMatchObject({ state: 'warning', says: expect.stringMatching(/no good backup/) })
  expect(await readdir(scratch)).toEqual([])
})

test('F-54: a backup that lacks a file is not the last good one, whose age doctor says', async () => {
  const reelgate = await startReelgate({ ...IN_FOLDER, video: await makeVideo() })
  await reelgate.stop()
  const folder = await newFolder()
  await backUp(reelgate, folder)
  changeRows(reelgate, `update setting set value = '{"name":"x","atS":1000}' where name = 'last-backup'`)
  await rm(join(reelgate.dataDir, 'posters', await firstFile(reelgate, 'posters')))
  await rm(folder, { recursive: true })
  expect(await backUp(reelgate, folder)).toMatchObject({ code: 1 })
  expect(await lastBackup(reelgate)).toMatchObject({
    state: 'warning',
    says: expect.stringMatching(/last good backup is \d+ days old/),
  })
})

async function lastBackup({ env }: Pick<Reelgate, 'env'>): Promise<unknown> {
  const { stdout } = await runCli(['doctor', '--json'], env)
  return JSON.parse(stdout).find(({ check }: { check: string }) => check === 'backup')
}

draw()
