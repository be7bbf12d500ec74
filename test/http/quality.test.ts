import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import { readRows } from '../rows.ts'
import { makeVideo } from '../videos.ts'
import type { Viewer } from '../viewer.ts'

let reelgate: Reelgate & { remove(): Promise<void> }
beforeAll(async () => {
  reelgate = await startSharedReelgate({ video: await makeVideo() })
})
afterAll(() => reelgate?.remove())

const today = () => new Date().toISOString().slice(0, 10)
const QUALITY = { measuredMs: 5000, startMs: 420, waits: 1, waitedMs: 300, played: [[1, 2000]], frames: 60, droppedFrames: 1 }

async function newViewer(): Promise<Viewer> {
  const viewer = reelgate.newViewer()
  expect((await viewer.redeem(await reelgate.owner.issueOtp(reelgate.videoId))).playing).toBe(true)
  return viewer
}

const beat = (viewer: Viewer, quality: unknown) =>
  viewer.call('beat', undefined, JSON.stringify({ state: 'paused', positionS: 1, rate: 1, bufferS: 0, quality }))

test('F-325: what players report is listed by its owner alone, as JSON and CSV; what is out of bounds is refused', async () => {
  const { owner, videoId } = reelgate
  const viewer = await newViewer()
  expect((await beat(viewer, { ...QUALITY, network: '4g' })).status).toBe(200)
  for (const wrong of [
    { ...QUALITY, startMs: -1 },
    { ...QUALITY, waits: 0.5 },
    { ...QUALITY, waitedMs: 1e12 },
    { ...QUALITY, frames: 2 ** 40 },
    { ...QUALITY, network: '<b>' },
    { ...QUALITY, error: "'; drop table video" },
    { ...QUALITY, played: Array.from({ length: 31 }, () => [1, 1]) },
    { ...QUALITY, measuredMs: undefined },
    'much',
  ])
    expect((await beat(viewer, wrong)).status).toBe(400)
  expect((await beat(viewer, { ...QUALITY, measuredMs: 6000, played: [[99_999, 1]] })).status).toBe(200)
  await expect.poll(() => readRows(reelgate, 'select rungs from view_quality where measured_ms = 6000')).toEqual([{ rungs: '' }])

  const path = `/api/quality?from=${today()}&to=${today()}`
  const row = { views: 1, starts: 1, startMedianMs: 420, startP95Ms: 420, waits: 1, waitedS: 0.3, errors: [] }
  expect(await (await owner.call('GET', path)).json()).toMatchObject({ rows: [{ of: today(), title: null, ...row }] })
  const { title } = await owner.video(videoId)
  expect(await (await owner.call('GET', `${path}&by=video&video=${videoId}`)).json()).toMatchObject({
    rows: [{ of: videoId, title, ...row }],
  })
  const csv = await (await owner.call('GET', `${path}&by=network&format=csv`)).text()
  expect(csv.split('\r\n').slice(0, 2)).toEqual([
    'of,title,views,starts,startMedianMs,startP95Ms,abandoned,waitedViews,waits,waitedS,playedS,frames,droppedFrames,errors,rungs',
    ',,1,1,420,420,0,1,1,0.3,0,60,1,,',
  ])
  for (const wrong of ['by=street', 'from=today', 'vidoe=1', 'from=2020-01-01'])
    expect((await owner.call('GET', `${path}&${wrong}`)).status).toBe(400)
  const other = await reelgate.newOwner('another account')
  expect(await (await other.call('GET', path)).json()).toEqual({ rows: [] })
})
