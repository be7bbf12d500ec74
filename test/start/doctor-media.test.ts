import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { listSegments, type StoredSegment } from '../data-folder.ts'
import { type Reelgate, startReelgate } from '../in-process.ts'
import { runCli } from '../reelgate.ts'
import { changeRows, readRows } from '../rows.ts'
import { sampledTests } from '../sample.ts'
import { makeVideo } from '../videos.ts'

const { test, draw } = sampledTests('the media check', 1)

// Of one colour, so that the encoder never comes near its bitrate's cap: with several threads it keeps that with other bytes each time.
const start = async () => startReelgate({ video: await makeVideo({ seconds: 9, dark: true }) })

type Finding = {
  check: string
  state: string
  says: string
  damaged?: { renditionId: number; number: number; problem: string }[]
}

/** `isTrouble`: the command fails for it, whatever else it finds. */
async function checkMedia({ env }: Reelgate, ...options: string[]): Promise<Finding & { isTrouble: boolean }> {
  const { code, stdout, stderr } = await runCli(['doctor', '--media', '--json', ...options], env)
  const found = (JSON.parse(stdout) as Finding[]).find(({ check }) => check === 'media') ?? expect.fail(stdout)
  return { isTrouble: code === 1 && /Failed checks: .*\bmedia\b/.test(stderr), ...found }
}

const pathOf = ({ dataDir }: Reelgate, { file }: StoredSegment) => join(dataDir, 'segments', file)
const nameOf = ({ rendition_id, number }: StoredSegment) => `${rendition_id}/${number}`

function flipped(bytes: Buffer): Buffer {
  const changed = Buffer.from(bytes)
  changed.writeUInt8(changed.readUInt8(40) ^ 1, 40)
  return changed
}

const DAMAGE = [
  { problem: /other bytes/, damage: async (path: string) => writeFile(path, flipped(await readFile(path))) },
  { problem: /is missing/, damage: (path: string) => rm(path) },
  { problem: /has \d+ bytes instead of/, damage: async (path: string) => writeFile(path, (await readFile(path)).subarray(1)) },
]

/** Damages a segment in each way, sound and picture. @returns a look at whether the files are as they were */
async function damageSome(reelgate: Reelgate) {
  const segments = listSegments(reelgate, reelgate.videoId)
  const chosen = [segments[0], segments[1], segments.at(-1)].map((segment) => segment ?? expect.fail())
  const whole = await Promise.all(chosen.map((segment) => readFile(pathOf(reelgate, segment))))
  for (const [i, segment] of chosen.entries()) await DAMAGE[i]?.damage(pathOf(reelgate, segment))
  return {
    chosen,
    isWhole: async () => {
      const now = await Promise.all(chosen.map((segment) => readFile(pathOf(reelgate, segment)).catch(() => Buffer.alloc(0))))
      return now.every((bytes, i) => whole[i]?.equals(bytes))
    },
  }
}

test('F-42, F-43: doctor --media finds changed, missing and short files while a server runs, which encodes them again', async () => {
  const reelgate = await start()
  expect(await checkMedia(reelgate)).toMatchObject({ isTrouble: false, state: 'ok', damaged: [] })
  const { chosen, isWhole } = await damageSome(reelgate)
  const found = await checkMedia(reelgate)
  expect(found).toMatchObject({ isTrouble: true, state: 'trouble', says: expect.stringContaining('; 3 damaged: ') })
  expect(found.damaged?.map(({ renditionId, number }) => `${renditionId}/${number}`)).toEqual(chosen.map(nameOf))
  for (const [i, { problem }] of DAMAGE.entries()) expect(found.damaged?.[i]?.problem).toMatch(problem)
  await expect.poll(isWhole).toBe(true)
  await expect.poll(() => readRows(reelgate, 'select number from segment where damaged = 1')).toEqual([])
  expect(await checkMedia(reelgate)).toMatchObject({ isTrouble: false, state: 'ok' })
  expect(readRows(reelgate, 'select number from generation')).toEqual([{ number: 1 }])
})

test('F-43: without a server the check records damaged segments, and the next start encodes them again', async () => {
  const reelgate = await start()
  await reelgate.stop()
  const { isWhole } = await damageSome(reelgate)
  expect(await checkMedia(reelgate)).toMatchObject({ isTrouble: true, state: 'trouble' })
  expect(await isWhole()).toBe(false)
  expect(readRows(reelgate, 'select number from segment where damaged = 1')).toHaveLength(3)
  await reelgate.restart()
  await expect.poll(isWhole).toBe(true)
})

test('F-43: the sweep of a running server finds a changed byte, and encodes the segment again', async () => {
  const reelgate = await start()
  await reelgate.stop()
  const { isWhole } = await damageSome(reelgate)
  changeRows(reelgate, `update setting set value = '{"beganAtS":0}' where name = 'media-sweep'`)
  await reelgate.restart()
  await expect.poll(isWhole).toBe(true)
  expect(reelgate.output()).toContain('video: damaged')
})

test('an interrupted check continues after the last segments that it read; --from-start reads all', async () => {
  const reelgate = await start()
  const segments = listSegments(reelgate, reelgate.videoId)
  const [first, second] = [segments[0] ?? expect.fail(), segments[1] ?? expect.fail()]
  const { videoId } = reelgate
  await reelgate.stop()
  const last = { videoId, generation: 1, renditionId: second.rendition_id, number: second.number }
  changeRows(reelgate, `insert into setting (name, value) values ('media-check', ?)`, JSON.stringify(last))
  await rm(pathOf(reelgate, first))
  const rest = await checkMedia(reelgate)
  expect(rest).toMatchObject({ isTrouble: false, state: 'ok' })
  expect(rest.says).toMatch(new RegExp(`^${segments.length - 2} segments, .* from where the last check was interrupted`))
  expect((await checkMedia(reelgate)).damaged).toMatchObject([{ renditionId: first.rendition_id, number: first.number }])
  changeRows(reelgate, `update setting set value = ? where name = 'media-check'`, JSON.stringify(last))
  expect(await checkMedia(reelgate, '--from-start')).toMatchObject({ isTrouble: true, damaged: [{ number: first.number }] })
})

test('an empty folder of segments counts as a disk that is not mounted: nothing is encoded again', async () => {
  const reelgate = await start()
  await reelgate.stop()
  await rm(join(reelgate.dataDir, 'segments', reelgate.videoId), { recursive: true })
  expect(await checkMedia(reelgate)).toMatchObject({
    isTrouble: true,
    state: 'trouble',
    says: expect.stringContaining('Mount its disk'),
  })
  expect(readRows(reelgate, 'select number from segment where damaged = 1')).toEqual([])
})

draw()
