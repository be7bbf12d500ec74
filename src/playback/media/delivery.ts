import { LRUCache } from 'lru-cache'
import type { GenerationKey } from '../../catalogue/generation-key.ts'
import type { Db } from '../../db/database.ts'
import { listDamagedNumbers, mapWholeFiles } from '../../encode/damage-store.ts'
import { isFinished, renditionSizes } from '../../encode/generation-store.ts'
import type { Presigner } from '../../storage/s3/presign.ts'
import type { DirectBucket } from './direct-bucket.ts'
import { type MediaOrigin, type MediaSecrets, originMediaUrl, signedMediaPath } from './media-path.ts'
import type { PlayableVideo } from './playable-video.ts'

/** Where players load segments from: this server, or for what is finished and whole its bucket, or an origin that fetches them from it. */
export type MediaDelivery = {
  /** The origins of those addresses, which players must be allowed to ask. */
  origins: readonly string[]
  /** The addresses of a rendition's files as a playlist names them. `number`: of a segment, undefined for the init segment. */
  addressesOf(video: NamedVideo, renditionId: number): Promise<(fileName: string, number?: number) => string>
  /** The bytes of each rendition of what is delivered elsewhere, by its id; undefined: this server delivers it, and counts. */
  findSizesElsewhere(video: GenerationKey): Promise<ReadonlyMap<number, number> | undefined>
  /** Makes addresses in the bucket by the names of segments' blobs, for requests that come here; undefined: this server answers them. */
  findPresigner(): Presigner | undefined
}

type NamedVideo = Pick<PlayableVideo, 'videoId' | 'generation' | 'repairsOf'>

type DeliveryDeps = {
  db: Db
  nowS: () => number
  mediaSecrets(): MediaSecrets
  /** Undefined: no other origin fetches from here. */
  mediaOrigin: MediaOrigin | undefined
  /** Undefined: players do not load from a bucket, or there is none. */
  bucket: DirectBucket | undefined
}

/** Generations in memory; the least recently used are dropped. */
const MAX_CACHED = 500

export function createMediaDelivery({ db, nowS, mediaSecrets, mediaOrigin, bucket }: DeliveryDeps): MediaDelivery {
  /** What is finished stays so. */
  const sizes = new LRUCache<string, ReadonlyMap<number, number>>({ max: MAX_CACHED })

  const findPresigner = () => bucket?.findPresigner()

  async function findSizesElsewhere(video: GenerationKey): Promise<ReadonlyMap<number, number> | undefined> {
    if (!mediaOrigin && !findPresigner()) return undefined
    const name = `${video.videoId}/${video.generation}`
    const known = sizes.get(name)
    if (known || !(await isFinished(db, video))) return known
    const found = await renditionSizes(db, video)
    sizes.set(name, found)
    return found
  }

  return {
    origins: mediaOrigin ? [new URL(mediaOrigin.url).origin] : (bucket?.origins ?? []),
    findSizesElsewhere,
    findPresigner,
    async addressesOf(video, renditionId) {
      const path = signedMediaPath(mediaSecrets(), video, nowS())
      // This server waits for what is not encoded yet, or is repaired, and gives it priority.
      const here = (fileName: string) => `../../../${path}/${renditionId}/${fileName}`
      if (!(await findSizesElsewhere(video))) return here
      const presign = findPresigner()
      if (mediaOrigin) {
        const elsewhere = `${originMediaUrl(mediaOrigin, path)}/${renditionId}`
        const damaged = new Set(await listDamagedNumbers(db, video, renditionId))
        return (fileName, number) => (number !== undefined && damaged.has(number) ? here(fileName) : `${elsewhere}/${fileName}`)
      }
      const files = await mapWholeFiles(db, video, renditionId)
      return (fileName, number) => {
        const file = number === undefined ? undefined : files.get(number) // init segments are in the database
        if (!presign || number === undefined || file === undefined) return here(fileName)
        return presign(file, video.repairsOf(renditionId, number))
      }
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
