import { afterAll, beforeAll, expect, test } from 'vitest'
import { openLog } from '../../src/cli/log.ts'
import { Failure } from '../../src/errors.ts'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import { makeVideo } from '../videos.ts'
import { type Receivers, startReceivers, webhooksOf } from '../webhooks/receiver.ts'

let receivers: Receivers
let reelgate: Reelgate & { remove(): Promise<void> }
beforeAll(async () => {
  receivers = await startReceivers()
  reelgate = await startSharedReelgate({ env: { REELGATE_OUTBOUND_ALLOW: receivers.host }, video: await makeVideo() })
})
afterAll(async () => {
  await reelgate.remove()
  await receivers.close()
})

type Line = { level: number; msg: string } & Record<string, unknown>

const INFO = 30

const linesOf = (output: string): Line[] =>
  output
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line))

const logged = (msg: string, videoId?: string) =>
  linesOf(reelgate.output()).filter((line) => line.msg === msg && (videoId === undefined || line.videoId === videoId))

test('an operator finds in the log which uploads came, which videos are ready and which failed, and why', async () => {
  const { owner } = reelgate
  const video = await owner.readyVideo(await makeVideo())
  const text = await owner.credentials('Not a video')
  await owner.send(text, new Blob(['This is no video.']))
  await owner.until(text.videoId, 'Not a media file')
  await expect.poll(() => logged('video: failed', text.videoId)).toHaveLength(1)
  expect(logged('upload: received').map(({ level, videoId }) => [level, videoId])).toEqual([
    [INFO, video],
    [INFO, text.videoId],
  ])
  expect(logged('upload: received', text.videoId)).toMatchObject([{ sizeBytes: 17 }])
  expect(logged('video: ready')).toMatchObject([{ level: INFO, videoId: video }])
  const { status, statusReason } = await owner.video(text.videoId)
  expect(logged('video: failed')).toMatchObject([{ level: INFO, videoId: text.videoId, status, reason: statusReason }])
})

test('an operator finds in the log which rule refused a viewer, and no OTP', async () => {
  const { owner, videoId: video } = reelgate
  const otp = await owner.issueOtp(video, { ipGeo: { allow: ['DE'] } })
  expect((await reelgate.newViewer().redeem(otp)).playing).toBe(false)
  const spent = await owner.issueOtp(video)
  for (let times = 0; times < 2; times++) await reelgate.newViewer().redeem(spent)
  expect((await reelgate.newViewer().redeem('x'.repeat(64))).playing).toBe(false) // anybody could fill the log with these
  const accountId = expect.any(String)
  expect(logged('playback: refused')).toMatchObject([
    { level: INFO, accountId, videoId: video, reason: 'place-not-allowed', rule: 'ipGeo.allow' },
    { level: INFO, accountId, videoId: video, reason: 'otp-used' },
  ])
  expect(reelgate.output()).not.toMatch(new RegExp(`${otp}|${spent}`))
})

test('an operator finds in the log which webhook was disabled, and why', async () => {
  const { owner } = reelgate
  const receiver = receivers.newReceiver((response) => response.writeHead(410).end())
  const { uuid } = await webhooksOf(owner).create(receiver.url)
  await owner.delete([(await owner.credentials('A video')).videoId])
  await expect
    .poll(() => logged('webhook: disabled'))
    .toMatchObject([{ level: INFO, webhookId: uuid, reason: 'The endpoint returned 410 Gone.' }])
})

test('expected errors are logged as a sentence with its cause; a bug has a stack', () => {
  const lines: string[] = []
  const log = openLog('info', { write: (line) => void lines.push(line) })
  const cause = Object.assign(new Error('database or disk is full'), { code: 'SQLITE_FULL' })
  log.warn({ err: new Failure('unavailable', 'The disk is full.', { cause }) }, 'refused')
  log.warn({ err: Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' }) }, 'refused')
  log.error({ err: new TypeError('x is not a function') }, 'a request failed')
  expect(linesOf(lines.join('')).map(({ err }) => err)).toEqual([
    { message: 'The disk is full.', cause: 'SQLITE_FULL: database or disk is full' },
    { message: 'ENOSPC: no space left on device, write' },
    expect.objectContaining({ message: 'x is not a function', stack: expect.stringContaining('log.test.ts') }),
  ])
})
