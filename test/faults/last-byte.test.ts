import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { dataPaths } from '../../src/config/data-paths.ts'
import { refillReserve } from '../../src/storage/reserve.ts'
import { listFiles } from '../data-folder.ts'
import { startReelgate as startInProcess } from '../in-process.ts'
import { startPostgres } from '../postgres.ts'
import { type Reelgate, runCli, startReelgate } from '../reelgate.ts'
import { changeRows } from '../rows.ts'
import { makeVideo } from '../videos.ts'
import { mountSmallDisk } from './small-disk.ts'

const MIB = 2 ** 20

test('F-44: on a disk that is full to the last byte the server starts, plays and deletes by what it had in reserve, which it makes again when there is room', async () => {
  const disk = await mountSmallDisk(128)
  const reelgate = await startReelgate({ database: 'sqlite', within: disk.path, video: await makeVideo() })
  const { owner } = reelgate
  const [doomed, alsoDoomed] = [await owner.credentials('doomed'), await owner.credentials('also doomed')]
  await refillReserve(dataPaths(reelgate.dataDir).reserve)
  expect(await reservedBytes(reelgate)).toBe(16 * MIB) // an eighth of a small disk
  await owner.credentials('in the log')
  await reelgate.kill()
  await disk.fill()

  await reelgate.restart()
  expect((await fetch(`${reelgate.url}/healthz`)).status).toBe(200)
  expect(await reservedBytes(reelgate)).toBe(14 * MIB)
  expect((await reelgate.newViewer().redeem(await owner.issueOtp(reelgate.videoId))).playing).toBe(true)
  await disk.fill()
  expect((await owner.delete([doomed.videoId])).message).toBe('Successfully deleted 1 videos')
  await disk.fill()
  expect((await owner.delete([reelgate.videoId])).message).toBe('Successfully deleted 1 videos')
  await expect.poll(() => listFiles(reelgate)).not.toContainEqual(expect.stringContaining(reelgate.videoId))

  await reelgate.stop()
  await disk.fill()
  expect((await doctor(reelgate.env)).database).toMatchObject({ state: 'warning', says: expect.stringContaining('disk is full') })
  await reelgate.restart()
  await disk.fill()
  expect((await owner.delete([alsoDoomed.videoId])).message).toBe('Successfully deleted 1 videos')
  await disk.makeRoom()
  await expect.poll(() => reservedBytes(reelgate)).toBe(16 * MIB)
})

test('F-44: a first start on a full disk says that the disk is full, and the doctor does not call its folder writable', async () => {
  const disk = await mountSmallDisk(1)
  const env = { REELGATE_DATA: join(disk.path, 'data'), PORT: '0', REELGATE_LOG_LEVEL: 'silent' }
  await disk.fill()
  for (const command of ['serve', 'serve']) {
    const { code, stderr } = await runCli([command], env)
    expect([code, stderr]).toEqual([1, expect.stringMatching(/^The disk [^\n]*is full[^\n]*\n$/)])
  }
  const found = await doctor(env)
  expect(found['data folder']).toMatchObject({
    state: 'trouble',
    says: expect.stringContaining('cannot be written: the disk is full'),
  })
  expect(JSON.stringify(found)).not.toMatch(/can be written|ENOSPC|permission/)
})

test('F-44: /readyz says low as soon as a write has found the disk full, whatever the number of free bytes', async () => {
  const disk = await mountSmallDisk(64)
  const { owner, url } = await startInProcess({ database: 'sqlite', within: disk.path })
  const upload = await owner.credentials('One file too many')
  const space = async () => ((await (await fetch(`${url}/readyz`)).json()) as { checks: { space: string } }).checks.space
  expect(await space()).toBe('ok')
  await disk.leaveNoFile()
  expect((await owner.send(upload, new Blob(['a video']))).status).toBe(503)
  expect(await space()).toBe('low')
})

test('F-44: /readyz says low as soon as a write has found the disk of PostgreSQL full, though the data folder has room', async () => {
  const disk = await mountSmallDisk(256)
  const postgres = await startPostgres({ durable: true, within: disk.path })
  const { owner, url } = await startReelgate({ database: postgres })
  onTestFinished(() => disk.makeRoom()) // what removes the database writes
  const space = async () => ((await (await fetch(`${url}/readyz`)).json()) as { checks: { space: string } }).checks.space
  expect(await space()).toBe('ok')
  // Its log begins another file of 16 MiB, which is whole before the disk is full: without room for its log it would end itself.
  changeRows({ dataDir: '', databaseUrl: postgres.adminUrl }, 'select pg_switch_wal()')
  await owner.credentials('the first in that file')
  await disk.fill()
  // The table grows until it needs another page.
  const refusal = async () => {
    const answer = await owner.call('PUT', `/api/videos?title=${'x'.repeat(200)}`)
    return answer.status === 200 ? undefined : ((await answer.json()) as { message: string }).message
  }
  await expect.poll(refusal, { interval: 0 }).toContain('The disk of the database is full')
  expect(await space()).toBe('low')
})

type Check = { check: string; state: string; says: string }

async function doctor(env: Record<string, string>): Promise<Record<string, Check>> {
  const { stdout } = await runCli(['doctor', '--json'], env)
  const checks: Check[] = JSON.parse(stdout)
  return Object.fromEntries(checks.map((check) => [check.check, check]))
}

/** What the reserve really takes of the disk. */
async function reservedBytes({ dataDir }: Reelgate): Promise<number> {
  const { blocks } = await stat(dataPaths(dataDir).reserve).catch(() => ({ blocks: 0 }))
  return blocks * 512
}
