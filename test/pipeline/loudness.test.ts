import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { untilFinished } from '../data-folder.ts'
import { ffmpeg, newFolder } from '../encode/videos.ts'
import { footage } from '../footage.ts'
import { startReelgate } from '../in-process.ts'
import { startReelgate as startProcess } from '../reelgate.ts'
import { readRows } from '../rows.ts'
import { PASS_ON, startWithPrograms } from './programs.ts'

type Installed = Parameters<typeof readRows>[0]

/** The gain of each generation of a video, the oldest first. */
function gainsOf(installed: Installed, videoId: string): (number | null)[] {
  const sql = `select gain_db from rendition where video_id = ? and kind = 'audio' order by generation`
  return readRows<{ gain_db: number | null }>(installed, sql, videoId).map(({ gain_db }) => gain_db)
}

async function quietSpeech(): Promise<string> {
  const file = join(await newFolder(), 'quiet.m4a')
  await ffmpeg('-ss', '20', '-t', '10', '-i', footage.wannaworktogether, '-vn', '-af', 'volume=-12dB', '-c:a', 'aac', file)
  return file
}

test('L-04: the gain of a track is the same after a kill, when it is encrypted again and when it is trimmed', async () => {
  const reelgate = await startProcess()
  const { owner } = reelgate
  const videoId = await owner.upload('Quiet', await quietSpeech())
  await expect.poll(() => gainsOf(reelgate, videoId)).toEqual([expect.any(Number)])
  await reelgate.kill()
  const [gainDb] = gainsOf(reelgate, videoId)
  expect(gainDb).toBeGreaterThan(10)
  await reelgate.restart()
  await untilFinished(reelgate, videoId)
  expect(gainsOf(reelgate, videoId)).toEqual([gainDb])

  expect(await reelgate.cli('video', 'reencrypt', videoId)).toMatchObject({ code: 0 })
  await expect.poll(() => generationsOf(reelgate, videoId)).toEqual([2])
  expect(gainsOf(reelgate, videoId)).toEqual([gainDb])

  expect((await owner.call('PUT', `/api/videos/${videoId}/trim`, { body: { startS: 5 } })).status).toBe(200)
  await expect.poll(async () => (await owner.video(videoId)).replacement).toBeUndefined()
  expect(gainsOf(reelgate, videoId)).toEqual([gainDb, gainDb])
})

function generationsOf(installed: Installed, videoId: string): number[] {
  const sql = 'select number from generation where video_id = ? and finished_at_s is not null order by number'
  return readRows<{ number: number }>(installed, sql, videoId).map(({ number }) => number)
}

test('L-05: an account that has it switched off gets its sound as it is; a change holds for what comes later', async () => {
  const reelgate = await startReelgate()
  const { owner } = reelgate
  const file = await quietSpeech()
  expect((await owner.call('PUT', '/api/account', { body: { normalizesLoudness: 0 } })).status).toBe(200)
  const asRecorded = await owner.upload('As recorded', file)
  await untilFinished(reelgate, asRecorded)
  expect((await owner.call('PUT', '/api/account', { body: { normalizesLoudness: 1 } })).status).toBe(200)
  const later = await owner.upload('Later', file)
  await untilFinished(reelgate, later)
  expect([gainsOf(reelgate, asRecorded), gainsOf(reelgate, later)]).toEqual([[null], [expect.any(Number)]])
})

test('F-174: chunks of sound that begin together wait for one measurement of its loudness', async () => {
  const { reelgate, programs } = await startWithPrograms()
  const folder = await newFolder()
  // Measuring takes until the first chunk of video is done, so that the second of sound begins meanwhile.
  await programs.becomes(
    'ffmpeg',
    `case "$*" in
      *ebur128*) touch ${folder}/measured-$$; until [ -e ${folder}/video ]; do sleep 0.02; done;;
      *libx264*) /usr/bin/$name "$@"; code=$?; touch ${folder}/video; exit $code;;
    esac
    ${PASS_ON}`,
  )
  await reelgate.owner.readyVideo(footage.wannaworktogether)
  expect((await readdir(folder)).filter((name) => name.startsWith('measured'))).toHaveLength(1)
})
