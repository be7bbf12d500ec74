import { Type } from 'typebox'
import { getBandwidth } from '../../usage/usage.ts'
import { authenticateRequest } from '../server/caller.ts'
import type { App } from '../wire/app-type.ts'
import { csvDocument } from '../wire/csv.ts'

type UsageRoutesDeps = Parameters<typeof getBandwidth>[0]

const UsageBody = Type.Object({ date: Type.String({ description: 'a day in UTC, YYYY-MM-DD', examples: ['2026-11-21'] }) })
const UsageReply = { 200: { description: 'CSV of video and bandwidth', content: { 'text/csv': { schema: Type.String() } } } }

/** What was sent of each video on a day, in kilobytes, rounded up. */
export function usageRoutes(app: App, deps: UsageRoutesDeps): void {
  app.post(
    '/account/video-usage',
    {
      config: { permission: 'viewer', described: { response: UsageReply } },
      schema: { summary: 'Bandwidth of a day', description: 'How much of each video was sent, in kilobytes.', body: UsageBody },
    },
    async (request, reply) => {
      const videos = await getBandwidth(deps, authenticateRequest(request).accountId, request.body.date)
      const rows = videos.map(({ videoId, sentBytes }) => [videoId, Math.ceil(sentBytes / 1000)])
      return reply.type('text/csv; charset=utf-8').send(csvDocument([['video', 'bandwidth'], ...rows]))
    },
  )
}
