import { expect, test } from 'vitest'
import { type BeatQuality, recordQuality } from '../../src/playback/serve.ts'
import { getQuality } from '../../src/view-quality/quality-report.ts'
import { KEPT_DAYS, pruneViewQualities } from '../../src/view-quality/view-quality.ts'
import { listOtpsOfViewer, removeOtps } from '../../src/viewers/viewing-store.ts'
import { openBarePlayback } from '../playback/playback-deps.ts'
import type { Viewer } from '../viewer.ts'

const CHROME = 'Mozilla/5.0 (X11; Linux x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/150.0.0.0 Safari/537.36'
const NOTHING: BeatQuality = { measuredMs: 1, waits: 0, waitedMs: 0, played: [], frames: 0, droppedFrames: 0 }

/** Playback with what an owner asks about it. */
async function openWatched() {
  const bare = await openBarePlayback()
  const today = () => new Date(1000 * bare.nowS()).toISOString().slice(0, 10)
  const { accountId = '' } = (await bare.db.selectFrom('video').select('accountId').executeTakeFirst()) ?? {}
  return {
    ...bare,
    get deps() {
      return bare.deps
    },
    accountId,
    today,
    async report(viewer: Viewer, quality: Partial<BeatQuality>, userAgent = CHROME) {
      await recordQuality(bare.deps, await bare.ask(viewer), { ...NOTHING, ...quality }, userAgent)
    },
    quality: (by: 'day' | 'country' | 'browser' | 'network' | 'video' = 'day', videoId?: string) =>
      getQuality({ slowQueryDb: bare.db }, accountId, { from: today(), to: today(), by, videoId }),
    rows: () => bare.db.selectFrom('viewQuality').selectAll().execute(),
  }
}

test('F-322: the last report of a page counts, whatever order reports come in; medians, shares and sums are those of the views', async () => {
  const { newPlayingViewer, report, save, quality, videoId, today } = await openWatched()
  const viewers = await Promise.all(Array.from({ length: 4 }, () => newPlayingViewer()))
  const [ann, bob, cid, dan] = viewers as [Viewer, Viewer, Viewer, Viewer]
  await report(ann, {
    measuredMs: 9000,
    startMs: 400,
    waits: 2,
    waitedMs: 1500,
    played: [[1, 5000]],
    frames: 100,
    droppedFrames: 4,
  })
  await report(ann, { measuredMs: 3000, startMs: 400, waits: 0 })
  await report(bob, { measuredMs: 2000, startMs: 600, network: '4g' })
  await save()
  await report(bob, {
    measuredMs: 8000,
    startMs: 600,
    played: [
      [1, 3000],
      [77, 9000],
    ],
    network: '3g',
  })
  await report(cid, { measuredMs: 5000, startMs: 2000, error: 'internal' })
  await report(dan, { measuredMs: 7000 }, 'curl')
  await save()
  await save()
  expect(await quality()).toEqual([
    {
      ...{ group: today(), title: null, views: 4, starts: 3, startMedianMs: 600, startP95Ms: 2000, abandoned: 1 },
      ...{ waitedViews: 1, waits: 2, waitedMs: 1500, playedMs: 8000, frames: 100, droppedFrames: 4 },
      ...{ errors: { internal: 1 }, rungs: [{ heightPx: 360, playedMs: 8000 }] },
    },
  ])
  const groups = async (by: Parameters<typeof quality>[0]) =>
    (await quality(by)).map(({ group, title, views }) => [group, title, views])
  expect(await groups('network')).toEqual([
    ['', null, 3],
    ['3g', null, 1],
  ])
  expect(await groups('browser')).toEqual([
    ['Chrome', null, 3],
    ['', null, 1],
  ])
  expect(await groups('country')).toEqual([['DE', null, 4]])
  expect(await groups('video')).toEqual([[videoId, 'A video', 4]])
  expect(await quality('day', 'another')).toEqual([])
})

test('F-323: a reload is another view; totals count each thing once, also after a restart', async () => {
  const playback = await openWatched()
  const { newPlayingViewer, report, save, rows } = playback
  const viewer = await newPlayingViewer()
  await report(viewer, { measuredMs: 1000, startMs: 300, waits: 1, waitedMs: 200 })
  await report(viewer, { measuredMs: 2000, startMs: 300, waits: 3, waitedMs: 700, error: 'network' })
  await report(viewer, { measuredMs: 2500, startMs: 300, waits: 3, waitedMs: 700, error: 'network' })
  expect(playback.deps.viewQualities.totals).toMatchObject({
    starts: 1,
    startMs: 300,
    waits: 3,
    waitedMs: 700,
    errors: { network: 1 },
  })
  await save()
  playback.crash()
  await report(viewer, { measuredMs: 4000, startMs: 300, waits: 4, waitedMs: 900, error: 'network' })
  expect(playback.deps.viewQualities.totals).toMatchObject({ starts: 0, waits: 1, waitedMs: 200, errors: {} })
  await save()
  expect(await rows()).toMatchObject([{ measuredMs: 4000, waitCount: 4 }])
})

test('F-324: erasing a viewer removes how their sessions played, and what is reported late leaves nothing', async () => {
  const { newPlayingViewer, report, save, rows, db, write, accountId, ask, deps } = await openWatched()
  const [ann, bob] = [await newPlayingViewer({ userId: 'ann' }), await newPlayingViewer({ userId: 'bob' })]
  await report(ann, { startMs: 1 })
  await report(bob, { startMs: 2 })
  await save()
  expect(await rows()).toHaveLength(2)
  expect(Object.keys((await rows())[0] ?? {}).filter((name) => /user|address/i.test(name))).toEqual([])
  const session = await ask(ann)
  const hashes = await listOtpsOfViewer(db, { accountId, userId: 'ann' })
  await write((tx) => removeOtps(tx, hashes))
  await recordQuality(deps, session, { ...NOTHING, measuredMs: 9000 }, CHROME)
  await save()
  expect(await rows()).toMatchObject([{ startMs: 2 }])
})

test('views are kept for 90 days', async () => {
  const { newPlayingViewer, report, save, rows, passS, write, nowS } = await openWatched()
  await report(await newPlayingViewer(), {})
  await save()
  for (const [days, left] of [
    [KEPT_DAYS, 1],
    [1, 0],
  ] as const) {
    passS(days * 86_400)
    await pruneViewQualities({ write, nowS })
    expect(await rows()).toHaveLength(left)
  }
})
