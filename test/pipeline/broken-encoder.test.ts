import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { test as always, expect } from 'vitest'
import { untilFinished } from '../data-folder.ts'
import { newFolder } from '../encode/videos.ts'
import type { Reelgate } from '../in-process.ts'
import { processesWith } from '../processes.ts'
import { runCli } from '../reelgate.ts'
import { readRows } from '../rows.ts'
import { sampledTests } from '../sample.ts'
import { makeVideo } from '../videos.ts'
import { type Clock, newMark, PASS_ON, startWithPrograms, startWithProgramsAndClock, writeProgram } from './programs.ts'

const { test, draw } = sampledTests('broken encoders', 1)

// A server whose PATH finds our ffmpeg first, and whose clock can be put forward, past limits and rests of minutes.

const REST_S = 31
const LONGER_THAN_ANY_LIMIT_S = 900

test('F-23: an ffmpeg that hangs and ignores TERM is killed with all it started, and the next video is encoded', async () => {
  const { reelgate, programs, clock } = await startWithProgramsAndClock()
  const mark = newMark()
  await programs.becomes('ffmpeg', `trap "" TERM INT HUP; sleep ${mark} & while :; do sleep ${mark}; done`)
  const hanging = await reelgate.owner.upload('hangs', await makeVideo())
  await untilItRuns(mark)
  await clock.goesOn(LONGER_THAN_ANY_LIMIT_S)
  const { statusReason } = await untilFailed(reelgate, hanging, clock)
  expect(statusReason).toBe('Encoding took far longer than the video lasts: convert it to H.264 in MP4 and upload it again.')
  await programs.becomes('ffmpeg', PASS_ON)
  await untilFinished(reelgate, await reelgate.owner.upload('goes', await makeVideo()))
  await expect.poll(() => processesWith(mark)).toEqual([])
})

test('F-23: so is an ffprobe that hangs', async () => {
  const { reelgate, programs, clock } = await startWithProgramsAndClock()
  const mark = newMark()
  await programs.becomes('ffprobe', `trap "" TERM INT HUP; sleep ${mark} & while :; do sleep ${mark}; done`)
  const hanging = await reelgate.owner.upload('hangs', await makeVideo())
  await untilItRuns(mark)
  await clock.goesOn(LONGER_THAN_ANY_LIMIT_S)
  const { status, statusReason } = await untilFailed(reelgate, hanging, clock)
  expect([status, statusReason]).toEqual([
    'Not a media file',
    'Reading the file took too long: it is damaged, or was made to keep readers busy.',
  ])
  await programs.becomes('ffprobe', PASS_ON)
  await untilFinished(reelgate, await reelgate.owner.upload('goes', await makeVideo()))
  await expect.poll(() => processesWith(mark)).toEqual([])
})

const TRIED =
  'The video could not be encoded on this server. Its log says why. Then try again: in the console, or by POST /api/videos/ID/retry.'

test.each([
  { harm: 'crashes', script: 'kill -SEGV $$', reason: TRIED, tries: 3 },
  { harm: 'is killed for want of memory', script: 'kill -KILL $$', reason: TRIED, tries: 3 },
  {
    harm: 'writes what is no video',
    script: 'for fd in 3 4 5; do head -c 5000 /dev/zero >&$fd; done 2>/dev/null; exit 0',
    reason: TRIED,
    tries: 3,
  },
  {
    harm: 'fails with a word',
    script: 'printf "\\033[31mno luck\\007 <script>\\n" >&2; exit 1',
    reason: 'The encoder stopped:  [31mno luck  <script>',
    tries: 1,
  },
  {
    harm: 'ends well without a picture',
    script: 'exit 0',
    reason: /^The (video cannot be read past 0:00|audio cannot be read): .*upload it again\.$/i,
    tries: 1,
  },
])(
  'F-24: of an ffmpeg that $harm nothing is published, it is not tried for ever, and the owner reads why',
  async ({ script, reason, tries }) => {
    const { reelgate, programs, clock } = await startWithProgramsAndClock()
    await programs.becomes('ffmpeg', script)
    const videoId = await reelgate.owner.upload('A video', await makeVideo())
    const { status, statusReason } = await untilFailed(reelgate, videoId, clock)
    expect(status).toBe('Encoding error')
    expect(statusReason).toMatch(reason)
    expect(readRows(reelgate, 'select * from segment')).toEqual([])
    const [{ attempts } = { attempts: 0 }] = readRows<{ attempts: number }>(
      reelgate,
      'select max(attempt) as attempts from chunk',
    )
    expect(attempts).toBeLessThanOrEqual(tries)
  },
)

test('F-24: an ffmpeg that crashes once costs one more try, and the video is ready', async () => {
  const { reelgate, programs, clock } = await startWithProgramsAndClock()
  await programs.becomes('ffmpeg', 'kill -SEGV $$')
  const videoId = await reelgate.owner.upload('A video', await makeVideo())
  await expect.poll(() => restsOf(reelgate)).toBeGreaterThan(0)
  await programs.becomes('ffmpeg', PASS_ON)
  await clock.goesOn(REST_S)
  await reelgate.owner.video(videoId) // so that it looks at its clock
  await untilFinished(reelgate, videoId)
})

always(
  'F-24: an ffprobe that crashes once while it looks for the end of a video costs one more try, and is not taken for a cut file',
  async () => {
    const { reelgate, programs, clock } = await startWithProgramsAndClock()
    await programs.becomes('ffprobe', `case "$*" in *packet=*) kill -SEGV $$;; esac\n${PASS_ON}`)
    const videoId = await reelgate.owner.upload('A video', await makeVideo())
    await expect.poll(() => restsOf(reelgate)).toBeGreaterThan(0)
    await programs.becomes('ffprobe', PASS_ON)
    await clock.goesOn(REST_S)
    await reelgate.owner.video(videoId) // so that it looks at its clock
    await untilFinished(reelgate, videoId)
  },
)

test('F-24: when one part of a video cannot be encoded, the encoders of its other parts are ended', async () => {
  const { reelgate, programs } = await startWithPrograms()
  const mark = newMark()
  // Those that look for a poster fail, and what measures the loudness ends: what hangs is one encoder of the picture and one of the sound.
  await programs.becomes('ffmpeg', `case "$*" in *nokey*|*fps=1,*) exit 1;; *measured*) exit 0;; esac; sleep ${mark}; exit 0`)
  const videoId = await reelgate.owner.upload('A video', await makeVideo())
  await expect.poll(async () => (await processesWith(mark)).length).toBe(2)
  const [one = 0] = await processesWith(mark)
  process.kill(one) // so that its encoder ends well, without a picture or a sound
  await expect.poll(() => processesWith(mark)).toEqual([])
  expect((await reelgate.owner.video(videoId)).status).toBe('Encoding error')
})

test('F-24: an ffmpeg that is taken away while the server runs fails no video; they wait until it is back', async () => {
  const { reelgate, programs, clock } = await startWithProgramsAndClock()
  await programs.goes('ffprobe')
  const videoId = await reelgate.owner.upload('A video', await makeVideo())
  for (const rests of [1, 2, 3, 4]) {
    await expect.poll(() => restsOf(reelgate)).toBe(rests)
    await clock.goesOn(REST_S)
    await reelgate.owner.video(videoId) // so that it looks at its clock
  }
  expect((await reelgate.owner.video(videoId)).status).toBe('Processing')
  await programs.becomes('ffprobe', PASS_ON)
  await untilFinished(reelgate, videoId)
})

test.each([
  { what: 'without ffmpeg', programs: {}, says: 'ffmpeg is not installed: run apt-get install ffmpeg' },
  {
    what: 'with one that is too old',
    programs: { ffmpeg: 'echo ffmpeg version 4.4.2-0ubuntu0.22.04.1', ffprobe: 'exit 0' },
    says: 'ffmpeg 4.4.2-0ubuntu0.22.04.1 is installed, but 5.1 or newer is needed: install a newer one',
  },
  {
    what: 'with one that does not start',
    programs: { ffmpeg: 'exit 127', ffprobe: 'exit 0' },
    says: 'ffmpeg is installed but does not start: run ffmpeg -version to see why',
  },
])('F-24: $what the server does not start, and says what to do', async ({ programs, says }) => {
  const folder = await newFolder()
  const tools = join(folder, 'tools')
  await mkdir(tools)
  for (const [name, script] of Object.entries({ prlimit: 'exec /usr/bin/prlimit "$@"', ...programs }))
    await writeProgram(tools, name, script)
  const { code, stderr } = await runCli(['serve'], { PATH: tools, PORT: '0', REELGATE_DATA: join(folder, 'data') })
  expect(code).toBe(1)
  expect(stderr.trim()).toBe(says)
})

/** How often a video was left alone for a while. */
function restsOf(reelgate: Reelgate): number {
  return reelgate.output().split('video: encoding failed, will be retried').length - 1
}

async function untilItRuns(mark: string): Promise<void> {
  await expect.poll(() => processesWith(mark)).not.toEqual([])
}

/** Waits for the video to fail; each time it rests, the clock is put forward. */
async function untilFailed(reelgate: Reelgate, videoId: string, clock: Clock) {
  for (let rests = restsOf(reelgate); ; ) {
    const video = await reelgate.owner.video(videoId)
    if (/error|Not/.test(video.status)) return video
    if (restsOf(reelgate) > rests) {
      rests = restsOf(reelgate)
      await clock.goesOn(REST_S)
    }
    await pause(50)
  }
}

draw()
