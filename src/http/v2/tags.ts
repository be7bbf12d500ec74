import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import type { ListDeps } from '../../catalogue/catalogue-deps.ts'
import { addTags, parseTagFilter, removeTags, type TagDeps } from '../../catalogue/tag.ts'
import { Failure } from '../../errors.ts'
import type { App } from '../wire/app-type.ts'
import { EXAMPLE } from '../wire/examples.ts'
import { readStringList } from '../wire/list-params.ts'
import { MAX_BYTES_OF_IDS } from './key-field.ts'
import { authenticateFromBody, type CallerDeps, NoVideo, sendV2, TypeQuery, V2_TYPE, v2Operation } from './response.ts'
import { Entity, PAGE_QUERY, sendVideos } from './videos.ts'

export type V2TagDeps = TagDeps & ListDeps & CallerDeps

const CHANGES = {
  '/tags/add': { change: addTags, summary: 'Add tags to videos' },
  '/tags/remove': { change: removeTags, summary: 'Remove tags from videos' },
} as const

const EDITOR_OF_MANY = { permission: 'editor', maxBytesToKey: MAX_BYTES_OF_IDS } as const
const VIEWER_OF_MANY = { permission: 'viewer', maxBytesToKey: MAX_BYTES_OF_IDS } as const

const PageQuery = Type.Object({ ...PAGE_QUERY, type: V2_TYPE })
const Tags = Type.Array(Type.String(), {
  description: 'as tags[], tags[0], repeated, a JSON list, or with commas',
  examples: [['course']],
})
const Videos = Type.Array(Type.String(), { description: 'ids, likewise', examples: [[EXAMPLE.videoId]] })
const PairsForm = Type.Object({ videos: Videos, tags: Tags })
const TagsForm = Type.Object({ tags: Tags })
const Done = Type.Object({ message: Type.Literal('Done') })

/** Tags in the earlier interface: pairs added and removed, videos found by them (wire-contract.md, section 6). */
export function v2TagRoutes(app: App, deps: V2TagDeps): void {
  for (const [path, { change, summary }] of Object.entries(CHANGES)) {
    app.post(
      path,
      v2Operation(EDITOR_OF_MANY, {
        summary,
        querystring: TypeQuery,
        body: PairsForm,
        response: [Type.Union([Done, NoVideo]), 'Done, or that one of the videos is unknown and nothing happened'],
      }),
      async (request, reply) => {
        const holder = await authenticateFromBody(deps, { request, reply }, 'editor')
        await change(deps, holder.accountId, holder, { videoIds: getTexts(request, 'videos'), tags: getTexts(request, 'tags') })
        return sendV2(request, reply, { message: 'Done' })
      },
    )
  }

  app.post(
    '/tags/search',
    v2Operation(VIEWER_OF_MANY, {
      summary: 'Search videos by tags',
      querystring: PageQuery,
      body: TagsForm,
      response: [Type.Array(Entity), 'The videos that carry all of the tags, newest first'],
    }),
    async (request, reply) => {
      const { accountId } = await authenticateFromBody(deps, { request, reply }, 'viewer')
      const tags = parseTagFilter(getTexts(request, 'tags'))
      if (tags.length === 0) throw new Failure('invalid', 'Name at least one tag to search by.')
      return sendVideos(deps, { request, reply, accountId }, { tags })
    },
  )
}

/** From the query or the body, as clients of this interface send them. @throws Failure `invalid` where it is in neither */
function getTexts({ query, body }: FastifyRequest, name: string): string[] {
  const texts = readStringList(query, name) ?? readStringList(body, name)
  if (!texts) throw new Failure('invalid', `Send ${name}, such as ${name}[]=…, in the query or in the body.`)
  return texts
}
