import { writeFileSync } from 'node:fs'
import { mkdir, readdir, rm, utimes, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { blobFolder } from '../../src/storage/folder.ts'
import { createOrphanSweep } from '../../src/storage/orphan-sweep.ts'
import { listFiles, untilFinished } from '../data-folder.ts'
import { newFolder } from '../pipeline/videos.ts'
import { type Reelgate, startSharedReelgate } from '../reelgate.ts'
import { readRows } from '../rows.ts'
import { sampleOf } from '../sample.ts'
import { makeVideo } from '../videos.ts'
import { shiftedClock } from './faked-clock.ts'

// What a crash between a rename and its commit leaves, and what a failed removal leaves, is gone after a day.

const DAY_S = 24 * 3600
const OTHER_VIDEO = 'f'.repeat(32)

let reelgate: Reelgate & { remove(): Promise<void> }
let videoId: string
beforeAll(async () => {
  reelgate = await startSharedReelgate({ video: await makeVideo() })
  videoId = reelgate.videoId
})
afterAll(() => reelgate.remove())

test('F-31, I8: files that no row names are gone after a day, younger ones and those of videos stay', async () => {
  await reelgate.stop()
  const videos = await listFiles(reelgate)
  const orphans = [
    `sources/${videoId}/${'0'.repeat(32)}.sealed`,
    `sources/${OTHER_VIDEO}/${'0'.repeat(32)}.sealed`,
    `segments/${videoId}/1/1/0.0123456789ab.m4s`,
    `segments/${videoId}/1/9/0.0123456789ab.m4s`,
    `segments/${OTHER_VIDEO}/1/1/0.0123456789ab.m4s`,
    `posters/${videoId}/${'A'.repeat(22)}.sealed`,
    `posters/${OTHER_VIDEO}/${'A'.repeat(22)}.sealed`,
    `files/${videoId}/${'A'.repeat(22)}.sealed`,
  ]
  const fresh = orphans.map((name) => name.replaceAll('0', '1').replaceAll('AA', 'BB'))
  const notOurs = ['sources/notes.txt', `segments/${videoId}/1/1/.nfs0001`]
  for (const name of [...orphans, ...notOurs]) await put(name, DAY_S + 3600)
  for (const name of fresh) await put(name, DAY_S - 3600)
  // Age alone says nothing about what a row names.
  for (const name of videos.filter((name) => /\.(sealed|m4s)$/.test(name))) await age(name, 400 * DAY_S)
  await reelgate.restart()
  await expect.poll(() => presentOf(orphans)).toEqual([])
  await expect.poll(() => reelgate.output()).toContain('"folder":"posters"')
  expect(await presentOf([...fresh, ...notOurs])).toEqual([...fresh, ...notOurs].sort())
  expect(await presentOf(videos)).toEqual(videos)
  for (const name of [...fresh, ...notOurs]) await rm(join(reelgate.dataDir, name))
})

test.each(sampleOf('clocks of the sweep', ['+1d', '+3650d', '-1d'], 1))(
  'C01: a server whose clock stands %s takes nothing that is named or new',
  async (shift) => {
    const own = await startSharedReelgate({ env: shiftedClock(shift) })
    try {
      const id = await own.owner.upload('A video', await makeVideo({ seconds: 1 }))
      await untilFinished(own, id)
      const videos = (await listFiles(own)).filter((name) => /\.(sealed|m4s)$/.test(name))
      await own.kill()
      await own.restart()
      await own.owner.video(id)
      // A sweep has run when what it must take is gone.
      await own.kill()
      const orphan = join(own.dataDir, `posters/${OTHER_VIDEO}/${'A'.repeat(22)}.sealed`)
      await mkdir(dirname(orphan), { recursive: true })
      await writeFile(orphan, '')
      await utimes(orphan, 0, 0)
      await own.restart()
      await expect.poll(() => listFiles(own, 'posters')).not.toContain(`${OTHER_VIDEO}/`)
      expect((await listFiles(own)).filter((name) => /\.(sealed|m4s)$/.test(name))).toEqual(videos)
      expect(readRows(own, 'select 1 from video')).toHaveLength(1)
    } finally {
      await own.remove()
    }
  },
)

test('I8: a folder of any size is swept a part at a time, and the next run continues where the last one stopped', async () => {
  const root = await newFolder()
  for (let video = 0; video < 12; video++) {
    await mkdir(join(root, `video-${video}`))
    for (let n = 0; n < 100; n++) writeFileSync(join(root, `video-${video}`, `${n}`), '')
  }
  let largestQuestion = 0
  const sweep = createOrphanSweep(blobFolder(root, root), /^video-\d+\/\d+$/, async (names) => {
    largestQuestion = Math.max(largestQuestion, names.length)
    return new Set(names.filter((name) => name.endsWith('/7')))
  })
  const tomorrowS = Date.now() / 1000 + DAY_S + 60
  const removed = [await sweep(tomorrowS, 400), await sweep(tomorrowS, 400), await sweep(tomorrowS, 2000)]
  expect(removed).toEqual([396, 396, 396])
  expect(largestQuestion).toBeLessThanOrEqual(200)
  expect(await readdir(root)).toHaveLength(12)
  expect(await readdir(join(root, 'video-3'))).toEqual(['7'])
})

async function put(name: string, ageS: number): Promise<void> {
  await mkdir(dirname(join(reelgate.dataDir, name)), { recursive: true })
  await writeFile(join(reelgate.dataDir, name), 'x')
  await age(name, ageS)
}

async function age(name: string, ageS: number): Promise<void> {
  const atS = Date.now() / 1000 - ageS
  await utimes(join(reelgate.dataDir, name), atS, atS)
}

async function presentOf(names: readonly string[]): Promise<string[]> {
  const present = new Set(await listFiles(reelgate))
  return names.filter((name) => present.has(name)).sort()
}
