import { setTimeout as pause } from 'node:timers/promises'
import type { Chance } from '../seeded-random.ts'
import { type Clients, METHODS, noVideo, type TagChange, uniqueVideo } from './clients.ts'
import type { Op } from './history.ts'

export const TAGS = ['news', 'sport', 'Sport', 'draft', 'ünïcode', 'a b']
const TAG_CHANGES = Object.keys(METHODS) as TagChange[]
/** Encoding costs more than all else: so many videos a round keep the encoders busy and the round short. */
const VIDEOS_A_ROUND = 3
const MOST_VIDEOS = 50

type Act = (client: number) => Promise<Op>

/**
 * What clients do next, drawn at random.
 * @returns `run`: so many clients call one thing after the other: until their server is gone, or all that there are until it is over
 */
export function createWorkload(clients: Clients, chance: Chance, files: readonly Buffer[]) {
  const { known } = clients
  let videosLeft = 0
  let ownTags = 0

  const one = <T>(from: Iterable<T>): T | undefined => {
    const list = [...from]
    return list[Math.floor(chance.between(0, list.length))]
  }
  const create: Act = (client) => clients.create(client)
  const onVideo =
    (call: (client: number, videoId: string) => Promise<Op>): Act =>
    (client) => {
      const videoId = one(known.videos)
      return videoId ? call(client, videoId) : create(client)
    }

  async function upload(client: number): Promise<Op> {
    const videoId = one(known.credentials.keys())
    if (!videoId) return create(client)
    const slow = chance.next() < 0.5 ? () => pause(chance.between(0, 300)) : undefined
    return clients.upload(client, videoId, newFile(), slow)
  }

  function newFile() {
    const file = videosLeft > 0 && chance.next() < 0.5 ? one(files) : undefined
    if (file) videosLeft--
    const clear = file ? uniqueVideo(file) : noVideo(Math.floor(chance.between(40, 400_000)))
    return { clear, isVideo: file !== undefined }
  }

  function sendPart(client: number): Promise<Op> {
    const videoId = one(known.arriving.keys())
    if (!videoId || chance.next() < 0.2) return clients.beginParts(client, newFile())
    return clients.sendPart(client, videoId, Math.floor(chance.between(1, 200_000)))
  }

  async function tag(client: number): Promise<Op> {
    const videoIds = [one(known.videos), one(known.videos)].flatMap((id) => id ?? [])
    if (videoIds.length === 0) return create(client)
    const how = one(TAG_CHANGES) ?? 'add'
    const own = [`own ${++ownTags} a`, `own ${ownTags} b`]
    const tags = chance.next() < 0.4 && how !== 'remove' ? own : [one(TAGS) ?? '', one(TAGS) ?? '']
    return clients.tag(client, how, [...new Set(videoIds)], [...new Set(tags)])
  }

  function issueOtp(client: number): Promise<Op> {
    const videoId = one(known.ready)
    return videoId ? clients.issueOtp(client, videoId, chance.next() < 0.5 ? 'current' : 'v2') : create(client)
  }

  /** Sometimes two browsers concurrently: the link was passed on. */
  async function redeem(client: number): Promise<Op> {
    const at = Math.floor(chance.between(0, known.otps.length))
    const [otp] = known.otps.splice(at, 1)
    if (!otp) return issueOtp(client)
    const rival = chance.next() < 0.3 ? clients.redeem(client, otp) : undefined
    const op = await clients.redeem(client, otp)
    await rival
    return op
  }

  function play(client: number): Promise<Op> {
    const playing = one(known.playing)
    return playing ? clients.askKey(client, playing) : redeem(client)
  }

  /** One or two; many when there are too many. Two videos that play are left for those who want to watch. */
  async function remove(client: number): Promise<Op> {
    const few = known.ready.size <= 2
    const candidates = [...known.videos].filter((videoId) => !few || !known.ready.has(videoId))
    const picks = known.videos.size > MOST_VIDEOS ? [1, 2, 3, 4, 5, 6] : [1, 2]
    const videoIds = new Set(picks.flatMap(() => one(candidates) ?? []))
    return videoIds.size > 0 ? clients.remove(client, [...videoIds]) : create(client)
  }

  async function changeKeys(client: number): Promise<Op> {
    const [keyId, secret] = one(known.keys) ?? []
    if (!keyId || !secret || known.keys.size < 4) return clients.makeKey(client)
    return chance.next() < 0.7 ? clients.useKey(client, keyId, secret) : clients.revokeKey(client, keyId)
  }

  const ACTS: readonly [weight: number, act: Act][] = [
    [14, create],
    [10, upload],
    [10, sendPart],
    [8, (client) => clients.list(client)],
    [10, onVideo((client, videoId) => clients.readOne(client, videoId))],
    [10, onVideo((client, videoId) => clients.edit(client, videoId))],
    [16, tag],
    [16, issueOtp],
    [14, redeem],
    [10, play],
    [4, remove],
    [3, changeKeys],
  ]
  const acts = ACTS.flatMap(([weight, act]) => Array<Act>(weight).fill(act))

  async function run(count: number, isOver?: () => boolean): Promise<void> {
    videosLeft = VIDEOS_A_ROUND
    const nextAct = () => (known.videos.size > MOST_VIDEOS ? remove : (one(acts) ?? create))
    await Promise.all(
      Array.from({ length: count }, async (_, client) => {
        for (let op: Op | undefined; isOver ? !isOver() : op?.outcome !== 'info'; ) {
          if (op?.outcome === 'info') await pause(chance.between(0, 4_000)) // as a client that repeats its calls
          op = await nextAct()(client)
        }
      }),
    )
  }

  return { run }
}
