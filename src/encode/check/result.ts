import type { Sandbox } from '../../sandbox/bubblewrap.ts'
import type { SealedSource } from '../../sandbox/media-run.ts'
import type { Chunk } from '../chunk-plan.ts'
import type { AudioTrackPlan, Plan } from '../plan.ts'

/** A clear segment that another machine has made. */
export type ResultSegment = {
  renditionId: number
  number: number
  sizeBytes: number
  /** Called several times, and never for a segment that is too large. */
  read(): Promise<Buffer>
}

/** What another machine has made of a chunk, and what this server knows of it. */
export type Result = {
  sandbox: Sandbox
  source: SealedSource
  plan: Plan
  /** What it was encoded with, as `encoderFingerprint`; missing: with the same as this server's. */
  encoder?: string
  chunk: Pick<Chunk, 'kind' | 'firstSegment' | 'segmentCount' | 'decodesFromStart'>
  /** By rendition, as they came. */
  inits: ReadonlyMap<number, Buffer>
  segments: readonly ResultSegment[]
  /** By how much a track was to be made louder, in decibels. */
  findGain?: (track: AudioTrackPlan, source: SealedSource) => Promise<number | undefined>
  signal?: AbortSignal
}
