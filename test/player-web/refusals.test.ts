import { expect, test } from 'vitest'
import { END_REASONS } from '../../src/playback/refusal.ts'
import { isFileGone, nextSegmentStep, nextStep } from '../../web/player/next-step.ts'
import {
  REFUSAL_CODES,
  type Refusal,
  refusalAction,
  refusalSentence,
  WAITING_CODES,
  waitingSentence,
} from '../../web/player/refusals.ts'

const fresh = { proofsRefused: 0, failures: 0 }
const answer = (status: number, body: object = {}, retryAfter: string | null = null) => ({
  status,
  retryAfter,
  body: JSON.stringify({ message: 'x', requestId: 'r', ...body }),
})

test('a viewer never reads a code, a name in braces or an exclamation mark', () => {
  const refusals: Refusal[] = [
    ...REFUSAL_CODES.map((code) => ({ code, page: 'videos.example' })),
    ...END_REASONS.map((why) => ({ code: 'session-ended' as const, why })),
  ]
  const sentences = [
    ...refusals.flatMap((refusal) => [refusalSentence(refusal), refusalSentence(refusal, true)]),
    ...WAITING_CODES.map((code) => waitingSentence({ code })),
  ]
  for (const sentence of sentences) expect(sentence).toMatch(/^[A-Z][^!{}]*\.$/)
})

test('on an insecure page the sentence says which page needs https', () => {
  expect(refusalSentence({ code: 'insecure-page', page: 'school.example' })).toContain('school.example')
})

test('a used or expired link offers no button, its sentence names the cure', () => {
  for (const code of ['otp-used', 'otp-expired', 'otp-unknown'] as const) {
    expect(refusalAction({ code })).toBeUndefined()
    expect(refusalSentence({ code })).toContain('Reload the page you came from')
  }
})

test('P-13: where a page around can give a new OTP, exactly what a new OTP helps offers to continue', () => {
  for (const refusal of [{ code: 'session-ended', why: 'idle' }, { code: 'otp-expired' }] as const)
    expect(refusalAction(refusal, true)?.label).toBe('Continue')
  expect(refusalSentence({ code: 'session-ended', why: 'idle' }, true)).toBe('This video was paused for a long time.')
  expect(refusalAction({ code: 'session-ended', why: 'stopped' }, true)).toBeUndefined()
  expect(refusalAction({ code: 'network' }, true)?.label).toBe('Try again')
})

test('too many streams can be tried again, a replaced page can be played here', () => {
  expect(refusalAction({ code: 'stream-limit' })?.label).toBe('Try again')
  expect(refusalAction({ code: 'page-replaced' })?.label).toBe('Play here')
})

test.each(['proof-stale', 'proof-replayed'])(
  '%s is signed again twice, then the viewer sees that the connection is lost',
  (code) => {
    expect(nextStep(answer(401, { code }), { proofsRefused: 1, failures: 0 })).toEqual({ step: 'sign-again' })
    expect(nextStep(answer(401, { code }), { proofsRefused: 2, failures: 0 })).toEqual({
      step: 'stop',
      refusal: { code: 'network' },
    })
  },
)

test('a video that is not ready is asked for again when the server says, else after 15 s, and shows its progress', () => {
  expect(nextStep(answer(409, { code: 'video-not-ready', waitMs: 5000, progress: 0.62 }), fresh)).toEqual({
    step: 'wait',
    waitMs: 5000,
    waiting: { code: 'video-not-ready', progress: 0.62 },
  })
  expect(nextStep(answer(409, { code: 'video-not-ready' }), fresh)).toMatchObject({ step: 'wait', waitMs: 15_000 })
})

test('P-04: what the browser lacks for a video is named, as far as the player knows its name', () => {
  const sentence = (lacks: unknown) => {
    const next = nextStep(answer(409, { code: 'unsupported-browser', lacks }), fresh)
    return next.step === 'stop' && refusalSentence(next.refusal)
  }
  expect(sentence(['h264', 'aac'])).toContain('it lacks H.264 video and AAC audio.')
  for (const lacks of [['a later format'], 'aac', undefined]) expect(sentence(lacks)).toContain('it lacks a decoder.')
})

test('a video whose preparation failed is not waited for', () => {
  expect(nextStep(answer(409, { code: 'video-not-ready', why: 'failed' }), fresh)).toEqual({
    step: 'stop',
    refusal: { code: 'video-failed' },
  })
})

test('a paced key is requested again after exactly the time given, and playback is no faster than keys come', () => {
  expect(nextStep(answer(429, { code: 'key-pace', waitMs: 3400, maxRate: 1.667 }, '4'), fresh)).toEqual({
    step: 'wait',
    waitMs: 3400,
    waiting: { code: 'key-pace', maxRate: 1.667 },
  })
})

test('a busy server is asked again when it said so', () => {
  expect(nextSegmentStep({ status: 503, retryAfter: '1', body: '' }, fresh)).toMatchObject({ step: 'wait', waitMs: 1000 })
  expect(nextStep(answer(503, { code: 'unavailable' }, '5'), fresh)).toMatchObject({
    waitMs: 5000,
    waiting: { code: 'unavailable' },
  })
  expect(nextStep(answer(429, { code: 'slow-down' }, '7'), fresh)).toMatchObject({ waitMs: 7000, waiting: { code: 'slow-down' } })
})

test('no answer at all is waited out, ever more slowly, at most 8 s apart', () => {
  const waitsMs = [0, 1, 2, 3, 9].map((failures) => {
    const next = nextStep({ status: 0, retryAfter: null, body: '' }, { proofsRefused: 0, failures })
    return next.step === 'wait' ? next.waitMs : undefined
  })
  expect(waitsMs).toEqual([1000, 2000, 4000, 8000, 8000])
})

test('a fault of the server is tried four more times, then said', () => {
  expect(nextStep(answer(500), { proofsRefused: 0, failures: 3 }).step).toBe('wait')
  expect(nextStep(answer(500), { proofsRefused: 0, failures: 4 })).toEqual({ step: 'stop', refusal: { code: 'internal' } })
})

test.each([
  [answer(403, { code: 'session-ended', why: 'stopped' }), { code: 'session-ended', why: 'stopped' }],
  [answer(403, { code: 'otp-used' }), { code: 'otp-used' }],
  [answer(409, { code: 'stream-limit', waitMs: 12_000 }), { code: 'stream-limit', waitMs: 12_000 }],
  [answer(409, { code: 'page-replaced' }), { code: 'page-replaced' }],
  [answer(400, { code: 'bad-request' }), { code: 'internal' }],
  [answer(403, { code: 'a-code-of-next-year' }), { code: 'internal' }],
  [{ status: 403, retryAfter: null, body: '<html>a proxy</html>' }, { code: 'internal' }],
])('a final answer stops the player with its reason: %j', (refused, refusal) => {
  expect(nextStep(refused, fresh)).toEqual({ step: 'stop', refusal })
})

test('a segment path whose time is over means that the time for watching is over', () => {
  expect(nextSegmentStep({ status: 403, retryAfter: null, body: '' }, fresh)).toEqual({
    step: 'stop',
    refusal: { code: 'session-ended', why: 'time' },
  })
})

test('captions that are gone stop nothing; every other final answer does', () => {
  expect(isFileGone(answer(404, { code: 'file-gone' }))).toBe(true)
  for (const refused of [answer(400, { code: 'bad-request' }), answer(404), { status: 404, retryAfter: null, body: '<html>' }])
    expect(isFileGone(refused)).toBe(false)
})

test('a segment of a video deleted meanwhile says that the video is gone', () => {
  expect(nextSegmentStep(answer(403, { code: 'video-gone' }), fresh)).toEqual({ step: 'stop', refusal: { code: 'video-gone' } })
})
