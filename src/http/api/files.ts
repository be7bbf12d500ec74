import type { FastifyRequest } from 'fastify'
import { type Static, Type } from 'typebox'
import { Value } from 'typebox/value'
import { assertVideoExists } from '../../assets/attachment.ts'
import { addCaption, type CaptionDeps, parseLanguage, receiveCaption } from '../../assets/caption.ts'
import { type DownloadDeps, downloadPath } from '../../assets/download.ts'
import { type Mp4Deps, requestMp4 } from '../../assets/mp4.ts'
import { addPoster, addPosterAt, type PosterDeps, receivePoster, type StoredPoster } from '../../assets/poster.ts'
import { countUnseenLines } from '../../assets/public-captions.ts'
import { requestTranscription, type TranscriptionRequestDeps } from '../../assets/transcription.ts'
import { confirmCaptions, deleteFile, type FileDeps, listFiles, showCaptions, type VideoFile } from '../../assets/video-file.ts'
import { Failure } from '../../errors.ts'
import { authenticateRequest, changedBy } from '../server/caller.ts'
import { drainForm, readUploadForm } from '../upload/form.ts'
import type { App } from '../wire/app-type.ts'
import { EXAMPLE } from '../wire/examples.ts'
import { isoTime } from '../wire/iso-time.ts'
import { EDITOR_OR_UPLOADER, operation } from '../wire/operation.ts'
import { VideoParams } from './videos.ts'

type ChangedVideo = ReturnType<typeof changedBy> & { videoId: string }
type FileRoutesDeps = PosterDeps &
  CaptionDeps &
  FileDeps &
  Mp4Deps &
  TranscriptionRequestDeps &
  DownloadDeps & { publicUrl(): string }

const ZeroOrOne = Type.Integer({ minimum: 0, maximum: 1 })

/** A file on the wire (wire-contract.md, section 3). */
const FileReply = Type.Object({
  id: Type.Integer({ description: 'unique in the installation' }),
  name: Type.String(),
  size: Type.Integer({ description: 'bytes' }),
  time: Type.String({ description: 'ISO 8601, UTC' }),
  enabled: ZeroOrOne,
  format: Type.String({ description: 'such as jpeg, vtt or hls; for an original the extension of its name' }),
  type: Type.String({ description: 'original, poster, desktop, mobile, audio, caption or mp4' }),
  width: Type.Integer(),
  height: Type.Integer(),
  bitrate: Type.Integer({ description: 'kbit/s' }),
  encryption_type: Type.String(),
  video_codec: Type.String(),
  audio_codec: Type.String(),
  lang: Type.String({ description: 'of captions, and of an audio track among several' }),
  isDownloadable: ZeroOrOne,
  doesNotFit: Type.Optional(
    Type.Integer({
      description:
        'of captions, hidden ones too: how many lines are before or behind what the video plays now, and are not shown; absent: none',
    }),
  ),
  isDeletable: ZeroOrOne,
  hidden: Type.Optional(
    Type.Literal(1, {
      description: 'captions that viewers do not get until they are shown, such as those inside of the uploaded file',
    }),
  ),
  automatic: Type.Optional(
    Type.Literal(1, {
      description: 'captions that a program makes or made of speech, and that have not been looked at: viewers read that, too',
    }),
  ),
  progress: Type.Optional(
    Type.Number({ description: 'from 0 to 1: how much of the speech has been transcribed; absent once that has ended' }),
  ),
  title: Type.Optional(Type.String({ description: 'what captions are called in the uploaded file that they came from' })),
  error: Type.Optional(
    Type.String({
      description: 'why an MP4 or captions could not be made, or captions not be read out of the file, where `enabled` is 0',
    }),
  ),
})
export type VideoFileBody = Static<typeof FileReply>

const FileParams = Type.Object({
  ...VideoParams.properties,
  fileId: Type.String({ description: 'of the file', examples: [EXAMPLE.fileId] }),
})
const FileForm = Type.Object({
  file: Type.String({ format: 'binary', description: 'the image or the captions', examples: ['@poster.png'] }),
})
const Mp4Body = Type.Object({ type: Type.Literal('mp4', { description: 'makes one MP4 of the whole video' }) })
const TranscriptionBody = Type.Object({
  type: Type.Literal('caption', { description: 'makes captions of the speech' }),
  language: Type.String({ description: 'that is spoken, such as en or pt-BR' }),
})
const FrameBody = Type.Object({
  type: Type.Literal('poster', { description: 'makes a frame of the video its poster' }),
  time: Type.Number({ description: 'seconds from the start of the video' }),
})
const FrameForm = Type.Object({ type: Type.Literal('poster'), time: Type.String({ pattern: '^\\d{1,7}(\\.\\d{1,6})?$' }) })
const CaptionChangeBody = Type.Object({
  enabled: Type.Optional(Type.Integer({ minimum: 0, maximum: 1, description: '1: shown to viewers; 0: hidden', examples: [1] })),
  automatic: Type.Optional(
    Type.Literal(0, { description: 'automatic captions have been looked at, and are called automatic no longer' }),
  ),
})
const FilesQuery = Type.Object({
  language: Type.Optional(
    Type.String({ description: 'language of captions, such as en or pt-BR; without it the file is a poster' }),
  ),
})

const PosterReply = Type.Array(
  Type.Object({
    id: Type.Integer(),
    format: Type.String(),
    video_height: Type.Integer(),
    video_width: Type.Integer(),
    time: Type.String(),
    size: Type.Integer({ description: 'bytes' }),
  }),
)
const CaptionReply = Type.Object({
  id: Type.Integer(),
  time: Type.String(),
  size: Type.String({ description: 'such as "5 kB"' }),
  lang: Type.String(),
})
const RedirectReply = Type.Object({ redirect: Type.String({ description: 'needs no key, and is valid for an hour' }) })
const DeletedReply = Type.Object({ message: Type.Literal('Deleted') })

function missingFile(): Failure {
  return new Failure(
    'invalid',
    'Send the file as the field "file" of a multipart/form-data form, or request an MP4 with {"type":"mp4"}, captions of the speech with {"type":"caption","language":"en"}, or a frame as the poster with {"type":"poster","time":10}.',
  )
}

function missingLanguage(): Failure {
  return new Failure(
    'invalid',
    'The file name ends in .vtt or .srt: add the language of the captions, such as ?language=en. Without it an image is expected, as a poster.',
  )
}

export function fileRoutes(app: App, deps: FileRoutesDeps): void {
  app.get(
    '/videos/:id/files',
    operation('viewer', { summary: 'Files of a video', params: VideoParams, response: { 200: Type.Array(FileReply) } }),
    async (request) => {
      const { accountId } = authenticateRequest(request)
      const files = await listFiles(deps, accountId, request.params.id)
      const unseenLines = await countUnseenLines(deps, accountId, request.params.id)
      return files.map((file) => toFileReply(file, unseenLines.get(file.id)))
    },
  )

  // Forms are streamed here: the parser of the other routes keeps them in memory and accepts no files.
  app.register(async (forms: App) => {
    forms.removeContentTypeParser('multipart/form-data')
    forms.addContentTypeParser('multipart/form-data', (_request, payload, done) => done(null, payload))
    forms.post(
      '/videos/:id/files',
      {
        config: {
          permission: 'editor',
          isOpenToUploader: true,
          described: { body: Type.Union([FileForm, Mp4Body, TranscriptionBody, FrameBody]) },
        },
        schema: {
          summary: 'Add a poster or captions, or make captions or an MP4',
          description:
            'As a form: an image (PNG, JPEG, WebP), which becomes one poster for each size; or, with `language`, captions (WebVTT, SRT). As `{"type":"poster","time":10}`: makes the frame at that second the poster. As `{"type":"mp4"}`: makes one MP4 of the best video rendition and the audio of a finished video, in the background. It can be downloaded when `isDownloadable` is 1; a repeated request returns the same file. `enabled` 0 means that it could not be made, and `error` says why: send the request again. As `{"type":"caption","language":"en"}`: has the program that the server’s operator has set up make captions of the speech, in the background. Until they have a size, `progress` says how much is done; DELETE cancels it. Then viewers get them, marked as automatic, in place of earlier automatic ones.',
          params: VideoParams,
          querystring: FilesQuery,
          response: { 200: Type.Union([PosterReply, CaptionReply, FileReply]) },
        },
      },
      async (request) => {
        const video = { ...changedBy(request), videoId: request.params.id }
        const { language } = request.query
        try {
          if (!/^multipart\/form-data/i.test(request.headers['content-type'] ?? '')) {
            const timeS = readFrameTime(request.body)
            if (timeS !== undefined) return (await addPosterAt(deps, { ...video, timeS })).map(toPosterReply)
            if (Value.Check(TranscriptionBody, request.body))
              return toFileReply(await requestTranscription(deps, { ...video, language: parseLanguage(request.body.language) }))
            if (!Value.Check(Mp4Body, request.body)) throw missingFile()
            return toFileReply(await requestMp4(deps, video.accountId, video.by, video.videoId))
          }
          await assertVideoExists(deps, video.accountId, video.videoId)
          return language === undefined
            ? await takePoster(request, video)
            : await takeCaption(request, video, parseLanguage(language))
        } catch (error) {
          await drainForm(request.raw) // a client that reads only after sending everything would not get the error
          throw error
        }
      },
    )
  })

  async function takePoster(request: FastifyRequest, video: ChangedVideo): Promise<Static<typeof PosterReply>> {
    const image = await readUploadForm(request.raw, async ({ file, fileName }) => {
      if (/\.(vtt|srt)$/i.test(fileName)) throw missingLanguage()
      return receivePoster(deps, file)
    })
    return (await addPoster(deps, { ...video, image })).map(toPosterReply)
  }

  async function takeCaption(
    request: FastifyRequest,
    video: ChangedVideo,
    language: string,
  ): Promise<Static<typeof CaptionReply>> {
    const text = await readUploadForm(request.raw, ({ file }) => receiveCaption(file))
    const { id, createdAtS, sizeBytes } = await addCaption(deps, { ...video, language, text })
    return { id, time: isoTime(createdAtS), size: `${Math.max(1, Math.round(sizeBytes / 1000))} kB`, lang: language }
  }

  app.get(
    '/videos/:id/files/:fileId',
    {
      config: { permission: 'viewer', orPermission: 'downloader' },
      schema: {
        summary: 'Get the address of a file',
        description:
          'Originals and MP4s need the permission `downloader` instead of `viewer`. The address needs no key, is valid for an hour, and is revoked with the key that requested it.',
        params: FileParams,
        response: { 200: RedirectReply },
      },
    },
    async (request) => {
      const { id, fileId } = request.params
      const path = await downloadPath(deps, authenticateRequest(request), id, parseFileId(fileId))
      return { redirect: `${deps.publicUrl()}/${path}` }
    },
  )

  app.put(
    '/videos/:id/files/:fileId',
    operation(EDITOR_OR_UPLOADER, {
      summary: 'Show or hide captions, or mark automatic ones as checked',
      description:
        'Shown captions replace others in their language. Captions inside of an uploaded file are hidden until they are shown. Players that are open keep what they have until they are reloaded.',
      params: FileParams,
      body: CaptionChangeBody,
      response: { 200: FileReply },
    }),
    async (request) => {
      const { id, fileId } = request.params
      const file = { ...changedBy(request), videoId: id, fileId: parseFileId(fileId) }
      const { enabled, automatic } = request.body
      const checked = automatic === undefined ? undefined : await confirmCaptions(deps, file)
      const shown = enabled === undefined ? checked : await showCaptions(deps, file, enabled === 1)
      if (!shown) throw new Failure('invalid', 'Send enabled (0 or 1), automatic (0), or both.')
      return toFileReply(shown)
    },
  )

  app.delete(
    '/videos/:id/files/:fileId',
    operation(EDITOR_OR_UPLOADER, { summary: 'Delete a file', params: FileParams, response: { 200: DeletedReply } }),
    async (request) => {
      const { id, fileId } = request.params
      await deleteFile(deps, { ...changedBy(request), videoId: id, fileId: parseFileId(fileId) })
      return { message: 'Deleted' as const }
    },
  )
}

/** The time of the frame that is to become the poster; a form has it as text. Undefined: something else is asked for. */
function readFrameTime(body: unknown): number | undefined {
  if (Value.Check(FrameBody, body)) return body.time
  return Value.Check(FrameForm, body) ? Number(body.time) : undefined
}

function toPosterReply({ id, widthPx, heightPx, createdAtS, sizeBytes }: StoredPoster): Static<typeof PosterReply>[number] {
  return { id, format: 'jpeg', video_height: heightPx, video_width: widthPx, time: isoTime(createdAtS), size: sizeBytes }
}

/** A malformed id gets the same response as an unknown one. 15 digits are exact as a number. @throws Failure `not-found` */
function parseFileId(text: string): number {
  if (!/^[1-9]\d{0,14}$/.test(text)) throw new Failure('not-found', 'File not found')
  return Number(text)
}

function toFileReply(file: VideoFile, unseenLines?: number): Static<typeof FileReply> {
  return {
    id: file.id,
    name: file.name,
    size: file.sizeBytes,
    time: isoTime(file.createdAtS),
    enabled: Number(file.enabled),
    format: file.format,
    type: file.type,
    width: file.widthPx,
    height: file.heightPx,
    bitrate: Math.round(file.bitrateBps / 1000),
    encryption_type: file.encryption,
    video_codec: file.videoCodec,
    audio_codec: file.audioCodec,
    lang: file.language,
    isDownloadable: Number(file.isDownloadable),
    isDeletable: Number(file.isDeletable),
    ...(file.isHidden ? { hidden: 1 as const } : {}),
    ...(file.isAutomatic ? { automatic: 1 as const } : {}),
    progress: file.progress,
    title: file.streamTitle,
    error: file.problem,
    ...(unseenLines !== undefined && { doesNotFit: unseenLines }),
  }
}
