import type { GenerationKey } from '../catalogue/generation-key.ts'
import type { SealedSource } from '../sandbox/media-run.ts'
import type { ChunkSink } from './chunk.ts'
import type { Chunk } from './chunk-plan.ts'
import type { Plan } from './plan.ts'
import type { SegmentStoring } from './publication.ts'

/** An encoder on another machine that waits for a chunk. */
export type RemoteEncoder = {
  workerId: string
  /** What it encodes with: see `encoderFingerprint`. */
  encoder: string
  /**
   * Encodes a part of a chunk once. The sink gets its segments at the end, checked; none when it was not encoded cleanly.
   * @returns whether it was; false decides nothing about the source
   * @throws StaleRunError when the encoder is lost: the chunk is free again. The signal's reason
   */
  encode(part: RemotePart, sink: ChunkSink): Promise<boolean>
}

export type RemotePart = {
  video: GenerationKey & { sourceNumber: number }
  plan: Plan
  /** Of the generation. */
  encoder: string
  part: Pick<Chunk, 'kind' | 'firstSegment' | 'segmentCount' | 'decodesFromStart'>
  /** 0: chosen by the encoder. */
  threads: 0 | 1
  /** By how much each audio rendition is made louder, in decibels. */
  gains: ReadonlyMap<number, number>
  source: SealedSource
  /** Undefined: what comes out is not stored as it is. */
  storing?: SegmentStoring
  signal: AbortSignal
}
