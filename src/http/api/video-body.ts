import { type Static, Type } from 'typebox'
import { readMetadata } from '../../catalogue/own-fields.ts'
import type { Video } from '../../catalogue/video.ts'
import type { findGeneration, KeptGeneration } from '../../encode/generation-store.ts'
import { parseDefaults } from '../../playback/otp-defaults.ts'
import { ExternalId, Metadata } from '../wire/own-fields.ts'
import { posterPath } from '../wire/poster-path.ts'

const PosterBody = Type.Object({ width: Type.Integer(), height: Type.Integer(), posterUrl: Type.String() })

const Replacement = Type.Object({
  kind: Type.Union([Type.Literal('replace'), Type.Literal('trim')]),
  state: Type.Union([Type.Literal('importing'), Type.Literal('waiting'), Type.Literal('encoding'), Type.Literal('failed')], {
    description: 'waiting: for its file to be examined',
  }),
  part: Type.Optional(Type.Number({ description: 'how much is encoded, 0 to 1; of one video, not in lists' })),
  reason: Type.Optional(Type.String({ description: 'why it failed' })),
  leaves: Type.Optional(
    Type.Array(Type.String(), {
      description: 'the added audio tracks that the new file comes without; of one video, not in lists',
    }),
  ),
})

const Kept = Type.Object({
  file: Type.String({ description: 'name of the uploaded file' }),
  length: Type.Number({ description: 'seconds' }),
  sizeBytes: Type.Integer({ description: 'of its renditions, and of its file, unless that plays or a newer one is made of it' }),
  replacedBy: Type.Union([Type.Literal('replace'), Type.Literal('trim'), Type.Literal('undo')]),
  keptUntil: Type.Integer({ description: 'Unix seconds; then it is deleted with its key' }),
})

/** A video on the wire (wire-contract.md, section 3). */
export const VideoBody = Type.Object({
  id: Type.String({ description: '32 lower-case hexadecimal digits' }),
  title: Type.String(),
  description: Type.String(),
  upload_time: Type.Integer({ description: 'Unix seconds' }),
  length: Type.Number({ description: 'seconds; 0 before the probe' }),
  status: Type.String({ description: 'PRE-Upload, Queued, Processing, ready, Not a media file or Encoding error' }),
  statusReason: Type.Optional(Type.String({ description: 'why the video failed, or what is missing from one that plays' })),
  posters: Type.Array(PosterBody),
  poster: Type.String({ description: 'URL of the main poster; empty while there is none' }),
  tags: Type.Array(Type.String()),
  public: Type.Integer({ description: '0 or 1: whether posters and meta are served without a playback session' }),
  ipGeoRules: Type.String({ description: 'the default of its OTPs, as JSON; empty: none' }),
  whitelisthref: Type.String({ description: 'the default of its OTPs; empty: none' }),
  totalSizeBytes: Type.Integer(),
  folderId: Type.String(),
  externalId: Type.Optional(ExternalId),
  metadata: Type.Optional(Metadata),
  duplicateOf: Type.Optional(Type.String({ description: 'the oldest video that had the same bytes when this file arrived' })),
  replacement: Type.Optional(Replacement),
})

const Trim = Type.Object(
  { startS: Type.Number(), endS: Type.Number(), ofS: Type.Number({ description: 'length of the whole file' }) },
  { description: 'which seconds of its file it has; absent: all' },
)

/** One video: with what only a single one is worth asking for. */
export const OneVideoBody = Type.Object({
  ...VideoBody.properties,
  trim: Type.Optional(Trim),
  kept: Type.Optional(
    Type.Array(Kept, { description: 'what it was before: POST /videos/{id}/undo has the first of these play again' }),
  ),
})

export type OneVideoBody = Static<typeof OneVideoBody>
export type VideoBody = Static<typeof VideoBody>

export function videoBody(publicUrl: string, video: Video): VideoBody {
  const posters = video.posters.map((poster) => ({
    width: poster.widthPx,
    height: poster.heightPx,
    posterUrl: `${publicUrl}/${posterPath(poster.token)}`,
  }))
  const { ipGeoRules, whitelisthref } = parseDefaults(video.otpDefaults)
  return {
    id: video.id,
    title: video.title,
    description: video.description,
    upload_time: video.uploadTimeS,
    length: Math.round(video.durationS * 1000) / 1000,
    status: video.status,
    ...(video.statusReason === null ? {} : { statusReason: video.statusReason }),
    posters,
    poster: posters[0]?.posterUrl ?? '',
    tags: video.tags,
    public: video.public,
    ipGeoRules: asText(ipGeoRules),
    whitelisthref: asText(whitelisthref),
    totalSizeBytes: video.totalSizeBytes,
    folderId: video.folderId,
    ...(video.externalId === null ? {} : { externalId: video.externalId }),
    ...(video.duplicateOf === null ? {} : { duplicateOf: video.duplicateOf }),
    ...(video.metadata === null ? {} : { metadata: readMetadata(video.metadata) }),
    ...(video.replacement === undefined ? {} : { replacement: replacementBody(video.replacement) }),
  }
}

function replacementBody({
  kind,
  sourceNumber,
  generation,
  problem,
}: NonNullable<Video['replacement']>): Static<typeof Replacement> {
  if (problem !== null) return { kind, state: 'failed', reason: problem }
  return { kind, state: generation !== null ? 'encoding' : sourceNumber === null ? 'importing' : 'waiting' }
}

type OneVideo = {
  part: number
  leaves: readonly string[]
  kept: readonly KeptGeneration[]
  played: Awaited<ReturnType<typeof findGeneration>>
}

/** @param part how much of its replacement is encoded, which leaves behind these audio tracks @param played undefined: the video has no file yet */
export function oneVideoBody(publicUrl: string, video: Video, { part, leaves, kept, played }: OneVideo): OneVideoBody {
  const { replacement, ...body } = videoBody(publicUrl, video)
  const left = leaves.length > 0 ? { leaves: [...leaves] } : {}
  return {
    ...body,
    ...(replacement && { replacement: { ...replacement, ...(replacement.state !== 'failed' && { part, ...left }) } }),
    ...(played?.plan.cut && { trim: played.plan.cut }),
    ...(kept.length > 0 && {
      kept: kept.map(
        ({ fileName, durationS, segmentBytes, pictureBytes, sourceBytes, sourceNumber, keptBy, keptUntilS }, index) => ({
          file: fileName,
          length: Math.round(durationS * 1000) / 1000,
          sizeBytes:
            segmentBytes +
            pictureBytes +
            (new Set([played, ...kept.slice(0, index)].map((of) => of?.sourceNumber)).has(sourceNumber) ? 0 : sourceBytes),
          replacedBy: keptBy ?? 'replace',
          keptUntil: keptUntilS,
        }),
      ),
    }),
  }
}

function asText(option: unknown): string {
  if (option === undefined) return ''
  return typeof option === 'string' ? option : JSON.stringify(option)
}
