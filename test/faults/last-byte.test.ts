import { stat } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { dataPaths } from '../../src/config.ts'
import { refillReserve } from '../../src/storage/reserve.ts'
import { listFiles } from '../data-folder.ts'
import { makeFilm } from '../films.ts'
import { type Reelgate, startReelgate } from '../reelgate.ts'
import { mountSmallDisk } from './small-disk.ts'

const MIB = 2 ** 20

test('F-44: on a disk that is full to the last byte the server starts, plays and deletes by what it had in reserve, which it makes again when there is room', async () => {
  const disk = await mountSmallDisk(128)
  const reelgate = await startReelgate({ database: 'sqlite', within: disk.path, video: await makeFilm() })
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
  await reelgate.restart()
  await disk.fill()
  expect((await owner.delete([alsoDoomed.videoId])).message).toBe('Successfully deleted 1 videos')
  await disk.makeRoom()
  await expect.poll(() => reservedBytes(reelgate)).toBe(16 * MIB)
})

/** What the reserve really takes of the disk. */
async function reservedBytes({ dataDir }: Reelgate): Promise<number> {
  const { blocks } = await stat(dataPaths(dataDir).reserve).catch(() => ({ blocks: 0 }))
  return blocks * 512
}
