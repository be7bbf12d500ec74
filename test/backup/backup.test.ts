import { execFile } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { cp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { dataPaths, readConfig } from '../../src/config.ts'
import { makeBackup } from '../../src/installation/backup/backup.ts'
import { type Manifest, removeOldBackups } from '../../src/installation/backup/backup-folder.ts'
import { listFiles, untilFinished } from '../data-folder.ts'
import { makePlace, type Place, type PlaceOptions } from '../installation-folder.ts'
import type { DatabaseKind } from '../postgres.ts'
import { type Reelgate, runCli, startReelgate, startSharedReelgate } from '../reelgate.ts'
import { changeRows, readRows } from '../rows.ts'
import { sampleOf } from '../sample.ts'
import { makeVideo } from '../videos.ts'

const run = promisify(execFile)
const MAIN = join(import.meta.dirname, '../../bin/main.js')

const DATABASES: readonly [from: DatabaseKind, to: DatabaseKind][] = [
  ['sqlite', 'sqlite'],
  ['postgres', 'postgres'],
  ['postgres', 'sqlite'],
  ['sqlite', 'postgres'],
]

test.each(sampleOf('databases of backups', DATABASES, 1))(
  'a running server is backed up from %s and restored to %s: its videos play, and nothing is called or played twice',
  async (from, to) => {
    const reelgate = await startReelgate({ database: from })
    const { owner } = reelgate
    const videoId = await owner.readyVideo(await makeVideo(), 'A video')
    await untilFinished(reelgate, videoId)
    await owner.call('POST', '/api/videos/tags', { body: { videos: [videoId], tags: ['news'] } })
    const [spent, unspent] = [await owner.issueOtp(videoId), await owner.issueOtp(videoId)]
    await reelgate.newViewer().redeem(spent)
    const folder = await newFolder()
    expect(await backUp(reelgate, folder)).toMatchObject({ videos: 1, lostCount: 0 })

    const restored = await restore(reelgate, folder, { database: to })
    expect(await listWhole(restored)).toEqual(await listWhole(reelgate))
    const viewer = restored.newViewer()
    await viewer.redeem(await restored.owner.issueOtp(videoId))
    expect((await viewer.key(0)).status).toBe(200)
    expect((await restored.newViewer().redeem(unspent)).playing).toBe(false)
    expect(restored.output()).toMatch(/restored from a backup, so its webhooks wait/)
    const next = await restored.owner.upload('A later one', await makeVideo())
    expect(next).not.toBe(videoId)
    await untilFinished(restored, next)
  },
)

test('a backup on the same disk is made of hard links, and one on another disk of copies: of new files only', async () => {
  const reelgate = await startReelgate({ video: await makeVideo() })
  const [here, elsewhere] = [await newFolder(), await newFolder('/dev/shm')]
  const first = await backUp(reelgate, elsewhere)
  expect(first).toMatchObject({ linkedBytes: 0, copiedBytes: first.sizeBytes })
  expect(await backUp(reelgate, here)).toMatchObject({ copiedBytes: 0, linkedBytes: first.sizeBytes })
  await reelgate.owner.readyVideo(await makeVideo({ seconds: 1 }))
  const second = await backUp(reelgate, elsewhere)
  expect(second.copiedBytes).toBe(second.sizeBytes - first.sizeBytes)
  expect(await backUp(reelgate, elsewhere)).toMatchObject({ copiedBytes: 0 })
})

test('a folder keeps as many backups as it is asked to, and no file that none of them names', async () => {
  const reelgate = await startReelgate({ video: await makeVideo() })
  const folder = await newFolder()
  const { name } = await backUp(reelgate, folder)
  await reelgate.owner.call('DELETE', `/api/videos?videos=${reelgate.videoId}`)
  const second = await backUp(reelgate, folder)
  expect(await restoreTo(await newPlace(reelgate), folder, '--at', name)).toMatchObject({ code: 0 })
  expect(second.videos).toBe(0)
  await removeOldBackups(folder, 1)
  expect((await readdir(folder)).sort()).toEqual([second.name, 'lock.db', 'media'])
  expect(readdirSync(join(folder, 'media'), { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())).toEqual(
    [],
  )
})

test('a video that is deleted while its files are copied is not in the backup, and all others are', async () => {
  // With more files than are copied concurrently, some are not copied yet when the first one is.
  const reelgate = await startReelgate({ video: await makeVideo({ seconds: 15, rate: 10 }) })
  const kept = await reelgate.owner.readyVideo(await makeVideo({ seconds: 1 }))
  await untilFinished(reelgate, kept)
  await reelgate.stop()
  let isDeleted = false
  const progress = (step: string) => {
    if (isDeleted || step !== 'media') return
    isDeleted = true
    changeRows(reelgate, 'update video set deleted_at_s = 1 where id = ?', reelgate.videoId)
    const { sources, segments, posters, files } = dataPaths(reelgate.dataDir)
    for (const root of [sources, segments, posters, files]) rmSync(join(root, reelgate.videoId), { recursive: true, force: true })
  }
  const folder = await newFolder()
  const config = readConfig(reelgate.env)
  const { manifest } = await makeBackup(config, { folder, keep: 1 }, { signal: new AbortController().signal, progress })
  expect(isDeleted).toBe(true)
  expect(manifest).toMatchObject({ videos: 1, lostCount: 0 })
  const restored = await restore(reelgate, folder)
  expect((await restored.owner.list()).rows.map(({ id }) => id)).toEqual([kept])
})

test('a file that is lost in the installation is named, and the backup has everything else', async () => {
  const reelgate = await startReelgate({ video: await makeVideo() })
  const [poster = ''] = (await listFiles(reelgate, 'posters')).filter((name) => name.endsWith('.sealed'))
  await rm(join(reelgate.dataDir, 'posters', poster))
  const folder = await newFolder()
  const { code, stdout, stderr } = await reelgate.cli('backup', folder, '--json')
  expect(code).toBe(1)
  expect(stderr).toMatch(/is finished, but 1 files of the installation are missing or damaged, such as posters\//)
  expect(JSON.parse(stdout)).toMatchObject({ lostCount: 1 })
  const restored = await restore(reelgate, folder)
  const viewer = restored.newViewer()
  await viewer.redeem(await restored.owner.issueOtp(reelgate.videoId))
  expect((await viewer.key(0)).status).toBe(200)
})

/** With one finished video. Tests that only read and back it up share it. */
let running: Awaited<ReturnType<typeof startSharedReelgate>>
beforeAll(async () => {
  running = await startSharedReelgate({ video: await makeVideo() })
})
afterAll(() => running.remove())

test('a stream is a tar archive of a backup: unpacked, it is restored; in the data folder nothing of it is left', async () => {
  const folder = await newFolder()
  await run(
    'sh',
    ['-c', '"$0" "$1" backup --stream 2>/dev/null | tar --extract --directory "$2"', process.execPath, MAIN, folder],
    { env: { PATH: process.env.PATH, ...running.env } },
  )
  expect(readdirSync(running.dataDir)).not.toContain('backup-stream')
  const restored = await restore(running, folder)
  expect(await listWhole(restored)).toEqual(await listWhole(running))
})

test('the master key is in no file of a backup, and without it, or with another one, nothing is restored', async () => {
  const folder = await newFolder()
  await backUp(running, folder)
  const key = await readFile(running.masterKeyFile)
  const names = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  for (const { parentPath, name } of names) expect((await readFile(join(parentPath, name))).includes(key)).toBe(false)

  const place = await newPlace(running)
  await rm(place.masterKeyFile)
  expect(await restoreTo(place, folder)).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(
      /needs its master key, which is never in a backup\. Put the key file at .*, or give its recovery phrase/,
    ),
  })
  const other = await startReelgate({ database: 'sqlite' })
  await cp(other.masterKeyFile, place.masterKeyFile)
  expect((await restoreTo(place, folder)).stderr).toMatch(/needs the master key \w{8}…, and \S+ has another one/)
  await rm(place.masterKeyFile)
  expect(existsSync(place.dataDir)).toBe(false)

  const { stdout: phrase } = await running.cli('key', 'phrase', '--json')
  await run(
    'sh',
    ['-c', 'echo "$3" | "$0" "$1" restore "$2" --phrase', process.execPath, MAIN, folder, JSON.parse(phrase).phrase],
    {
      env: { PATH: process.env.PATH, ...place.env },
    },
  )
  expect(await readFile(place.masterKeyFile)).toEqual(key)
})

test('nothing is restored over anything, from a damaged backup, or from one of a newer version', async () => {
  const folder = await newFolder()
  const { name } = await backUp(running, folder)
  expect((await restoreTo(running, folder)).stderr).toMatch(/A server runs on/)
  const place = await newPlace(running)
  await cp(running.dataDir, place.dataDir, { recursive: true, filter: (path) => !path.endsWith('.sock') })
  expect((await restoreTo(place, folder)).stderr).toMatch(/is not empty: it has /)
  await rm(place.dataDir, { recursive: true })

  const [segment = ''] = readdirSync(join(folder, 'media/segments'), { recursive: true, encoding: 'utf8' }).filter((file) =>
    statSync(join(folder, 'media/segments', file)).isFile(),
  )
  const path = join(folder, 'media/segments', segment)
  const before = await readFile(path)
  await rm(path) // a hard link: the installation’s own stays as it is
  await writeFile(path, Buffer.alloc(before.length))
  expect(await restoreTo(place, folder)).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/segments\/\S+ is missing or damaged/),
  })
  expect((await runCli(['serve'], place.env)).stderr).toMatch(/only in part\. Run the same reelgate restore command again/)
  await writeFile(path, before)
  expect(await restoreTo(place, folder)).toMatchObject({ code: 0 }) // the same command continues

  const manifestFile = join(folder, name, 'manifest.json')
  const manifest: Manifest = JSON.parse(await readFile(manifestFile, 'utf8'))
  await writeFile(manifestFile, JSON.stringify({ ...manifest, migrations: [...manifest.migrations, '9999-later'] }))
  expect((await restoreTo(await newPlace(running), folder)).stderr).toMatch(
    /newer than this one \(it has the migration 9999-later\)/,
  )
})

test('a folder with anything else in it, or with backups of another installation, is refused and stays as it is', async () => {
  const reelgate = await startReelgate({ database: 'sqlite' })
  const folder = await newFolder()
  await writeFile(join(folder, 'letters.txt'), 'x')
  expect((await reelgate.cli('backup', folder)).stderr).toMatch(/has something else in it: letters\.txt/)
  expect(readdirSync(folder)).toEqual(['letters.txt'])
  const ofOther = await newFolder()
  await backUp(await startReelgate({ database: 'sqlite' }), ofOther)
  expect((await reelgate.cli('backup', ofOther)).stderr).toMatch(/has backups of another installation/)
})

test('doctor says how old the last backup is, and the audit log who made it', async () => {
  const reelgate = await startReelgate()
  expect(await doctor(reelgate)).toMatchObject([{ state: 'warning', says: expect.stringMatching(/no backup yet/) }])
  const { name } = await backUp(reelgate, await newFolder())
  expect(await doctor(reelgate)).toMatchObject([{ state: 'ok', says: expect.stringMatching(/less than a day old/) }])
  changeRows(reelgate, `update setting set value = '{"name":"x","atS":1000}' where name = 'last-backup'`)
  expect(await doctor(reelgate)).toMatchObject([{ state: 'warning', says: expect.stringMatching(/days old/) }])
  expect(readRows(reelgate, "select subject, actor from audit_event where kind = 'backup:made'")).toEqual([
    { subject: name, actor: 'command-line' },
  ])
})

test('F-46: a copy of a running folder that is no backup is named as such at its first start', async () => {
  const reelgate = await startReelgate({ database: 'sqlite' })
  const place = await newPlace(reelgate, { database: 'sqlite' })
  cpSync(reelgate.dataDir, place.dataDir, { recursive: true, filter: (path) => !path.endsWith('.sock') })
  const copy = await startReelgate({ place, copyOf: reelgate })
  expect(copy.output()).toMatch(/is a copy of another one.*may lack rows or files/)
})

type MadeBackup = { name: string; videos: number; sizeBytes: number; copiedBytes: number; linkedBytes: number; lostCount: number }

async function backUp(reelgate: Reelgate, folder: string): Promise<MadeBackup> {
  const { code, stdout, stderr } = await reelgate.cli('backup', folder, '--json')
  if (code !== 0) throw new Error(stderr)
  return JSON.parse(stdout)
}

async function newFolder(within = tmpdir()): Promise<string> {
  const folder = mkdtempSync(join(within, 'reelgate-backup-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return folder
}

/** An empty place with the master key of an installation. */
async function newPlace({ masterKeyFile }: Reelgate, options: PlaceOptions = {}): Promise<Place> {
  const place = await makePlace(options)
  onTestFinished(() => place.remove())
  await cp(masterKeyFile, place.masterKeyFile)
  return place
}

const restoreTo = ({ env }: Pick<Place, 'env'>, folder: string, ...more: string[]) => runCli(['restore', folder, ...more], env)

/** Restores the newest backup of an installation to another place, and starts it there. */
async function restore(original: Reelgate, folder: string, options?: PlaceOptions): Promise<Reelgate> {
  const place = await newPlace(original, options)
  expect(await restoreTo(place, folder)).toMatchObject({ code: 0, stdout: expect.stringMatching(/^Restored /) })
  return startReelgate({ place, copyOf: original })
}

/** Its videos, found by a search, without the addresses of this server. */
async function listWhole({ owner, url }: Reelgate): Promise<string> {
  const { count, rows } = await owner.list('?q=vid')
  expect(count).toBe(1)
  return JSON.stringify(rows).replaceAll(url, '')
}

async function doctor({ env }: Reelgate): Promise<unknown[]> {
  const { stdout } = await runCli(['doctor', '--json'], env)
  return JSON.parse(stdout).filter(({ check }: { check: string }) => check === 'backup')
}
