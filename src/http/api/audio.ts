import { type Static, Type } from 'typebox'
import { changeAudioTrack, listAudioTracks } from '../../assets/audio-tracks.ts'
import type { ShownAudioTrack } from '../../assets/shown-audio.ts'
import type { CatalogueDeps } from '../../catalogue/catalogue-deps.ts'
import { authenticateRequest, changedBy } from '../server/caller.ts'
import type { App } from '../wire/app-type.ts'
import { EDITOR_OR_UPLOADER, operation } from '../wire/operation.ts'
import { VideoParams } from './videos.ts'

const AudioTrackBody = Type.Object({
  id: Type.Integer({ description: 'of the track in this video' }),
  name: Type.String({ description: 'as viewers read it' }),
  language: Type.Optional(Type.String({ description: 'such as en or pt-br, where it is known', examples: ['en'] })),
  default: Type.Boolean({ description: 'it plays unless a viewer chooses another' }),
})
const AudioTracksBody = Type.Object({ tracks: Type.Array(AudioTrackBody) })
export type AudioTracksBody = Static<typeof AudioTracksBody>

const ChangeBody = Type.Object({
  name: Type.Optional(
    Type.String({ description: 'as viewers read it, at most 60 characters; empty: as the file has it', examples: ['English'] }),
  ),
  language: Type.Optional(Type.String({ description: 'such as en or pt-BR; empty: as the file has it', examples: ['en'] })),
  default: Type.Optional(Type.Literal(true, { description: 'instead of the one that is' })),
})
const TrackParams = Type.Object({
  ...VideoParams.properties,
  trackId: Type.String({ pattern: '^\\d{1,6}$', description: 'of the track', examples: ['2'] }),
})

/** docs/videos.md, "Audio tracks". */
export function audioRoutes(app: App, deps: CatalogueDeps): void {
  app.get(
    '/videos/:id/audio',
    operation('viewer', {
      summary: 'Audio tracks of a video',
      description: 'As viewers choose among them; none before the file was examined.',
      params: VideoParams,
      response: { 200: AudioTracksBody },
    }),
    async (request) => toBody(await listAudioTracks(deps, authenticateRequest(request).accountId, request.params.id)),
  )

  app.put(
    '/videos/:id/audio/:trackId',
    operation(EDITOR_OR_UPLOADER, {
      summary: 'Name an audio track, or make it the default one',
      description: 'Changes what is given. Players that are open keep what they have. Replies all tracks.',
      params: TrackParams,
      body: ChangeBody,
      response: { 200: AudioTracksBody },
    }),
    async (request) => {
      const { id: videoId, trackId } = request.params
      const { default: isDefault, ...named } = request.body
      const change = { ...named, ...(isDefault && { isDefault }) }
      return toBody(await changeAudioTrack(deps, { ...changedBy(request), videoId, trackId: Number(trackId) }, change))
    },
  )
}

function toBody(tracks: readonly ShownAudioTrack[]): AudioTracksBody {
  return {
    tracks: tracks.map(({ id, label, language, isDefault }) => ({
      ...{ id, name: label },
      ...(language !== undefined && { language }),
      default: isDefault,
    })),
  }
}
