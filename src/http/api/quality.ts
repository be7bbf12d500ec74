import { type Static, Type } from 'typebox'
import { getQuality, QUALITY_GROUPS, type QualityReportDeps } from '../../view-quality/quality-report.ts'
import { KEPT_DAYS } from '../../view-quality/view-quality.ts'
import { authenticateRequest } from '../server/caller.ts'
import type { App } from '../wire/app-type.ts'
import { EXAMPLE } from '../wire/examples.ts'
import { refuseMisspelledNames } from '../wire/misspelled-names.ts'
import { operation } from '../wire/operation.ts'

const QualityQuery = Type.Object({
  from: Type.String({ description: 'the first day in UTC, YYYY-MM-DD', examples: ['2026-11-01'] }),
  to: Type.String({ description: `the last day; at most ${KEPT_DAYS} days`, examples: ['2026-11-21'] }),
  by: Type.Optional(
    Type.Union(
      QUALITY_GROUPS.map((group) => Type.Literal(group)),
      { description: 'what the rows are of; day if absent', examples: ['country'] },
    ),
  ),
  video: Type.Optional(Type.String({ description: 'id of a video: only of this one', examples: [EXAMPLE.videoId] })),
})
const Milliseconds = Type.Union([Type.Integer(), Type.Null()])
const Row = Type.Object({
  of: Type.String({
    description:
      'a day, the id of a video, a country (ISO 3166-1 alpha-2), a browser, or a network (4g, 3g, 2g, slow-2g); empty: not known',
    examples: ['2026-11-21'],
  }),
  title: Type.Union([Type.String(), Type.Null()], {
    description: 'of the video; null: it was deleted, or rows are of something else',
  }),
  views: Type.Integer({ description: 'pages that asked to play' }),
  starts: Type.Integer({ description: 'of those, how many showed a first frame' }),
  startMedianMs: Type.Union(Milliseconds.anyOf, { description: 'from the request to play to the first frame, the median' }),
  startP95Ms: Type.Union(Milliseconds.anyOf, { description: 'the 95th percentile: 95 % of starts took no longer' }),
  abandoned: Type.Integer({ description: 'views that ended before a first frame, without an error' }),
  waitedViews: Type.Integer({ description: 'started views that waited for data at least once' }),
  waits: Type.Integer({ description: 'how often they waited; after a seek does not count' }),
  waitedS: Type.Number({ description: 'for how long, together' }),
  playedS: Type.Number({ description: 'for how long the picture moved' }),
  frames: Type.Integer({ description: 'frames that were to be shown' }),
  droppedFrames: Type.Integer({ description: 'of those, frames that were not: the device was too slow' }),
  errors: Type.Array(Type.Object({ kind: Type.String({ examples: ['network'] }), views: Type.Integer() }), {
    description: 'views whose player stopped, by the reason',
  }),
  rungs: Type.Array(Type.Object({ heightPx: Type.Integer({ examples: [720] }), playedS: Type.Number() }), {
    description: 'for how long each height was on the screen, the largest first',
  }),
})
const QualityReply = Type.Object({ rows: Type.Array(Row) })
export type QualityRow = Static<typeof Row>
type QualityBody = Static<typeof QualityReply>

/** How videos play at their viewers. */
export function qualityRoutes(app: App, deps: QualityReportDeps): void {
  app.get(
    '/quality',
    operation('viewer', {
      summary: 'How videos play',
      description: `Time to the first frame, waiting, heights, dropped frames and errors, as players report them: by day, video, country, browser or network. A view is one page. Kept for ${KEPT_DAYS} days; a few seconds late.`,
      querystring: QualityQuery,
      response: { 200: QualityReply },
    }),
    async (request): Promise<QualityBody> => {
      refuseMisspelledNames(Object.keys(request.query), Object.keys(QualityQuery.properties))
      const { from, to, by = 'day', video } = request.query
      const { accountId } = authenticateRequest(request)
      const rows = await getQuality(deps, accountId, { from, to, by, videoId: video || undefined })
      return {
        rows: rows.map(({ group, waitedMs, playedMs, errors, rungs, ...row }) => ({
          ...{ of: group, ...row, waitedS: waitedMs / 1000, playedS: playedMs / 1000 },
          errors: Object.entries(errors).map(([kind, views]) => ({ kind, views })),
          rungs: rungs.map(({ heightPx, playedMs: ms }) => ({ heightPx, playedS: ms / 1000 })),
        })),
      }
    },
  )
}
