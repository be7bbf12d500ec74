import { Type } from 'typebox'
import { addTags, listTags, removeTags, replaceTags, type TagDeps } from '../../catalogue/tag.ts'
import { authenticateRequest } from '../server/caller.ts'
import type { App } from '../wire/app-type.ts'
import { EXAMPLE } from '../wire/examples.ts'
import { gatherArrayFields } from '../wire/list-params.ts'
import { operation } from '../wire/operation.ts'

const TaggingBody = Type.Object({
  videos: Type.Array(Type.String(), { description: 'ids of videos of the account', examples: [[EXAMPLE.videoId]] }),
  tags: Type.Array(Type.String(), { description: 'of 1 to 255 characters each', examples: [['course', 'light']] }),
})
const DoneReply = Type.Object({ message: Type.Literal('Done') })
const TagsReply = Type.Object({ rows: Type.Array(Type.String()) })

const CHANGES = {
  POST: { change: addTags, summary: 'Add tags' },
  PUT: { change: replaceTags, summary: 'Replace tags' },
  DELETE: { change: removeTags, summary: 'Remove tags' },
} as const

export function tagRoutes(app: App, deps: TagDeps): void {
  app.get('/videos/tags', operation('viewer', { summary: 'All tags in use', response: { 200: TagsReply } }), async (request) => ({
    rows: await listTags(deps, authenticateRequest(request).accountId),
  }))

  for (const [method, { change, summary }] of Object.entries(CHANGES)) {
    app.route({
      method,
      url: '/videos/tags',
      config: { permission: 'editor', isOpenToUploader: true },
      schema: { summary, body: TaggingBody, response: { 200: DoneReply } },
      preValidation: async (request) => {
        request.body = { ...request.body, ...gatherArrayFields(request.body, ['videos', 'tags']) }
      },
      handler: async (request) => {
        const { videos, tags } = request.body
        const holder = authenticateRequest(request)
        await change(deps, holder.accountId, holder, { videoIds: videos, tags })
        return { message: 'Done' as const }
      },
    })
  }
}
