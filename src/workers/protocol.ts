import { type Static, Type } from 'typebox'
import type { Plan } from '../encode/plan.ts'

// What a worker and a server say to each other: docs/reference/worker-protocol.md.

export const PROTOCOL_VERSION = '1'
export const PROTOCOL_HEADER = 'Reelgate-Worker-Protocol'
export const CLAIM_WAIT_MS = 25_000
export const HEARTBEAT_MS = 10_000
export const LEASE_MS = 45_000
/** The largest part of a source in one answer. */
export const MAX_RANGE_BYTES = 8 * 2 ** 20

/** Chunks that one worker has, and requests of it that wait. */
export const MAX_JOBS = 64

const Id = Type.String({ pattern: '^[0-9a-f]{32}$' })
const Hex16 = Type.String({ pattern: '^[0-9a-f]{32}$' })
const Count = Type.Integer({ minimum: 0 })
const Kind = Type.Union([Type.Literal('video'), Type.Literal('audio')])

export const ClaimBody = Type.Object({
  encoder: Type.String({
    minLength: 1,
    maxLength: 200,
    description: 'what it encodes with: version of ffmpeg and of its arguments',
  }),
  kinds: Type.Array(Kind, { minItems: 1, maxItems: 2 }),
  jobs: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_JOBS, description: 'how many chunks it encodes concurrently' })),
})
export type ClaimBody = Static<typeof ClaimBody>

export const TaskBody = Type.Object({
  id: Id,
  chunk: Type.Object({
    kind: Kind,
    firstSegment: Count,
    segmentCount: Type.Integer({ minimum: 1 }),
    decodesFromStart: Type.Boolean(),
  }),
  threads: Type.Union([Type.Literal(0), Type.Literal(1)], { description: '0: as many as the encoder chooses' }),
  plan: Type.Unsafe<Plan>({ type: 'object', additionalProperties: true, description: 'ladder and grid of the video' }),
  gains: Type.Array(Type.Tuple([Count, Type.Number()]), {
    description: 'audio renditions that are made louder, by how many decibels',
  }),
  source: Type.Object({
    sizeBytes: Count,
    sealedBytes: Count,
    keyHex: Hex16,
    ivHex: Hex16,
    allowedBytes: Type.Integer({ minimum: 0, description: 'of the sealed file, in all requests of the task' }),
  }),
  segmentKeys: Type.Optional(
    Type.Array(Type.Object({ renditionId: Count, number: Count, keyHex: Hex16, ivHex: Hex16 }), {
      description: 'where segments may be put into the bucket: what encrypts each of this chunk',
    }),
  ),
})
export type TaskBody = Static<typeof TaskBody>

export const AddressBody = Type.Object({
  sizeBytes: Type.Integer({ minimum: 1 }),
  sha256: Type.String({ pattern: '^[0-9a-f]{64}$', description: 'both of the encrypted segment' }),
})
export type AddressBody = Static<typeof AddressBody>

export const AddressReply = Type.Object({
  url: Type.String(),
  headers: Type.Record(Type.String(), Type.String(), { description: 'to be sent with it' }),
})
export type AddressReply = Static<typeof AddressReply>

export const EndBody = Type.Object({
  outcome: Type.Union([Type.Literal('done'), Type.Literal('unclear'), Type.Literal('returned')]),
  reason: Type.Optional(Type.String({ maxLength: 500 })),
})
export type EndBody = Static<typeof EndBody>
