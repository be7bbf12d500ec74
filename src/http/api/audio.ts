import { type Static, Type } from 'typebox'
import { listAudioTracks } from '../../assets/audio-tracks.ts'
import type { ShownAudioTrack } from '../../assets/shown-audio.ts'
import type { ListDeps } from '../../catalogue/catalogue-deps.ts'
import { authenticateRequest } from '../server/caller.ts'
import type { App } from '../wire/app-type.ts'
import { operation } from '../wire/operation.ts'
import { VideoParams } from './videos.ts'

const AudioTrackBody = Type.Object({
  id: Type.Integer({ description: 'of the track in this video' }),
  name: Type.String({ description: 'as viewers read it' }),
  language: Type.Optional(Type.String({ description: 'such as en or pt-br, where it is known', examples: ['en'] })),
  default: Type.Boolean({ description: 'it plays unless a viewer chooses another' }),
})
const AudioTracksBody = Type.Object({ tracks: Type.Array(AudioTrackBody) })

/** docs/videos.md, "Audio tracks". */
export function audioRoutes(app: App, deps: Pick<ListDeps, 'db'>): void {
  app.get(
    '/videos/:id/audio',
    operation('viewer', {
      summary: 'Audio tracks of a video',
      description: 'As viewers choose among them, the default one first; none before the file was examined.',
      params: VideoParams,
      response: { 200: AudioTracksBody },
    }),
    async (request) => {
      const tracks = await listAudioTracks(deps, authenticateRequest(request).accountId, request.params.id)
      return { tracks: tracks.map(toBody) }
    },
  )
}

function toBody({ id, label, language, isDefault }: ShownAudioTrack): Static<typeof AudioTrackBody> {
  return { id, name: label, ...(language !== undefined && { language }), default: isDefault }
}
