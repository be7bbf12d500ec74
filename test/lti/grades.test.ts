import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { userIdOf } from '../../src/lti/message.ts'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import { changeRows, readRows } from '../rows.ts'
import { makeVideo } from '../videos.ts'
import { haveWatched } from '../viewers/watched.ts'
import { launch, ofVideo, otpOf, platformsOf, register } from './launch.ts'
import { type Claims, graded, LTI, startPlatform, TEACHER, type TestPlatform } from './platform.ts'

let platform: TestPlatform
let reelgate: Reelgate & { remove(): Promise<void> }
let id: string
beforeAll(async () => {
  platform = await startPlatform()
  reelgate = await startSharedReelgate({
    video: await makeVideo({ seconds: 10 }),
    env: { REELGATE_OUTBOUND_ALLOW: platform.host },
  })
  id = await register(reelgate, platform)
})
afterAll(async () => {
  await reelgate.remove()
  await platform.close()
})
beforeEach(() => {
  changeRows(reelgate, 'delete from lti_grade')
  platform.state.scores = []
})

/** A learner who watches from one second to another, and leaves. */
async function watch(claims: Claims, fromS: number, toS: number): Promise<void> {
  const viewer = reelgate.newViewer()
  await viewer.redeem(otpOf(await launch(reelgate, platform, id, { ...ofVideo(reelgate, reelgate.videoId), ...claims })))
  for (const window of [0, 1, 2]) await viewer.key(window)
  for (const positionS of [fromS, toS])
    await viewer.call('beat', undefined, JSON.stringify({ state: 'playing', positionS, rate: 1, bufferS: 5 }))
}

const scoresOf = (sub: string) => platform.state.scores.filter(({ userId }) => userId === sub)
const given = (sub: string) => scoresOf(sub).map(({ scoreGiven }) => scoreGiven)

/** As if a learner had watched so many tenths since. */
function raise(tenths: number): void {
  changeRows(reelgate, 'update lti_grade set tenths = ?, due_at_s = 1 where tenths < ?', tenths, tenths)
}

/** As if a learner had watched the first seconds before. */
function watchedBefore(sub: string, seconds: number): void {
  haveWatched(reelgate, userIdOf(platform.issuer, sub), seconds)
}

test('N20: what a learner watches is a score of their own, in tenths, never lowered, completed at the teacher’s share', async () => {
  const claims = { sub: 'ann', ...graded(platform.issuer, `${platform.issuer}/line/7?type_id=2`, '30') }
  watchedBefore('ann', 2)
  watchedBefore('bob', 4)
  await watch(claims, 2, 3.2)
  await watch({ ...claims, sub: 'bob' }, 0, 1.2)
  await expect.poll(() => given('bob')).toEqual([0.4])
  expect(scoresOf('bob')[0]).toMatchObject({
    ...{ path: '/line/7/scores?type_id=2', scoreMaximum: 1, activityProgress: 'Completed', gradingProgress: 'FullyGraded' },
  })
  expect(scoresOf('ann')[0]).toMatchObject({ scoreGiven: 0.2, activityProgress: 'InProgress' })
  await expect.poll(() => given('ann')).toEqual([0.2, 0.3])
  expect(scoresOf('ann')[1]).toMatchObject({ activityProgress: 'Completed' })
  expect(given('bob')).toEqual([0.4])
  const subjects = readRows<{ wrapped: Buffer }>(reelgate, 'select wrapped_subject as wrapped from lti_grade')
  expect(subjects.map(({ wrapped }) => wrapped.includes('ann'))).toEqual([false, false])
}, 60_000)

test('N21: a score that is refused is sent again with a later time, and the owner reads why', async () => {
  platform.state.scoreAnswers = [503]
  await watch({ sub: 'cid', ...graded(platform.issuer) }, 0, 1)
  raise(5)
  await expect
    .poll(async () => (await platformsOf(reelgate.owner))[0]?.lastError)
    .toBe('The platform did not take a score: it answered 503.')
  const [row] = readRows<{ attempts: number; due: number }>(reelgate, 'select attempts, due_at_s as due from lti_grade')
  expect(row?.attempts).toBe(1)
  raise(6)
  changeRows(reelgate, 'update lti_grade set due_at_s = 1')
  await expect.poll(() => given('cid')).toEqual([0.6])
  // A token that is not accepted any more is replaced by another.
  platform.state.tokens = []
  raise(7)
  await expect.poll(() => readRows(reelgate, 'select 1 from lti_grade where attempts = 1')).toHaveLength(1)
  changeRows(reelgate, 'update lti_grade set due_at_s = 1')
  await expect.poll(() => given('cid')).toEqual([0.6, 0.7])
})

test('N30: teachers, people without sub and courses without a grade book bring no score', async () => {
  await watch({ sub: 'eve', ...graded(platform.issuer), [`${LTI}/roles`]: [TEACHER] }, 0, 1)
  await watch({ sub: undefined, ...graded(platform.issuer) }, 0, 1)
  await watch({ sub: 'fay' }, 0, 1)
  const readonly = { scope: ['https://purl.imsglobal.org/spec/lti-ags/scope/result.readonly'], lineitem: `${platform.issuer}/1` }
  await watch({ sub: 'gus', 'https://purl.imsglobal.org/spec/lti-ags/claim/endpoint': readonly }, 0, 1)
  expect(readRows(reelgate, 'select id from lti_grade')).toEqual([])
})

test('N26: erasing a viewer, deleting a platform and deleting a video erase the grades, with the platform’s id of the learner', async () => {
  await watch({ sub: 'hal', ...graded(platform.issuer) }, 0, 1)
  const [row] = readRows<{ userId: string }>(reelgate, 'select user_id as "userId" from lti_grade')
  expect((await reelgate.owner.call('DELETE', `/api/viewers/${row?.userId}`)).status).toBe(200)
  expect(readRows(reelgate, 'select id from lti_grade')).toEqual([])
  await watch({ sub: 'hal', ...graded(platform.issuer) }, 0, 1)
  expect((await reelgate.owner.call('DELETE', `/api/lti/platforms/${id}`)).status).toBe(200)
  for (const table of ['lti_grade', 'lti_course', 'lti_platform'])
    expect(readRows(reelgate, `select * from ${table}`)).toEqual([])
  id = await register(reelgate, platform)
})

test('N31: a line item on this machine or its network is never called', async () => {
  await watch({ sub: 'ivy', ...graded(platform.issuer, 'http://169.254.169.254/latest') }, 0, 1)
  raise(5)
  await expect.poll(async () => (await platformsOf(reelgate.owner))[0]?.lastError).toContain('not on the public internet')
})
