import { type Static, Type } from 'typebox'
import { ChaptersBody } from '../wire/chapters.ts'

// What player and server say to each other (playback-protocol.md, sections 2 and 7). The player's types are made from these.

const TextWatermarkBody = Type.Object({
  type: Type.Union([Type.Literal('rtext'), Type.Literal('text')]),
  text: Type.String(),
  alpha: Type.Number({ description: '0 to 1' }),
  color: Type.String({ description: '#rrggbb' }),
  sizePx: Type.Number(),
  intervalMs: Type.Number({ description: 'how long an rtext stays at one position' }),
  skipMs: Type.Number({ description: 'for how long it is absent between two positions' }),
  x: Type.Optional(Type.String({ description: 'position of a text: pixels, or with % a part of the picture' })),
  y: Type.Optional(Type.String()),
})
const ImageWatermarkBody = Type.Object({
  type: Type.Literal('image'),
  image: Type.String({ description: 'a PNG as a data: URL, so that browsers send no request for it' }),
  alpha: Type.Number({ description: '0 to 1' }),
  widthPx: Type.Optional(Type.Number({ description: 'absent: as wide as it is' })),
  x: Type.String(),
  y: Type.String(),
})
export const WatermarkBody = Type.Union([TextWatermarkBody, ImageWatermarkBody])
export type WatermarkBody = Static<typeof WatermarkBody>

export const SessionBody = Type.Object({
  session: Type.String(),
  pageId: Type.String(),
  video: Type.Object({
    id: Type.String(),
    title: Type.String(),
    durationS: Type.Number(),
    aspectRatio: Type.Number(),
    poster: Type.Optional(
      Type.String({
        description: 'path below the root, shown until the first frame; below play/ it needs a proof; absent while there is none',
      }),
    ),
    storyboard: Type.Optional(
      Type.String({
        description:
          'path below the root of WebVTT whose cues name pictures next to it; each needs a proof; absent while there is none',
      }),
    ),
    chapters: Type.Optional(ChaptersBody),
  }),
  playlist: Type.String(),
  marks: Type.Array(WatermarkBody),
  /** Whether the video may float in a small window, which shows no watermark: only where none was asked for. */
  mayFloat: Type.Boolean(),
  /** After a reload where the session was; else behind the last second that the OTP's viewer watched. */
  resumeAtS: Type.Number(),
  /** What the player says in the owner's words, by language and name. */
  sentences: Type.Optional(Type.Record(Type.String(), Type.Record(Type.String(), Type.String()))),
  /** The server keeps where this viewer left the video, for every browser of theirs. */
  keepsPosition: Type.Boolean(),
  beatEveryMs: Type.Number(),
  leaseMs: Type.Number(),
  maxSpeed: Type.Number(),
  endsAtS: Type.Number(),
  idleEndsS: Type.Number(),
})
export type SessionBody = Static<typeof SessionBody>

export const RedeemBody = Type.Object({
  otp: Type.String({ maxLength: 200 }),
  videoId: Type.Optional(Type.String({ pattern: '^[0-9a-f]{32}$' })),
  publicKey: Type.String({ pattern: '^[A-Za-z0-9_-]{87}$', description: 'the 65 raw bytes of a P-256 point, base64url' }),
  serverKeyId: Type.String({ pattern: '^[A-Za-z0-9_-]{22}$', description: 'from the page' }),
  ticket: Type.String({ maxLength: 400 }),
  ancestors: Type.Optional(Type.Array(Type.String({ maxLength: 300 }), { maxItems: 20 })),
  support: Type.Optional(
    Type.Object({
      mse: Type.Boolean(),
      managed: Type.Boolean(),
      h264: Type.Optional(
        Type.Boolean({ description: 'whether the browser decodes it; false: a video with such a track is refused' }),
      ),
      aac: Type.Optional(Type.Boolean()),
    }),
  ),
})
export type RedeemBody = Static<typeof RedeemBody>

/** PostgreSQL's columns of such numbers have 31 bits. */
const MAX_INTEGER = 2 ** 31 - 1

const MAX_MS = 24 * 3600 * 1000
const Milliseconds = Type.Integer({ minimum: 0, maximum: MAX_MS })
const Count = Type.Integer({ minimum: 0, maximum: MAX_INTEGER })

/** What the player measured since its page was opened: docs/playback-quality.md. */
const QualityBody = Type.Object({
  measuredMs: Milliseconds,
  startMs: Type.Optional(Milliseconds),
  waits: Count,
  waitedMs: Milliseconds,
  played: Type.Array(Type.Tuple([Type.Integer({ minimum: 1, maximum: MAX_INTEGER }), Milliseconds]), {
    maxItems: 30,
    description: 'ids of video renditions, and for how long each was on the screen',
  }),
  frames: Count,
  droppedFrames: Count,
  error: Type.Optional(
    Type.Union(
      [
        Type.Literal('network'),
        Type.Literal('internal'),
        Type.Literal('watermark-blocked'),
        Type.Literal('video-gone'),
        Type.Literal('unsupported-browser'),
      ],
      { description: 'why the player stopped' },
    ),
  ),
  network: Type.Optional(
    Type.Union([Type.Literal('slow-2g'), Type.Literal('2g'), Type.Literal('3g'), Type.Literal('4g')], {
      description: 'as navigator.connection.effectiveType has it',
    }),
  ),
})
export type QualityBody = Static<typeof QualityBody>

export const BeatBody = Type.Object({
  state: Type.Union([Type.Literal('playing'), Type.Literal('stalled'), Type.Literal('paused'), Type.Literal('ended')]),
  positionS: Type.Number({ minimum: 0 }),
  rate: Type.Number(),
  bufferS: Type.Number(),
  rendition: Type.Optional(
    Type.Integer({ minimum: 1, maximum: MAX_INTEGER, description: 'the id of the video rendition that it shows' }),
  ),
  leftAtS: Type.Optional(
    Type.Number({ minimum: 0, description: 'where it played before a seek, the first one since the beat before' }),
  ),
  quality: Type.Optional(QualityBody),
})
/** A segment that the player could not read. */
export const DamageBody = Type.Object({
  rendition: Type.Integer({ minimum: 1, maximum: MAX_INTEGER }),
  segment: Type.Integer({ minimum: 0, maximum: MAX_INTEGER }),
})
export type DamageBody = Static<typeof DamageBody>
export type BeatBody = Static<typeof BeatBody>
