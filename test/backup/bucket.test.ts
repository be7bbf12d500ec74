import { execFile } from 'node:child_process'
import { mkdtempSync } from 'node:fs'
import { cp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { type Config, readConfig } from '../../src/config/config.ts'
import { openFileList } from '../../src/db/sqlite/snapshot.ts'
import { makeBackup } from '../../src/installation/make-backup.ts'
import { checkBackup, restoreBackup } from '../../src/installation/restore.ts'
import { openBucket } from '../../src/storage/s3/bucket.ts'
import { readBody } from '../../src/storage/s3/objects.ts'
import { listSegments, untilFinished } from '../data-folder.ts'
import { fillIn, readSteps } from '../docs/steps.ts'
import { type Reelgate, startReelgate, startSharedReelgate } from '../in-process.ts'
import { type Location, makeLocation } from '../installation-folder.ts'
import { downloadVideo } from '../pipeline/videos.ts'
import { readRows } from '../rows.ts'
import { killAt, startFaultProxy } from '../s3/fault-proxy.ts'
import { bucketEnvironment, contentsOf, storeEndpoint } from '../s3.ts'
import { sampledTests } from '../sample.ts'
import { makeVideo } from '../videos.ts'

// Backups of files that are in a bucket, and backups in a bucket. One installation of each engine is backed up by all tests, and stays as it is.

const run = promisify(execFile)
const MAIN = join(import.meta.dirname, '../../bin/main.js')
const QUIETLY = { signal: new AbortController().signal, progress: () => undefined }
type BucketPlace = Awaited<ReturnType<typeof bucketEnvironment>>

let inBucket: Reelgate & { remove(): Promise<void> }
let place: BucketPlace
let videoId: string
beforeAll(async () => {
  place = await bucketEnvironment()
  inBucket = await startSharedReelgate({ storage: 'folder', env: place.env })
  // Of one colour, so that a segment that is encoded again has the same bytes.
  videoId = await inBucket.owner.upload('A video', await makeVideo({ seconds: 9, dark: true }))
  await untilFinished(inBucket, videoId)
})
afterAll(() => inBucket.remove())

test('F-227: a backup of a bucket has the rows, and the names and hashes of all objects; a restore names what is missing, and it is encoded again', async () => {
  const folder = newFolder()
  const made = await makeBackup(configOf(inBucket, place), { folder, keep: 7 }, QUIETLY)
  expect(made).toMatchObject({ copiedBytes: 0, linkedBytes: 0, manifest: { format: 2, lostCount: 0 } })
  using list = openFileList(join(folder, made.name, 'files.db'))
  const listed = [...list.files()].map(({ folder, name }) => `${folder}/${name}`).sort()
  expect(listed).toEqual((await contentsOf(place.bucket)).objects.filter((name) => /^(sou|seg|pos|fil)\w+\//.test(name)))
  for (const { sha256, verifiedAtMs, folder } of list.files())
    expect([sha256.equals(Buffer.alloc(32)), verifiedAtMs > 0]).toEqual([false, folder !== 'segments'])

  const copy = await copyOf(place)
  const lost = listSegments(inBucket, videoId)[1] ?? expect.fail('it has no segments')
  await copy.bucket.send({ method: 'DELETE', key: `${copy.bucket.address.prefix}segments/${lost.file}` })
  const location = await newLocation(inBucket)
  const restored = await restoreBackup(configOf(location, copy), { folder }, QUIETLY)
  expect(restored.lost).toEqual([`segments/${lost.file}`])
  const reelgate = await startReelgate({ location, env: copy.env, copyOf: inBucket })
  await expect.poll(async () => (await contentsOf(copy.bucket)).objects).toContain(`segments/${lost.file}`)
  expect(await segmentsOf(reelgate)).toEqual(await segmentsOf(inBucket))
})

describe('F-228: files of a bucket are copied with --media, and from there restored', () => {
  const { test, draw } = sampledTests('places of backups and restores', 2)
  const ways = ['a folder', 'another bucket'].flatMap((to) =>
    ['a data folder', 'a bucket'].map((target) => `to ${to}, then to ${target}`),
  )
  test.each(ways)('%s', async (way) => {
    const other = await newPlace()
    const to = way.startsWith('to a folder') ? newFolder() : other.url
    const config = configOf(inBucket, place, other)
    const made = await makeBackup(config, { folder: to, keep: 7, media: true }, QUIETLY)
    expect(made).toMatchObject({ copiedBytes: made.manifest.files.sizeBytes, manifest: { format: 1, lostCount: 0 } })
    expect(await makeBackup(config, { folder: to, keep: 7, media: true }, QUIETLY)).toMatchObject({ copiedBytes: 0 })
    expect((await checkBackup(config, { folder: to, scratch: newFolder(), bytesPerS: 1e9 }, QUIETLY)).lost).toEqual([])
    const target = way.endsWith('to a bucket') ? await bucketEnvironment() : undefined
    const location = await newLocation(inBucket)
    const restored = await restoreBackup(configOf(location, target, other), { folder: to }, QUIETLY)
    expect(restored.lost).toEqual([])
    const reelgate = await startReelgate({ location, env: target?.env ?? {}, copyOf: inBucket })
    expect(await segmentsOf(reelgate)).toEqual(await segmentsOf(inBucket))
  })
  draw()
})

test('F-228: a data folder is backed up to a bucket, which keeps as many backups as it is asked to and no file that none of them names', async () => {
  const reelgate = await startReelgate({ storage: 'folder', video: await makeVideo() })
  const other = await newPlace()
  const config = configOf(reelgate, undefined, other)
  const [first, second] = [1, 2].map(() => () => makeBackup(config, { folder: other.url, keep: 1 }, QUIETLY))
  await first?.()
  const whole = (await contentsOf(other.bucket)).objects.length
  await reelgate.owner.delete([reelgate.videoId])
  expect(await second?.()).toMatchObject({ copiedBytes: 0, manifest: { videos: 0 } })
  const { objects, uploads } = await contentsOf(other.bucket)
  expect({ objects: objects.map((name) => name.split('/').at(-1)), uploads }).toEqual({
    objects: ['files.db', 'manifest.json', 'rows.db', 'reelgate'],
    uploads: [],
  })
  expect(whole).toBeGreaterThan(objects.length)
})

test('F-229: backup and restore refuse the bucket of the videos themselves, one with anything else, a restore without the bucket, and one without keys', async () => {
  const other = await newPlace()
  const backUp = (config: Config, to: string) => makeBackup(config, { folder: to, keep: 7 }, QUIETLY)
  const config = configOf(inBucket, place, other)
  await expect(backUp(config, place.env.REELGATE_STORAGE_URL)).rejects.toThrow('is the bucket of the videos themselves')
  const strange = await newPlace()
  await strange.bucket.send({ method: 'PUT', key: `${strange.bucket.address.prefix}notes.txt`, body: Buffer.from('a') })
  await expect(backUp(configOf(inBucket, place, strange), strange.url)).rejects.toThrow('has something else in it')
  await expect(backUp(config, 's3://x?endpoint=http://[')).rejects.toThrow('is no address of a bucket')
  await expect(backUp(configOf(inBucket), other.url)).rejects.toThrow('needs keys')
  await expect(backUp(configOf(inBucket, place, other), other.at('http://127.0.0.1:9'))).rejects.toThrow(
    /^The bucket of the backups s3:\S+ does not answer \(ECONNREFUSED\)/,
  )
  const folder = newFolder()
  await backUp(config, folder)
  const location = await newLocation(inBucket)
  const restore = (target?: BucketPlace) => restoreBackup(configOf(location, target), { folder }, QUIETLY)
  await expect(restore()).rejects.toThrow('has rows alone: the files of its videos are in the bucket')
  await expect(restore(await bucketEnvironment())).rejects.toThrow('are not below s3://')
  expect((await restore(place)).lost).toEqual([])
})

test('F-228: a bucket is backed up, checked and restored by the steps of docs/operations.md', async () => {
  const other = await newPlace()
  const commands = (await readSteps('Back up a bucket')).flatMap(({ commands }) => commands)
  expect(commands.map((command) => command.replace(/ 's3:.*/, ''))).toEqual([
    ...['reelgate backup', 'reelgate backup --media', 'reelgate backup --check', 'reelgate restore'],
  ])
  const location = await newLocation(inBucket)
  for (const command of commands) {
    const { env } = command.startsWith('reelgate restore') ? location : inBucket
    const places = { ...env, ...place.env, ...keysOf(other), PATH: process.env.PATH ?? '' }
    const filled = fillIn(command, { 's3://my-backups/reelgate?endpoint=https://s3.example.com': other.url })
    await run('sh', ['-c', filled.replace('reelgate', `'${process.execPath}' '${MAIN}'`)], { env: places })
  }
  expect(readRows(location, 'select id from video')).toEqual([{ id: videoId }])
})

describe('F-230: a backup to a bucket that is killed at any request leaves the earlier one, and the next one continues', () => {
  const { test, draw } = sampledTests('kills of backups to a bucket', 2)
  const points = Array.from({ length: 40 }, (_, request) => [`before request ${request}`, `after request ${request}`]).flat()
  test.each(points)('%s', async (point) => {
    const proxy = await startFaultProxy(await storeEndpoint())
    const direct = await newPlace()
    const config = configOf(inBucket, place, direct)
    const check = () => checkBackup(config, { folder: direct.url, scratch: newFolder(), bytesPerS: 1e9 }, QUIETLY)
    const earlier = await makeBackup(config, { folder: direct.url, keep: 7 }, QUIETLY)
    proxy.fault = killAt(point)
    await makeBackup(config, { folder: direct.at(proxy.endpoint), keep: 7, media: true }, QUIETLY).catch(() => undefined)
    const found = await check()
    expect([found.name >= earlier.name, found.lost]).toEqual([true, []])
    const next = await makeBackup(config, { folder: direct.url, keep: 1, media: true }, QUIETLY)
    expect(await check()).toMatchObject({ name: next.name, lost: [], manifest: { lostCount: 0 } })
    const { objects, uploads } = await contentsOf(direct.bucket)
    expect([objects.length, uploads]).toEqual([next.manifest.files.count + 4, []])
  })
  draw()
})

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'reelgate-backup-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return folder
}

/** An empty bucket for backups: one with the videos would be refused. `at`: its address for the commands. */
async function newPlace() {
  const made = await bucketEnvironment()
  const address = { ...made.bucket.address, bucket: `backups-${made.bucket.address.prefix.slice(0, -1)}` }
  const bucket = openBucket(address)
  await bucket.send({ method: 'PUT' })
  const at = (endpoint: string) => `s3://${address.bucket}/${address.prefix}?endpoint=${endpoint}`
  return { ...made, bucket, at, url: at(address.endpoint) }
}

/** An empty place with the master key of an installation. */
async function newLocation({ masterKeyFile }: Pick<Location, 'masterKeyFile'>): Promise<Location> {
  const location = await makeLocation({ database: 'sqlite', storage: 'folder' })
  onTestFinished(() => location.remove())
  await cp(masterKeyFile, location.masterKeyFile)
  return location
}

/** @param files undefined: in the data folder. @param backups has the keys of the bucket with backups */
function configOf({ env }: Pick<Location, 'env'>, files?: BucketPlace, backups?: BucketPlace): Config {
  return readConfig({ ...env, ...files?.env, ...(backups && keysOf(backups)) })
}

function keysOf({ env: { AWS_ACCESS_KEY_ID: id, AWS_SECRET_ACCESS_KEY: secret } }: BucketPlace) {
  return { REELGATE_BACKUP_ACCESS_KEY_ID: id, REELGATE_BACKUP_SECRET_ACCESS_KEY: secret }
}

/** Another prefix with the same objects. */
async function copyOf({ bucket }: BucketPlace): Promise<BucketPlace> {
  const copy = await bucketEnvironment()
  for (const name of (await contentsOf(bucket)).objects) {
    const body = await bucket.ask({ method: 'GET', key: bucket.address.prefix + name }, readBody)
    await copy.bucket.send({ method: 'PUT', key: copy.bucket.address.prefix + name, body })
  }
  return copy
}

/** The bytes of all segments, as a viewer gets them. */
async function segmentsOf(reelgate: Reelgate): Promise<string[]> {
  const renditions = await downloadVideo(reelgate, videoId)
  return renditions.flatMap(({ segments }) => segments.map((segment) => segment.toString('base64').slice(0, 200)))
}
