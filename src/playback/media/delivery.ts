import { LRUCache } from 'lru-cache'
import type { GenerationKey } from '../../catalogue/generation-key.ts'
import type { Db } from '../../db/database.ts'
import { listDamagedNumbers } from '../../encode/damage-store.ts'
import { isFinished, renditionSizes } from '../../encode/generation-store.ts'
import { type MediaOrigin, type MediaSecrets, originMediaUrl, signedMediaPath } from './media-path.ts'
import type { PlayableVideo } from './playable-video.ts'

/** Where players load segments from: this server, or for what is finished and whole an origin that fetches them from it. */
export type MediaDelivery = {
  /** The origin of its URL, which players must be allowed to ask; undefined: there is none. */
  origin: string | undefined
  /** The addresses of a rendition's files as a playlist names them. `number`: of a segment, undefined for the init segment. */
  addressesOf(video: GenerationKey, renditionId: number): Promise<(fileName: string, number?: number) => string>
  /** The bytes of each rendition of what is delivered elsewhere, by its id; undefined: this server delivers it, and counts. */
  findSizesElsewhere(video: GenerationKey): Promise<ReadonlyMap<number, number> | undefined>
}

type DeliveryDeps = {
  db: Db
  nowS: () => number
  mediaSecrets(): MediaSecrets
  /** Undefined: this server delivers everything. */
  mediaOrigin: MediaOrigin | undefined
}

/** Generations in memory; the least recently used are dropped. */
const MAX_CACHED = 500

export function createMediaDelivery({ db, nowS, mediaSecrets, mediaOrigin }: DeliveryDeps): MediaDelivery {
  /** What is finished stays so. */
  const sizes = new LRUCache<string, ReadonlyMap<number, number>>({ max: MAX_CACHED })

  async function findSizesElsewhere(video: GenerationKey): Promise<ReadonlyMap<number, number> | undefined> {
    if (!mediaOrigin) return undefined
    const name = `${video.videoId}/${video.generation}`
    const known = sizes.get(name)
    if (known || !(await isFinished(db, video))) return known
    const found = await renditionSizes(db, video)
    sizes.set(name, found)
    return found
  }

  return {
    origin: mediaOrigin && new URL(mediaOrigin.url).origin,
    findSizesElsewhere,
    async addressesOf(video, renditionId) {
      const path = signedMediaPath(mediaSecrets(), video, nowS())
      const here = `../../../${path}/${renditionId}`
      if (!mediaOrigin || !(await findSizesElsewhere(video))) return (fileName) => `${here}/${fileName}`
      const elsewhere = `${originMediaUrl(mediaOrigin, path)}/${renditionId}`
      // This server waits for what is repaired, and gives it priority.
      const damaged = new Set(await listDamagedNumbers(db, video, renditionId))
      return (fileName, number) => `${number !== undefined && damaged.has(number) ? here : elsewhere}/${fileName}`
    },
  }
}

/**
 * The bytes that playing a part of a video takes, in one of its video renditions and the default audio: by their average bitrates.
 * @param sizes of all of its renditions
 * @param renditionId undefined, or none of the video: the largest
 */
export function estimateBytes(
  { plan: { videoTrack, audioTrack, durationS } }: Pick<PlayableVideo, 'plan'>,
  sizes: ReadonlyMap<number, number>,
  { renditionId, partS }: { renditionId: number | undefined; partS: number },
): number {
  const sizesOf = (ids: readonly number[]) => ids.map((id) => sizes.get(id) ?? 0)
  const videoIds = (videoTrack?.renditions ?? []).map(({ id }) => id)
  const used = videoIds.filter((id) => id === renditionId)
  const videoBytes = Math.max(0, ...sizesOf(used.length > 0 ? used : videoIds))
  const [audioBytes = 0] = sizesOf(audioTrack ? [audioTrack.renditionId] : [])
  return Math.round(((videoBytes + audioBytes) * partS) / durationS)
}
