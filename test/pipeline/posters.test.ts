import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { count, ffmpeg, newFolder } from '../encode/videos.ts'
import type { Reelgate } from '../in-process.ts'
import { endProcessesWith } from '../processes.ts'
import { readRows } from '../rows.ts'
import { sampledTests } from '../sample.ts'
import { makeVideo } from '../videos.ts'
import { newMark, PASS_ON, startWithPrograms, startWithProgramsAndClock } from './programs.ts'

const { test, draw } = sampledTests('posters before ready', 1)

// `ready` waits for the posters (wire-contract.md, section 1). A server's ffmpeg hangs or crashes where it draws them.

/** An ffmpeg that does this where it looks for the poster among the key frames of the source, and else what it always does. */
const whereItSearches = (script: string) => `case "$*" in *nokey*) ${script};; esac\n${PASS_ON}`
/** The same, wherever it draws. */
const whereItDraws = (script: string) => `case "$*" in *image2pipe*) ${script};; esac\n${PASS_ON}`
const HANG = 'sleep 1000000'

test.each([
  { harm: 'hangs', script: HANG },
  { harm: 'crashes each time', script: 'kill -SEGV $$' },
])('F-24: where drawing the posters $harm, a video that is ready has those of its first segment', async ({ script }) => {
  const { reelgate, programs } = await startWithPrograms()
  await programs.becomes('ffmpeg', whereItSearches(script))
  const videoId = await reelgate.owner.upload('A video', await makeVideo())
  const { posters } = await reelgate.owner.until(videoId, 'ready')
  expect(posters.map(({ width, height }) => `${width}×${height}`)).toEqual(['64×64', '64×64'])
  for (const { posterUrl } of posters) {
    const poster = await fetch(posterUrl)
    expect(poster.headers.get('Content-Type')).toBe('image/jpeg')
  }
})

test.each([
  { crashes: 2, from: 'the source' },
  { crashes: 3, from: 'the first segment' },
])('F-24: after $crashes crashes of drawing, the posters come from $from', async ({ crashes }) => {
  const { reelgate, programs } = await startWithPrograms()
  const seen = await newFolder()
  // Folders count the searches, since no file may grow there. Video is encoded once none crashes any more, so a slow search is never given up.
  const countAndCrash = count(crashes).map(
    (n) => `mkdir ${seen}/${n} 2>/dev/null && { [ ${n} = ${crashes - 1} ] && mkdir ${seen}/last; kill -SEGV $$; }`,
  )
  const search = `${countAndCrash.join('; ')}; /usr/bin/ffmpeg "$@"; code=$?; mkdir ${seen}/drawn; exit $code`
  const wait = `until [ -d ${seen}/${crashes < 3 ? 'drawn' : 'last'} ]; do sleep 0.1; done`
  await programs.becomes('ffmpeg', `case "$*" in *nokey*) ${search};; *libx264*) ${wait};; esac\n${PASS_ON}`)
  const videoId = await reelgate.owner.upload('A video', await makeVideo())
  expect((await reelgate.owner.until(videoId, 'ready')).posters).toHaveLength(2)
  expect(existsSync(join(seen, 'drawn'))).toBe(crashes < 3)
  expect(reelgate.output().includes('posters: not extracted from the source')).toBe(crashes === 3)
})

test('F-24: a video whose posters a kill prevented becomes ready after the restart, with posters', async () => {
  const { reelgate, programs } = await startWithProgramsAndClock()
  const mark = newMark()
  onTestFinished(() => endProcessesWith(mark)) // killing the server leaves it running
  await programs.becomes('ffmpeg', whereItDraws(`sleep ${mark}`))
  const videoId = await reelgate.owner.upload('A video', await makeVideo())
  await expect.poll(() => publishedRenditions(reelgate)).toBe(2)
  expect((await reelgate.owner.video(videoId)).status).toBe('Processing')
  await reelgate.kill()
  await programs.becomes('ffmpeg', PASS_ON)
  await reelgate.restart()
  expect((await reelgate.owner.until(videoId, 'ready')).posters).toHaveLength(2)
})

test('F-24: a video that no poster can be drawn of becomes ready all the same', async () => {
  const { reelgate, programs } = await startWithPrograms()
  await programs.becomes('ffmpeg', whereItDraws('kill -SEGV $$'))
  const videoId = await reelgate.owner.upload('A video', await makeVideo())
  expect((await reelgate.owner.until(videoId, 'ready')).posters).toEqual([])
})

test('an audio file becomes ready without posters', async () => {
  const { reelgate } = await startWithPrograms()
  const file = join(await newFolder(), 'sound.mp3')
  await ffmpeg('-f', 'lavfi', '-i', 'sine=440:d=3', file)
  const videoId = await reelgate.owner.upload('Sound', file)
  expect((await reelgate.owner.until(videoId, 'ready')).posters).toEqual([])
})

test('a video whose owner deletes its posters before it can play becomes ready without them', async () => {
  const { reelgate, programs } = await startWithPrograms()
  const { owner } = reelgate
  const mark = newMark()
  await programs.becomes('ffmpeg', `case "$*" in *adts*) sleep ${mark};; esac\n${PASS_ON}`)
  const videoId = await owner.upload('A video', await makeVideo())
  await expect.poll(async () => (await owner.video(videoId)).posters).toHaveLength(2)
  const files = (await (await owner.call('GET', `/api/videos/${videoId}/files`)).json()) as { id: number; type: string }[]
  for (const { id } of files.filter(({ type }) => type === 'poster'))
    expect((await owner.call('DELETE', `/api/videos/${videoId}/files/${id}`)).status).toBe(200)
  await endProcessesWith(mark) // so that the audio continues
  expect((await owner.until(videoId, 'ready')).posters).toEqual([])
})

/** How many renditions have their first segment. */
function publishedRenditions(reelgate: Reelgate): number {
  return readRows(reelgate, 'select * from segment where number = 0').length
}

draw()
