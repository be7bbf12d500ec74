import { type Static, Type } from 'typebox'
import { REFUSALS } from '../../error-catalogue.ts'
import { listRefusedAttempts, type RefusedAttempt } from '../../playback/suspicion/refusal-store.ts'
import { findViewerNames } from '../../viewers/viewer-store.ts'
import { authenticateRequest } from '../server/caller.ts'
import type { App } from '../wire/app-type.ts'
import { EXAMPLE } from '../wire/examples.ts'
import { isoTime } from '../wire/iso-time.ts'
import { refuseMisspelledNames } from '../wire/misspelled-names.ts'
import { operation } from '../wire/operation.ts'
import { PAGED_QUERY, type PagedListDeps, readPagedList } from './paged-list.ts'
import { ViewerNameBody } from './viewer-name.ts'

const ListQuery = Type.Object({
  video: Type.Optional(Type.String({ description: 'id of a video: only of this one' })),
  ...PAGED_QUERY,
})
const RefusalBody = Type.Object({
  at: Type.String({ description: 'ISO 8601' }),
  video: Type.String({ description: 'its id', examples: [EXAMPLE.videoId] }),
  title: Type.Union([Type.String(), Type.Null()], { description: 'of the video; null: it was deleted' }),
  userId: Type.Union([Type.String(), Type.Null()], { description: 'of the OTP' }),
  viewer: ViewerNameBody,
  reason: Type.String({
    description:
      'otp-used, otp-expired, otp-unknown, site-not-allowed, place-not-allowed, video-gone, unsupported-browser or session-ended; of a session that was open: stream-limit or key-pace',
  }),
  message: Type.String({ description: 'what the viewer was shown' }),
  rule: Type.Union([Type.String(), Type.Null()], { description: 'the rule of the OTP that refused the viewer' }),
  address: Type.String(),
  userAgent: Type.String(),
  site: Type.Union([Type.String(), Type.Null()], { description: 'host of the page around the player, where it is known' }),
  count: Type.Integer({
    description:
      'more than 1 for the last one stored of an OTP: later ones are only counted; of a session, how often its player asked',
  }),
})
const ListReply = Type.Object({ rows: Type.Array(RefusalBody) })
export type RefusalListBody = Static<typeof ListReply>

type RefusalRoutesDeps = PagedListDeps & { slowQueryDb: Parameters<typeof listRefusedAttempts>[0] }

/** Viewers who were refused, and why. */
export function refusalRoutes(app: App, deps: RefusalRoutesDeps): void {
  app.get(
    '/refusals',
    operation('viewer', {
      summary: 'List refused viewers',
      description:
        'OTPs that were not accepted, and sessions that got no key because of the stream limit or the pace of keys, with the reason, the newest first; kept for a week after the OTP was used or expired. The first twenty of each OTP, and one for each reason of its session, listed within seconds. Follow the `Link` header (`rel="next"`) for more.',
      querystring: ListQuery,
      response: { 200: ListReply },
    }),
    async (request, reply): Promise<Static<typeof ListReply>> => {
      const { accountId } = authenticateRequest(request)
      const { query } = request
      refuseMisspelledNames(Object.keys(query), Object.keys(ListQuery.properties))
      const videoId = query.video || undefined
      const rows = await readPagedList(deps, request, reply, (page) =>
        listRefusedAttempts(deps.slowQueryDb, accountId, { videoId, ...page }),
      )
      const names = await findViewerNames(deps.slowQueryDb, accountId, rows)
      return { rows: rows.map((row) => ({ ...refusalBody(row), viewer: names.get(row.userId ?? '') ?? null })) }
    },
  )
}

function refusalBody({ atS, videoId, outcome, embeddingHost, attemptCount, ...row }: RefusedAttempt) {
  const { title, userId, rule, address, userAgent } = row
  const known = Object.entries(REFUSALS).find(([code]) => code === outcome)
  return {
    ...{ at: isoTime(atS), video: videoId, title, userId, reason: outcome, message: known?.[1].sentence ?? '' },
    ...{ rule, address, userAgent, site: embeddingHost === '-' ? null : embeddingHost, count: attemptCount },
  }
}
