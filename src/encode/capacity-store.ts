import { sql } from 'kysely'
import type { Db } from '../db/database.ts'
import { CHUNK_KINDS, type ChunkKind } from './chunk-plan.ts'

/** How many chunks, of which kinds, something with this fingerprint encodes concurrently. */
export type Capacity = { encoder: string; slots: number; kinds: readonly ChunkKind[] }

/** Of workers that were seen since, and may be given chunks; each row one. */
export async function listWorkerCapacities(db: Db, seenSinceS: number): Promise<Capacity[]> {
  const rows = await db
    .selectFrom('worker')
    .select(['encoder', 'jobs as slots', 'kinds'])
    .where('lastSeenAtS', '>=', seenSinceS)
    .where('drained', '=', 0)
    .where('suspendedReason', 'is', null)
    .execute()
  return rows.flatMap(({ encoder, slots, kinds }) =>
    encoder === null ? [] : [{ encoder, slots, kinds: CHUNK_KINDS.filter((kind) => kinds.split(',').includes(kind)) }],
  )
}

/** Of the servers of this database; none where it has one alone. */
export async function listServerCapacities(db: Db): Promise<Capacity[]> {
  const rows = await db.selectFrom('server').select(['encoder', 'encoderSlots as slots']).execute()
  return rows.flatMap(({ encoder, slots }) => (encoder === null ? [] : [{ encoder, slots, kinds: CHUNK_KINDS }]))
}

export async function saveServerCapacity(tx: Db, serverId: string, { encoder, slots }: Omit<Capacity, 'kinds'>): Promise<void> {
  await tx.updateTable('server').set({ encoder, encoderSlots: slots }).where('id', '=', serverId).execute()
}

/** What waits for an encoder: a kind of chunk, and the kinds that its video consists of. Reads all pending chunks. */
export async function listWaiting(db: Db): Promise<{ encoder: string; kind: ChunkKind; ofKinds: ChunkKind[] }[]> {
  const waiting = db
    .selectFrom('chunk')
    .select(['videoId', 'generation', 'kind'])
    .where('state', '=', sql.lit('pending')) // a literal, for the partial index
    .where('decodesFromStart', '=', 0) // others are the server's own work
    .distinct()
  const rows = await db
    .selectFrom(waiting.as('waiting'))
    .innerJoin('generation', (join) =>
      join.onRef('generation.videoId', '=', 'waiting.videoId').onRef('generation.number', '=', 'waiting.generation'),
    )
    .innerJoin('chunk', (join) =>
      join.onRef('chunk.videoId', '=', 'waiting.videoId').onRef('chunk.generation', '=', 'waiting.generation'),
    )
    .select(['waiting.videoId', 'generation.encoder', 'waiting.kind', 'chunk.kind as ofKind'])
    .distinct()
    .orderBy(['waiting.videoId', 'waiting.kind', 'chunk.kind'])
    .execute()
  const ofVideos = Map.groupBy(rows, ({ videoId, encoder, kind }) => `${videoId} ${encoder} ${kind}`)
  return [...ofVideos.values()].flatMap((ofVideo) =>
    ofVideo.slice(0, 1).map(({ encoder, kind }) => ({ encoder, kind, ofKinds: ofVideo.map(({ ofKind }) => ofKind) })),
  )
}

/** How many segments wait for each encoder. Reads all pending chunks. */
export async function countPendingSegments(db: Db): Promise<Map<string, number>> {
  const rows = await db
    .selectFrom('chunk')
    .innerJoin('generation', (join) =>
      join.onRef('generation.videoId', '=', 'chunk.videoId').onRef('generation.number', '=', 'chunk.generation'),
    )
    .select(['generation.encoder', ({ fn }) => fn.sum<number>('chunk.segmentCount').as('count')])
    .where('chunk.state', '=', sql.lit('pending')) // a literal, for the partial index
    .groupBy('generation.encoder')
    .execute()
  return new Map(rows.map(({ encoder, count }) => [encoder, Number(count)]))
}
