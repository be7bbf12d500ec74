import { type Static, Type } from 'typebox'
import { changeAudioTrack, type ListedAudioTrack, listAudioTracks, parseTrackNames } from '../../assets/audio-tracks.ts'
import { addDub, type DubDeps, removeDub } from '../../assets/dubs.ts'
import type { CatalogueDeps } from '../../catalogue/catalogue-deps.ts'
import { Failure } from '../../errors.ts'
import { authenticateRequest, changedBy } from '../server/caller.ts'
import { drainForm, MAX_FORM_BYTES, readUploadForm } from '../upload/form.ts'
import type { App } from '../wire/app-type.ts'
import { EDITOR_OR_UPLOADER, operation } from '../wire/operation.ts'
import { VideoParams } from './videos.ts'

const AudioTrackBody = Type.Object({
  id: Type.Integer({ description: 'of the track in this video' }),
  name: Type.String({ description: 'as viewers read it' }),
  language: Type.Optional(Type.String({ description: 'such as en or pt-br, where it is known', examples: ['en'] })),
  default: Type.Boolean({ description: 'it plays unless a viewer chooses another' }),
  state: Type.Union([Type.Literal('waiting'), Type.Literal('encoding'), Type.Literal('ready'), Type.Literal('failed')], {
    description: 'ready: viewers can choose it. Others are tracks that were added as files',
  }),
  added: Type.Boolean({ description: 'as a file of its own: it can be removed' }),
  startS: Type.Optional(Type.Number({ description: 'of an added track that begins after the start of the video’s file' })),
  fileId: Type.Optional(Type.Integer({ description: 'of an added track that is ready: its file, which can be downloaded' })),
  progress: Type.Optional(Type.Number({ description: 'of one that is being encoded: how much of it is, from 0 to 1' })),
  differenceS: Type.Optional(
    Type.Number({
      description:
        'of an added track: by how many seconds its file is longer than the video, whose end it is cut to; negative: shorter, and padded with silence. Absent where it is less than 2',
    }),
  ),
  error: Type.Optional(Type.String({ description: 'why it has failed' })),
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
const AddQuery = Type.Object({
  language: Type.String({ description: 'such as en or pt-BR', examples: ['en'] }),
  name: Type.Optional(
    Type.String({ description: 'as viewers read it, at most 60 characters; absent: as the language is called' }),
  ),
  default: Type.Optional(Type.Literal('true', { description: 'it plays, once it is ready, unless a viewer chooses another' })),
})
const AudioForm = Type.Object({
  file: Type.String({
    format: 'binary',
    description: 'the sound: any file that a video may be made of',
    examples: ['@english.m4a'],
  }),
})
const TrackParams = Type.Object({
  ...VideoParams.properties,
  trackId: Type.String({ pattern: '^\\d{1,6}$', description: 'of the track', examples: ['2'] }),
})

/** docs/videos.md, "Audio tracks". */
export function audioRoutes(app: App, deps: CatalogueDeps & DubDeps): void {
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

  app.delete(
    '/videos/:id/audio/:trackId',
    operation(EDITOR_OR_UPLOADER, {
      summary: 'Remove an audio track',
      description: 'One that was added as a file, with that file. For viewers who have chosen it, the default track plays on.',
      params: TrackParams,
      response: { 200: AudioTracksBody },
    }),
    async (request) => {
      const { id: videoId, trackId } = request.params
      const { accountId, by } = changedBy(request)
      await removeDub(deps, { accountId, by, videoId, trackId: Number(trackId) })
      return toBody(await listAudioTracks(deps, accountId, videoId))
    },
  )

  // Forms are streamed here: the parser of the other routes keeps them in memory and accepts no files.
  app.register(async (forms: App) => {
    forms.removeContentTypeParser('multipart/form-data')
    forms.addContentTypeParser('multipart/form-data', (_request, payload, done) => done(null, payload))
    forms.post(
      '/videos/:id/audio',
      {
        config: { ...EDITOR_OR_UPLOADER, described: { body: AudioForm } },
        schema: {
          summary: 'Add an audio track',
          description:
            'As a form with the file: its sound, or the first audio track of a video, becomes a track that viewers can choose, as long as the video. It is encoded in the background, and the video plays as before until then. Replies all tracks.',
          params: VideoParams,
          querystring: AddQuery,
          response: { 200: AudioTracksBody },
        },
      },
      async (request) => {
        const { accountId, by } = changedBy(request)
        const { id: videoId } = request.params
        const { default: isDefault, ...named } = request.query
        const declaredBytes = Math.max(0, Number(request.headers['content-length'] ?? 0) - MAX_FORM_BYTES)
        try {
          if (!/^multipart\/form-data/i.test(request.headers['content-type'] ?? '')) throw missingFile()
          const track = { ...parseTrackNames(named), isDefault: isDefault !== undefined }
          await readUploadForm(request.raw, ({ file, fileName }) =>
            addDub(deps, { accountId, by, videoId, ...track, file, fileName, declaredBytes }),
          )
        } catch (error) {
          await drainForm(request.raw) // a client that reads only after sending everything would not get the error
          throw error
        }
        return toBody(await listAudioTracks(deps, accountId, videoId))
      },
    )
  })
}

function missingFile(): Failure {
  return new Failure('invalid', 'Send the audio as the field "file" of a multipart/form-data form.')
}

/** What is less is padded or cut without a word. */
const MAX_UNSAID_S = 2

function toBody(tracks: readonly ListedAudioTrack[]): AudioTracksBody {
  return {
    tracks: tracks.map(
      ({ id, label, language, isDefault, state, isAdded, startS = 0, fileId, progress, differenceS = 0, problem }) => ({
        ...{ id, name: label },
        ...(language !== undefined && { language }),
        ...{ default: isDefault, state, added: isAdded },
        ...(startS !== 0 && { startS }),
        ...(fileId !== undefined && { fileId }),
        ...(progress !== undefined && { progress }),
        ...(Math.abs(differenceS) > MAX_UNSAID_S && { differenceS: Math.round(differenceS * 10) / 10 }),
        ...(problem !== undefined && { error: problem }),
      }),
    ),
  }
}
