import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { assertMayEdit } from '../../catalogue/may-edit.ts'
import { VideoParams, type VideoRoutesDeps } from '../api/videos.ts'
import { authenticateRequest } from '../server/caller.ts'
import type { App } from '../wire/app-type.ts'

const OfOne = Type.Pick(VideoParams, ['id'])
const OfMany = Type.Object({ videos: Type.Array(Type.String()) })

/** A person with the role uploader may edit the videos that they have added, and no others: asked before each operation that edits. */
export function refuseVideosOfOthers(app: App, deps: VideoRoutesDeps): void {
  app.addHook('preHandler', async (request) => {
    const { isOpenToUploader, permission } = request.routeOptions.config
    if (!isOpenToUploader || permission === undefined) return
    await assertMayEdit(deps, authenticateRequest(request), permission, videosOf(request))
  })
}

/** The videos that an operation concerns: in its path, else in its body. */
function videosOf({ params, body }: FastifyRequest): readonly string[] {
  if (Value.Check(OfOne, params)) return [params.id]
  return Value.Check(OfMany, body) ? body.videos : []
}
