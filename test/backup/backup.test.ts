import { execFile } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { cp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, onTestFinished } from 'vitest'
import { readConfig } from '../../src/config/config.ts'
import { dataPaths } from '../../src/config/data-paths.ts'
import { phraseFromKey } from '../../src/crypto/recovery-phrase.ts'
import { type BackupName, type Manifest, removeOldBackups } from '../../src/installation/backup/backup-folder.ts'
import { makeBackup } from '../../src/installation/make-backup.ts'
import { restoreBackup } from '../../src/installation/restore.ts'
import { getMasterKey, listFiles, untilFinished } from '../data-folder.ts'
import { type Reelgate, startReelgate } from '../in-process.ts'
import { type Location, makeLocation, type PlaceOptions } from '../installation-folder.ts'
import { addDub, audibleIn, near } from '../pipeline/dubs.ts'
import { lessonOf, makeLesson, showCaptions } from '../pipeline/lesson.ts'
import { play } from '../pipeline/replaced.ts'
import type { DatabaseKind } from '../postgres.ts'
import { runCli, startReelgate as startProcess, startSharedReelgate } from '../reelgate.ts'
import { changeRows, readRows } from '../rows.ts'
import { sampledTests, sampleOf } from '../sample.ts'
import { makeVideo } from '../videos.ts'

const { test, draw } = sampledTests('backups of a folder', 6)

/** Wherever other suites keep their files: those of a bucket are in `bucket.test.ts`. */
const IN_FOLDER = { storage: 'folder' } as const

const run = promisify(execFile)
const MAIN = join(import.meta.dirname, '../../bin/main.js')

const DATABASES: readonly [from: DatabaseKind, to: DatabaseKind][] = [
  ['sqlite', 'sqlite'],
  ['postgres', 'postgres'],
  ['postgres', 'sqlite'],
  ['sqlite', 'postgres'],
]

test.each(sampleOf('databases of backups', DATABASES, 1))(
  'T-22, T-27: a running server is backed up from %s and restored to %s: its videos play in all languages, with captions, chapters and storyboard, and nothing is called or played twice',
  async ([from, to]) => {
    const reelgate = await startReelgate({ ...IN_FOLDER, database: from })
    const { owner } = reelgate
    const videoId = await owner.readyVideo(await makeLesson(), 'A video')
    await untilFinished(reelgate, videoId)
    await showCaptions({ ...reelgate, videoId }, 'en')
    await owner.call('PUT', `/api/videos/${videoId}/audio/3`, { body: { name: 'Deutsch (AT)', default: true } })
    const dubId = await addDub({ owner, videoId })
    const lesson = await lessonOf({ ...reelgate, videoId })
    await owner.call('POST', '/api/videos/tags', { body: { videos: [videoId], tags: ['news'] } })
    const [spent, unspent] = [await owner.issueOtp(videoId), await owner.issueOtp(videoId)]
    await reelgate.newViewer().redeem(spent)
    const folder = await newFolder()
    expect(await backUp(reelgate, folder)).toMatchObject({ videos: 1, lostCount: 0 })

    const restored = await restore(reelgate, folder, { database: to })
    expect(await listWhole(restored)).toEqual(await listWhole(reelgate))
    expect(await lessonOf({ ...restored, videoId })).toEqual(lesson)
    expect((await audibleIn(await play({ ...restored, videoId }), dubId)).fromS).toEqual(near(1))
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
  const reelgate = await startReelgate({ ...IN_FOLDER, video: await makeVideo() })
  const [here, elsewhere] = [await newFolder(), await newFolder('/dev/shm')]
  const first = await backUp(reelgate, elsewhere)
  expect(first).toMatchObject({ linkedBytes: 0, copiedBytes: first.sizeBytes })
  expect(await backUp(reelgate, here)).toMatchObject({ copiedBytes: 0, linkedBytes: first.sizeBytes })
  await untilFinished(reelgate, await reelgate.owner.readyVideo(await makeVideo({ seconds: 1 })))
  const second = await backUp(reelgate, elsewhere)
  expect(second.copiedBytes).toBe(second.sizeBytes - first.sizeBytes)
  expect(await backUp(reelgate, elsewhere)).toMatchObject({ copiedBytes: 0 })
})

test('a folder keeps as many backups as it is asked to, and no file that none of them names', async () => {
  const reelgate = await startReelgate({ ...IN_FOLDER, video: await makeVideo() })
  const folder = await newFolder()
  const { name } = await backUp(reelgate, folder)
  await reelgate.owner.call('DELETE', `/api/videos?videos=${reelgate.videoId}`)
  const second = await backUp(reelgate, folder)
  await restoreTo(await newLocation(reelgate), folder, name)
  expect(second.videos).toBe(0)
  await removeOldBackups(folder, 1)
  expect((await readdir(folder)).sort()).toEqual([second.name, 'lock.db', 'media'])
  expect(readdirSync(join(folder, 'media'), { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())).toEqual(
    [],
  )
})

test('a video that is deleted while its files are copied is not in the backup, and all others are', async () => {
  // With more files than are copied concurrently, some are not copied yet when the first one is.
  const reelgate = await startReelgate({ ...IN_FOLDER, video: await makeVideo({ seconds: 15, rate: 10 }) })
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
  const { manifest } = await makeBackup(config, { folder, keep: 1 }, { ...QUIETLY, progress })
  expect(isDeleted).toBe(true)
  expect(manifest).toMatchObject({ videos: 1, lostCount: 0 })
  const restored = await restore(reelgate, folder)
  expect((await restored.owner.list()).rows.map(({ id }) => id)).toEqual([kept])
})

test('a file that is lost in the installation is named, and the backup has everything else', async () => {
  const reelgate = await startReelgate({ ...IN_FOLDER, video: await makeVideo() })
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
  running = await startSharedReelgate({ ...IN_FOLDER, video: await makeVideo() })
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
  const location = await newLocation(running)
  expect(await runCli(['restore', folder], location.env)).toMatchObject({ code: 0, stdout: expect.stringMatching(/^Restored /) })
  expect(await listWhole(await startReelgate({ location, copyOf: running }))).toEqual(await listWhole(running))
})

test('the master key is in no file of a backup, and without it, or with another one, nothing is restored', async () => {
  const folder = await newFolder()
  await backUp(running, folder)
  const key = await readFile(running.masterKeyFile)
  const names = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  for (const { parentPath, name } of names) expect((await readFile(join(parentPath, name))).includes(key)).toBe(false)

  const location = await newLocation(running)
  await rm(location.masterKeyFile)
  await expect(restoreTo(location, folder)).rejects.toThrow(
    /needs its master key, which is never in a backup\. Put the key file at .*, or give its recovery phrase/,
  )
  await writeFile(location.masterKeyFile, `${'ab'.repeat(32)}\n`, { mode: 0o600 })
  await expect(restoreTo(location, folder)).rejects.toThrow(/needs the master key \w{8}…, and \S+ has another one/)
  await rm(location.masterKeyFile)
  expect(existsSync(location.dataDir)).toBe(false)

  const phrase = phraseFromKey(getMasterKey(running)).join(' ')
  await run('sh', ['-c', 'echo "$3" | "$0" "$1" restore "$2" --phrase', process.execPath, MAIN, folder, phrase], {
    env: { PATH: process.env.PATH, ...location.env },
  })
  expect(await readFile(location.masterKeyFile)).toEqual(key)
})

test('nothing is restored over anything, from a damaged backup, or from one of a newer version', async () => {
  const folder = await newFolder()
  const { name } = await backUp(running, folder)
  await expect(restoreTo(running, folder)).rejects.toThrow(/A server runs on/)
  const location = await newLocation(running)
  await cp(running.dataDir, location.dataDir, { recursive: true, filter: (path) => !path.endsWith('.sock') })
  await expect(restoreTo(location, folder)).rejects.toThrow(/is not empty: it has /)
  await rm(location.dataDir, { recursive: true })

  const [segment = ''] = readdirSync(join(folder, 'media/segments'), { recursive: true, encoding: 'utf8' }).filter((file) =>
    statSync(join(folder, 'media/segments', file)).isFile(),
  )
  const path = join(folder, 'media/segments', segment)
  const before = await readFile(path)
  await rm(path) // a hard link: the installation’s own stays as it is
  await writeFile(path, Buffer.alloc(before.length))
  const strict = restoreBackup(readConfig(location.env), { folder, strict: true }, QUIETLY)
  await expect(strict).rejects.toThrow(/segments\/\S+ is missing or damaged/)
  expect((await runCli(['serve'], location.env)).stderr).toMatch(/only in part\. Run the same reelgate restore command again/)
  await writeFile(path, before)
  await restoreTo(location, folder) // the same command continues

  const manifestFile = join(folder, name, 'manifest.json')
  const manifest: Manifest = JSON.parse(await readFile(manifestFile, 'utf8'))
  await writeFile(manifestFile, JSON.stringify({ ...manifest, migrations: [...manifest.migrations, '9999-later'] }))
  await expect(restoreTo(await newLocation(running), folder)).rejects.toThrow(
    /newer than this one \(it has the migration 9999-later\)/,
  )
})

test('a folder with anything else in it, or with backups of another installation, is refused and stays as it is', async () => {
  const folder = await newFolder()
  await writeFile(join(folder, 'letters.txt'), 'x')
  await expect(backUp(running, folder)).rejects.toThrow(/has something else in it: letters\.txt/)
  expect(readdirSync(folder)).toEqual(['letters.txt'])
  const ofOther = await newFolder()
  await backUp(await startReelgate(IN_FOLDER), ofOther)
  await expect(backUp(running, ofOther)).rejects.toThrow(/has backups of another installation/)
})

test('doctor says how old the last backup is, and the audit log who made it', async () => {
  const reelgate = await startReelgate(IN_FOLDER)
  expect(await doctor(reelgate)).toMatchObject([{ state: 'warning', says: expect.stringMatching(/no good backup yet/) }])
  const { name } = JSON.parse((await reelgate.cli('backup', await newFolder(), '--json')).stdout)
  expect(await doctor(reelgate)).toMatchObject([{ state: 'ok', says: expect.stringMatching(/less than a day old/) }])
  changeRows(reelgate, `update setting set value = '{"name":"x","atS":1000}' where name = 'last-backup'`)
  expect(await doctor(reelgate)).toMatchObject([{ state: 'warning', says: expect.stringMatching(/days old/) }])
  expect(readRows(reelgate, "select subject, actor from audit_event where kind = 'backup:made'")).toEqual([
    { subject: name, actor: 'command-line' },
  ])
})

test('F-46: a copy of a running folder that is no backup is named as such at its first start', async () => {
  const reelgate = await startProcess({ ...IN_FOLDER, database: 'sqlite' })
  const location = await newLocation(reelgate, { database: 'sqlite' })
  cpSync(reelgate.dataDir, location.dataDir, { recursive: true, filter: (path) => !path.endsWith('.sock') })
  const copy = await startReelgate({ location, copyOf: reelgate })
  expect(copy.output()).toMatch(/is a copy of another one.*may lack rows or files/)
})

draw()

const QUIETLY = { signal: new AbortController().signal, progress: () => undefined }

async function backUp({ env }: Pick<Location, 'env'>, folder: string) {
  const { name, manifest, ...added } = await makeBackup(readConfig(env), { folder, keep: 7 }, QUIETLY)
  return { name, videos: manifest.videos, sizeBytes: manifest.files.sizeBytes, lostCount: manifest.lostCount, ...added }
}

async function newFolder(within = tmpdir()): Promise<string> {
  const folder = mkdtempSync(join(within, 'reelgate-backup-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return folder
}

/** An empty place with the master key of an installation. */
async function newLocation({ masterKeyFile }: Pick<Location, 'masterKeyFile'>, options: PlaceOptions = {}): Promise<Location> {
  const location = await makeLocation({ ...IN_FOLDER, ...options })
  onTestFinished(() => location.remove())
  await cp(masterKeyFile, location.masterKeyFile)
  return location
}

function restoreTo({ env }: Pick<Location, 'env'>, folder: string, name?: string): Promise<BackupName> {
  return restoreBackup(readConfig(env), { folder, name }, QUIETLY)
}

/** Restores the newest backup of an installation to another place, and starts it there. */
async function restore(original: Reelgate, folder: string, options?: PlaceOptions): Promise<Reelgate> {
  const location = await newLocation(original, options)
  await restoreTo(location, folder)
  return startReelgate({ location, copyOf: original })
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
