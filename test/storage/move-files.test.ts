import { createHash } from 'node:crypto'
import { copyFile, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { dataPaths, MEDIA_FOLDERS } from '../../src/config/data-paths.ts'
import { sendCommand } from '../../src/control/socket.ts'
import type { MoveStatus } from '../../src/installation/file-move.ts'
import type { Bucket } from '../../src/storage/s3/bucket.ts'
import { readBody } from '../../src/storage/s3/objects.ts'
import { listFiles, untilFinished } from '../data-folder.ts'
import { startReelgate } from '../in-process.ts'
import { downloadVideo } from '../pipeline/videos.ts'
import * as apart from '../reelgate.ts'
import { readRows } from '../rows.ts'
import { type Fault, type FaultProxy, type Passing, startFaultProxy } from '../s3/fault-proxy.ts'
import { bucketEnvironment, contentsOf, storeEndpoint } from '../s3.ts'
import { sampleOf } from '../sample.ts'
import { makeVideo } from '../videos.ts'

// The files of a running installation move between its data folder and buckets.

type Moving = Pick<apart.Reelgate, 'dataDir'>

test('F-218: files move to a bucket, to another one and back while videos are uploaded, encoded, played and deleted; all stay as they were', async () => {
  const proxy = await startFaultProxy(await storeEndpoint())
  const [first, second] = [await bucketEnvironment(proxy.endpoint), await bucketEnvironment()]
  const [url, otherUrl] = [first.env.REELGATE_STORAGE_URL, second.env.REELGATE_STORAGE_URL]
  const env = { ...first.env, REELGATE_STORAGE_OTHER_URL: otherUrl }
  const file = await makeVideo()
  const reelgate = await startReelgate({ video: file, env })
  const { owner, videoId } = reelgate
  const published = await hashFiles(reelgate)
  expect(Object.keys(published).length).toBeGreaterThan(5)

  // The bucket answers nothing until the others are at work.
  const held = Promise.withResolvers<void>()
  const isHeld = Promise.withResolvers<void>()
  proxy.fault = async ({ method, path }) => {
    if (method === 'PUT' && path.includes(videoId)) {
      isHeld.resolve()
      await held.promise
    }
    return false
  }
  expect(await move(reelgate, url)).toMatchObject({ state: 'moving' })
  await isHeld.promise
  const viewer = reelgate.newViewer()
  expect(await viewer.redeem(await owner.issueOtp(videoId))).toMatchObject({ playing: true })
  const segments = await downloadVideo(reelgate, videoId)
  const during = await owner.upload('During the move', file)
  await untilFinished(reelgate, during)
  const deleted = await owner.upload('Deleted during the move', file)
  await owner.delete([deleted])
  await expect.poll(() => readRows(reelgate, 'select id from video where id = ?', deleted)).toEqual([])
  await expect(move(reelgate, otherUrl)).rejects.toThrow('are being moved to s3://')
  expect(await checkOf(reelgate, 'bucket')).toMatchObject({ state: 'warning', says: expect.stringContaining('are being moved') })
  held.resolve()
  const { stdout } = await reelgate.cli('migrate', '--storage', url)
  expect(stdout).toContain('All files are in s3://')
  expect(stdout).toContain(`rm -r '${dataPaths(reelgate.dataDir).sources}'`)
  expect(readRows(reelgate, 'select count(*) as count from moved_blob')).toEqual([{ count: 0 }])
  expect(readRows(reelgate, `select actor, subject from audit_event where kind = 'storage:move-began'`)).toEqual([
    { actor: 'command-line', subject: expect.stringContaining('s3://') },
  ])

  await setAside(reelgate)
  expect(pick(await hashObjects(first.bucket), Object.keys(published))).toEqual(published)
  const names = Object.keys(await hashObjects(first.bucket))
  expect(names.some((name) => name.includes(during))).toBe(true)
  expect(names.filter((name) => name.includes(deleted))).toEqual([])
  expect(await downloadVideo(reelgate, videoId)).toEqual(segments)
  await reelgate.stop()
  await reelgate.restart()
  for (const id of [videoId, during]) expect(await owner.video(id)).toMatchObject({ status: 'ready' })

  await moved(reelgate, otherUrl)
  expect(await hashObjects(second.bucket)).toEqual(await hashObjects(first.bucket))
  await reelgate.stop()
  await reelgate.restart()
  expect(await downloadVideo(reelgate, videoId)).toEqual(segments)
  await moved(reelgate, 'folder')
  expect(pick(await hashFiles(reelgate), Object.keys(published))).toEqual(published)
  expect(await hashFiles(reelgate)).toEqual(await hashObjects(second.bucket))
  await reelgate.stop()
  await reelgate.restart()
  expect(await downloadVideo(reelgate, videoId)).toEqual(segments)
  expect(await checkOf(reelgate, 'bucket')).toMatchObject({ state: 'warning', says: expect.stringContaining('nothing uses') })
})

test('F-268: a move that is turned round brings everything back, also what was written meanwhile, and continues after a restart', async () => {
  const proxy = await startFaultProxy(await storeEndpoint())
  const { env } = await bucketEnvironment(proxy.endpoint)
  const reelgate = await startReelgate({ video: await makeVideo(), env })
  const file = await makeVideo({ seconds: 1 })
  const { owner, videoId } = reelgate
  const published = await hashFiles(reelgate)
  let copies = 0
  const copying = holdAt(proxy, ({ method, path }) => method === 'PUT' && path.includes(videoId) && copies++ === 2)
  await move(reelgate, env.REELGATE_STORAGE_URL)
  await copying.held
  const during = await owner.upload('During the move', file)
  await untilFinished(reelgate, during)
  const goingBack = holdAt(proxy, ({ method, path }) => method === 'GET' && path.includes(`/segments/${during}`))
  expect(await move(reelgate, 'folder')).toMatchObject({ state: 'moving', to: expect.stringMatching(/^the data folder/) })
  copying.release()
  await goingBack.held
  const later = await owner.upload('On the way back', file)
  await untilFinished(reelgate, later)
  const stopped = reelgate.stop()
  goingBack.release()
  await stopped
  await reelgate.restart()
  expect(await untilMoved(reelgate)).toMatchObject({ to: expect.stringMatching(/^the data folder/), damagedCount: 0 })
  expect(readRows(reelgate, `select name from setting where name in ('bucket', 'storage-move')`)).toEqual([])
  await proxy.stop() // the bucket is of no use any more
  const names = Object.keys(await hashFiles(reelgate))
  for (const id of [videoId, during, later]) {
    expect((await downloadVideo(reelgate, id)).length).toBeGreaterThan(0)
    expect(names.some((name) => name.includes(id))).toBe(true)
  }
  expect(pick(await hashFiles(reelgate), Object.keys(published))).toEqual(published)
})

test('F-219: a move continues after kill -9 at any object, before and after it is stored', async () => {
  const proxy = await startFaultProxy(await storeEndpoint())
  const { env, bucket } = await bucketEnvironment(proxy.endpoint)
  const reelgate = await apart.startReelgate({ video: await makeVideo(), env })
  const published = await hashFiles(reelgate)
  const keys = Object.keys(published)
  const kills = sampleOf(
    'file-move-kills',
    keys.flatMap((key) => [
      { key, isStored: false },
      { key, isStored: true },
    ]),
    3,
  )
  let restarted = Promise.resolve()
  proxy.fault = async ({ method, path, pass, reply }) => {
    const index = method === 'PUT' ? kills.findIndex(({ key }) => path.endsWith(key)) : -1
    const [kill] = index < 0 ? [] : kills.splice(index, 1)
    if (!kill) return false
    if (kill.isStored) await pass()
    const killed = restarted.then(() => reelgate.kill()) // copies run in parallel: one kill after the other
    restarted = killed.then(() => reelgate.restart())
    await killed
    reply.destroy()
    return true
  }
  await move(reelgate, env.REELGATE_STORAGE_URL)
  const state = () =>
    statusOf(reelgate).then(
      (status) => status.state,
      () => 'killed',
    )
  await expect.poll(state).toBe('done')
  await restarted
  expect(kills).toEqual([])
  await setAside(reelgate)
  expect(await hashObjects(bucket)).toEqual(published)
  expect((await contentsOf(bucket)).uploads).toEqual([])
  expect((await downloadVideo(reelgate, reelgate.videoId)).length).toBeGreaterThan(0)
})

test('F-220: a damaged file is named and not copied, and its segment is encoded again in the new place', async () => {
  const { env, bucket } = await bucketEnvironment()
  const reelgate = await startReelgate({ video: await makeVideo(), env })
  const published = await hashFiles(reelgate)
  const [damaged = ''] = (await listFiles(reelgate, 'segments')).filter((name) => name.endsWith('.m4s'))
  const [source = ''] = (await listFiles(reelgate, 'sources')).filter((name) => name.endsWith('.sealed'))
  await copyFile(join(reelgate.dataDir, 'sources', source), join(reelgate.dataDir, 'segments', damaged))
  const status = await moved(reelgate, env.REELGATE_STORAGE_URL)
  expect(status).toMatchObject({ damaged: [`segments/${damaged}`], damagedCount: 1 })
  const { code, stdout, stderr } = await reelgate.cli('migrate', '--storage', env.REELGATE_STORAGE_URL)
  expect([code, stdout.includes(`segments/${damaged}`), stderr.includes('Not all files')]).toEqual([1, true, true])
  await setAside(reelgate)
  await expect.poll(() => hashObjects(bucket)).toEqual(published)
})

test('F-221: a folder that is not mounted and a bucket that does not answer end no move: it waits, says why, and continues', async () => {
  const proxy = await startFaultProxy(await storeEndpoint())
  const { env, bucket } = await bucketEnvironment(proxy.endpoint)
  const reelgate = await startReelgate({ video: await makeVideo(), env })
  const published = await hashFiles(reelgate)
  const { sources } = dataPaths(reelgate.dataDir)
  await rename(sources, `${sources}.away`)
  await move(reelgate, env.REELGATE_STORAGE_URL)
  await expect.poll(async () => (await statusOf(reelgate)).waitsFor).not.toBe('')
  expect(await statusOf(reelgate)).toMatchObject({ state: 'moving', damagedCount: 0 })
  await reelgate.stop()
  await rename(`${sources}.away`, sources)
  await reelgate.restart()
  await untilMoved(reelgate)
  expect(await hashObjects(bucket)).toEqual(published)
})

test('F-222: what cannot be moved is refused in a sentence, and starts without a place of the files are', async () => {
  const [{ env }, other] = [await bucketEnvironment(), await bucketEnvironment()]
  const reelgate = await apart.startReelgate({ env })
  const { env: location, cli } = reelgate
  expect((await cli('migrate', '--storage', other.env.REELGATE_STORAGE_URL)).stderr).toContain('has no keys for s3://')
  expect((await cli('migrate', '--storage', 'https://example.org')).stderr).toContain('Expected --storage folder, or s3://')
  expect((await cli('migrate', '--storage', env.REELGATE_STORAGE_URL)).stdout).toContain('already')
  await reelgate.owner.credentials('A video')
  await moved(reelgate, 'folder')
  await expect(move(reelgate, env.REELGATE_STORAGE_URL)).rejects.toThrow('Remove all objects below that prefix')
  await reelgate.stop()
  const start = (more: Record<string, string>) =>
    apart.runCli(['serve'], {
      ...apart.serverEnvironment({ ...reelgate, env: location, remove: async () => undefined }),
      ...more,
    })
  const foreign = await bucketEnvironment()
  await foreign.bucket.send({ method: 'PUT', key: `${foreign.bucket.address.prefix}reelgate`, body: Buffer.from('another\n') })
  expect((await start(foreign.env)).stderr).toContain('belong to another installation')
})

/** Keeps requests from being answered. `held`: once there is one; `release`: they are sent again, and answered. */
function holdAt(proxy: FaultProxy, isIt: (passing: Passing) => boolean): { held: Promise<void>; release(): void } {
  const held = Promise.withResolvers<void>()
  const replies: Passing['reply'][] = []
  const hold: Fault = (passing) => {
    if (!isIt(passing)) return false
    replies.push(passing.reply)
    held.resolve()
    return true
  }
  proxy.fault = hold
  function release() {
    if (proxy.fault === hold) proxy.fault = undefined
    for (const reply of replies) reply.destroy()
  }
  return { held: held.promise, release }
}

function move({ dataDir }: Moving, to: string): Promise<MoveStatus> {
  return sendCommand(dataPaths(dataDir).controlSocket, 'storage move', { to }) as Promise<MoveStatus>
}

function statusOf({ dataDir }: Moving): Promise<MoveStatus> {
  return sendCommand(dataPaths(dataDir).controlSocket, 'storage status', {}) as Promise<MoveStatus>
}

async function untilMoved(reelgate: Moving): Promise<MoveStatus> {
  await expect.poll(async () => (await statusOf(reelgate)).state).toBe('done')
  return statusOf(reelgate)
}

async function moved(reelgate: Moving, to: string): Promise<MoveStatus> {
  await move(reelgate, to)
  return untilMoved(reelgate)
}

async function checkOf({ cli }: Pick<apart.Reelgate, 'cli'>, name: string): Promise<{ state: string; says: string } | undefined> {
  const checks: { check: string; state: string; says: string }[] = JSON.parse((await cli('doctor', '--json')).stdout)
  return checks.find(({ check }) => check === name)
}

const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')

async function hashFiles(reelgate: apart.Reelgate | Parameters<typeof listFiles>[0]): Promise<Record<string, string>> {
  const hashes: Record<string, string> = {}
  for (const folder of MEDIA_FOLDERS) {
    for (const name of (await listFiles(reelgate, folder)).filter((name) => !name.endsWith('/')))
      hashes[`${folder}/${name}`] = sha256(await readFile(join(reelgate.dataDir, folder, name)))
  }
  return hashes
}

async function hashObjects(bucket: Bucket): Promise<Record<string, string>> {
  const { objects } = await contentsOf(bucket)
  const names = objects.filter((name) => MEDIA_FOLDERS.some((folder) => name.startsWith(`${folder}/`)))
  const hash = async (name: string) => sha256(await bucket.ask({ method: 'GET', key: bucket.address.prefix + name }, readBody))
  return Object.fromEntries(await Promise.all(names.map(async (name) => [name, await hash(name)])))
}

function pick(hashes: Record<string, string>, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(Object.entries(hashes).filter(([name]) => names.includes(name)))
}

/** Nothing may read the old folder any more. */
async function setAside({ dataDir }: Moving): Promise<void> {
  const paths = dataPaths(dataDir)
  for (const folder of MEDIA_FOLDERS) await rm(paths[folder], { recursive: true })
}
