import { createHash } from 'node:crypto'
import type { Op, Seen } from './history.ts'
import { rankOf } from './inspect-data-folder.ts'

/** Videos of one page, as clients ask for it. */
export const PAGE = 40

// Compares what the clients received with what is there: every acknowledged change, and of the unknown ones all or nothing.

/** What was seen to be true when no client called, after the calls before. */
export type World = {
  videos: Map<
    string,
    { title: string; tags: ReadonlySet<string>; rank: number; sha256?: string; isVideo?: boolean; arrivedBytes: number }
  >
  gone: Set<string>
  otps: Map<string, { videoId: string; session?: string }>
  keys: Map<string, { secret: string; isRevoked: boolean }>
}

export const newWorld = (): World => ({ videos: new Map(), gone: new Set(), otps: new Map(), keys: new Map() })

/** What the public API and the database say once the calls have ended. */
export type Observation = {
  count: number
  videos: ReadonlyMap<string, Seen>
  /** Of videos that should be gone: those that are answered for. */
  answeredFor: readonly string[]
  /** SHA-256 of each video's source. */
  sources: ReadonlyMap<string, string>
  /** What has arrived of each file that arrives in parts. */
  arrivedBytes: ReadonlyMap<string, number>
  /** Sessions by the hash of their OTP. */
  sessions: ReadonlyMap<string, readonly string[]>
  otpHashes: ReadonlySet<string>
  /** The key of each video's first window. */
  windowKeys: ReadonlyMap<string, string>
  /** API keys that open the list. */
  workingKeys: ReadonlySet<string>
}

export const hashOf = (otp: string): string => createHash('sha256').update(otp).digest('hex')

/** @returns one sentence for each broken promise */
export function judge(world: World, ops: readonly Op[], observed: Observation): string[] {
  const round = { world, ops, observed }
  return [
    ...refusalBreaches(round),
    ...presenceBreaches(round),
    ...halfDone(round),
    ...sourceBreaches(round),
    ...partBreaches(round),
    ...readBreaches(round),
    ...contentBreaches(round),
    ...orderBreaches(round),
    ...otpBreaches(round),
    ...keyBreaches(round),
  ]
}

type Round = { world: World; ops: readonly Op[]; observed: Observation }
type OpOf<K extends Op['kind']> = Extract<Op, { kind: K }>

/** The calls of one kind; a round has thousands, and is asked often. */
function of<K extends Op['kind']>({ ops }: Pick<Round, 'ops'>, kind: K): OpOf<K>[] {
  const kinds = sorted.get(ops) ?? Map.groupBy(ops, (op) => op.kind)
  sorted.set(ops, kinds)
  return (kinds.get(kind) ?? []).filter((op): op is OpOf<K> => op.kind === kind)
}
const sorted = new WeakMap<readonly Op[], Map<Op['kind'], Op[]>>()

/** Deletions of a video that may have happened. */
const deletesOf = (round: Round, videoId: string) =>
  of(round, 'delete').filter((op) => op.outcome !== 'fail' && op.videoIds.includes(videoId))

const mayBeDeletedBefore = (round: Round, videoId: string, order: number) =>
  round.world.gone.has(videoId) || deletesOf(round, videoId).some(({ start }) => start < order)

const isDeletedBefore = (round: Round, videoId: string, order: number) =>
  round.world.gone.has(videoId) || deletesOf(round, videoId).some(({ outcome, end }) => outcome === 'ok' && end < order)

/** A refusal has its reason in what others did; nothing that these clients send is wrong by itself, and nothing is a bug's 500. */
function refusalBreaches(round: Round): string[] {
  return round.ops.flatMap((op) => {
    if (op.status >= 500 && op.status !== 503) return [`${op.kind} was answered with ${op.status}`]
    return op.outcome === 'fail' && !isExplained(round, op) ? [`${JSON.stringify(op)} was refused without a reason`] : []
  })
}

function isExplained(round: Round, op: Op): boolean {
  switch (op.kind) {
    case 'one':
    case 'edit':
    case 'otp':
    case 'key':
    case 'part':
      return mayBeDeletedBefore(round, op.videoId, op.end)
    case 'tag':
      return op.videoIds.some((videoId) => mayBeDeletedBefore(round, videoId, op.end))
    case 'upload':
      return mayBeDeletedBefore(round, op.videoId, op.end) || rivals(of(round, 'upload'), op, 'videoId').length > 0
    case 'redeem':
      return (
        mayBeDeletedBefore(round, op.videoId, op.end) ||
        rivals(of(round, 'redeem'), op, 'otp').some(({ viewer }) => viewer !== op.viewer)
      )
    case 'use-key':
    case 'revoke-key':
      return round.world.keys.get(op.keyId)?.isRevoked === true || rivals(of(round, 'revoke-key'), op, 'keyId').length > 0
    default:
      return false
  }
}

/** Other calls on the same thing that began before this one's end and may have happened. */
function rivals<Name extends string, T extends Op & Record<Name, string>>(
  ops: T[],
  op: Op & Record<Name, string>,
  name: Name,
): T[] {
  return ops.filter((other) => other !== op && other[name] === op[name] && other.outcome !== 'fail' && other.start < op.end)
}

/** Who was created and not deleted is there; who was deleted is not, and no one appears without a call. */
function presenceBreaches(round: Round): string[] {
  const { world, observed } = round
  const breaches: string[] = []
  const made = of(round, 'create').flatMap(({ outcome, videoId }) => (outcome === 'ok' && videoId ? [videoId] : []))
  for (const videoId of [...world.videos.keys(), ...made]) {
    const deletes = deletesOf(round, videoId)
    if (deletes.length === 0 && !observed.videos.has(videoId)) breaches.push(`video ${videoId} was lost`)
  }
  const deleted = of(round, 'delete').flatMap(({ outcome, videoIds }) => (outcome === 'ok' ? videoIds : []))
  for (const videoId of [...world.gone, ...deleted]) {
    if (observed.videos.has(videoId)) breaches.push(`video ${videoId} was deleted and is listed`)
  }
  for (const videoId of observed.answeredFor) breaches.push(`video ${videoId} was deleted and is answered for`)
  const unknown = new Set(of(round, 'create').flatMap(({ outcome, title }) => (outcome === 'info' ? [title] : [])))
  for (const { id, title } of observed.videos.values()) {
    if (world.videos.has(id) || made.includes(id) || unknown.delete(title)) continue
    breaches.push(`video ${id} (${title}) was never created`)
  }
  if (observed.count !== observed.videos.size)
    breaches.push(`the list counts ${observed.count} videos and has ${observed.videos.size}`)
  return breaches
}

/** A call on several things that had no answer was done whole or not at all (I9). */
function halfDone(round: Round): string[] {
  const { observed } = round
  const breaches: string[] = []
  for (const op of of(round, 'delete').filter(({ outcome }) => outcome === 'info')) {
    const isGone = (videoId: string) => !observed.videos.has(videoId)
    const byThis = op.videoIds.filter((videoId) => deletesOf(round, videoId).length === 1)
    if (byThis.some(isGone) && !byThis.every(isGone)) breaches.push(`a deletion happened by half: ${JSON.stringify(op)}`)
  }
  for (const op of of(round, 'tag').filter(({ how, outcome }) => how !== 'remove' && outcome === 'info')) {
    const pairs = op.videoIds.flatMap((videoId) => op.tags.map((tag) => ({ videoId, tag })))
    const isThere = ({ videoId, tag }: { videoId: string; tag: string }) => observed.videos.get(videoId)?.tags.includes(tag)
    // A backup may have been made before a video existed, or after it was deleted: then nothing is known of it.
    const isKnown = (videoId: string) =>
      round.world.videos.has(videoId) || of(round, 'create').some((made) => made.outcome === 'ok' && made.videoId === videoId)
    const others = (videoId: string) =>
      !isKnown(videoId) ||
      mayBeDeletedBefore(round, videoId, Number.POSITIVE_INFINITY) ||
      of(round, 'tag').some((other) => other !== op && other.videoIds.includes(videoId))
    const byThis = pairs.filter(({ videoId }) => !others(videoId))
    const isNew = byThis.filter(({ videoId, tag }) => !round.world.videos.get(videoId)?.tags.has(tag))
    if (isNew.some(isThere) && !isNew.every(isThere)) breaches.push(`a tag call happened by half: ${JSON.stringify(op)}`)
  }
  return breaches
}

/** An acknowledged upload is there, byte for byte; an unknown one is there whole or not at all. */
function sourceBreaches(round: Round): string[] {
  const { world, observed } = round
  return [...observed.videos.values()].flatMap(({ id, status }) => {
    const source = observed.sources.get(id)
    if ((status === 'PRE-Upload') !== (source === undefined)) return [`video ${id} is ${status} with the source ${source}`]
    const uploads = of(round, 'upload').filter(({ videoId }) => videoId === id)
    const accepted = uploads.filter(({ outcome }) => outcome === 'ok')
    if (accepted.length > 1) return [`video ${id} took two uploads`]
    const before = world.videos.get(id)?.sha256
    if (before !== undefined && before !== source) return [`the source of ${id} has changed`]
    const possible = accepted.length > 0 ? accepted : uploads.filter(({ outcome }) => outcome === 'info')
    if (before === undefined && source !== undefined && !possible.some(({ sha256 }) => sha256 === source))
      return [`the source of ${id} is not what was sent`]
    return accepted.length > 0 && source === undefined ? [`the upload of ${id} was lost`] : []
  })
}

/** What was acknowledged of a file that arrives in parts is never asked for again. */
function partBreaches(round: Round): string[] {
  const { world, observed } = round
  const [parts, finished] = [of(round, 'part'), new Set(of(round, 'upload').map(({ videoId }) => videoId))]
  const answers = [
    ...parts.flatMap((op) => (op.arrivedBytes === undefined ? [] : [{ ...op, arrivedBytes: op.arrivedBytes }])),
    ...Array.from(observed.arrivedBytes, ([videoId, arrivedBytes]) => ({
      videoId,
      arrivedBytes,
      start: Number.POSITIVE_INFINITY,
    })),
  ]
  const lost = answers.flatMap(({ videoId, arrivedBytes, start }) => {
    const acknowledged = parts.filter((op) => op.videoId === videoId && op.outcome === 'ok' && op.end < start)
    const mostBytes = Math.max(world.videos.get(videoId)?.arrivedBytes ?? 0, ...acknowledged.map(({ sentBytes }) => sentBytes))
    return arrivedBytes < mostBytes ? [`of ${videoId} ${mostBytes} bytes were acknowledged, and ${arrivedBytes} are there`] : []
  })
  const gone = parts.filter(({ videoId, outcome }) => {
    const isThere = observed.arrivedBytes.has(videoId) || observed.sources.has(videoId)
    return outcome === 'ok' && !isThere && !finished.has(videoId) && deletesOf(round, videoId).length === 0
  })
  return [...lost, ...gone.map(({ videoId }) => `what arrived of ${videoId} was lost`)]
}

/** While the clients called: none saw a deleted video, or missed one that was there. */
function readBreaches(round: Round): string[] {
  const { world } = round
  const breaches: string[] = []
  const made = of(round, 'create').flatMap((op) => (op.outcome === 'ok' && op.videoId ? [{ id: op.videoId, order: op.end }] : []))
  const there = [...Array.from(world.videos.keys(), (id) => ({ id, order: -1 })), ...made]
  for (const op of round.ops) {
    if (op.outcome !== 'ok') continue
    if (op.kind === 'key' && isDeletedBefore(round, op.videoId, op.start)) breaches.push(`deleted ${op.videoId} gave a key`)
    if (op.kind === 'redeem' && isDeletedBefore(round, op.videoId, op.start)) breaches.push(`deleted ${op.videoId} began to play`)
    if (op.kind === 'key' && op.key !== (round.observed.windowKeys.get(op.videoId) ?? op.key))
      breaches.push(`${op.videoId} gave a key that opens nothing`)
    if (op.kind !== 'list' && op.kind !== 'one') continue
    const seen = new Set((op.seen ?? []).map(({ id }) => id))
    for (const id of seen) if (isDeletedBefore(round, id, op.start)) breaches.push(`${op.kind} showed the deleted video ${id}`)
    if (op.kind === 'one') continue
    // What is deleted while a page is read is missing from it, full as it was.
    const goes = there.filter(({ id }) => !seen.has(id) && mayBeDeletedBefore(round, id, op.end))
    if (seen.size + goes.length >= PAGE) continue
    for (const { id, order } of there) {
      if (order < op.start && !seen.has(id) && !mayBeDeletedBefore(round, id, op.end)) breaches.push(`a list lacked video ${id}`)
    }
  }
  return breaches
}

/** What had no answer may be done later still: by a server that was suspended. */
type Written<T> = { value: T; start: number; end: number; isSure: boolean }
const endOf = ({ outcome, end }: Op) => (outcome === 'ok' ? end : Number.POSITIVE_INFINITY)

/** What a reader between two places may see: writes that may have begun, and that no certain later one had replaced. */
function possible<T>(writes: readonly Written<T>[], from: number, to: number): T[] {
  return writes
    .filter((write) => write.start < to)
    .filter((write) => !writes.some((later) => later.isSure && later.start > write.end && later.end < from))
    .map(({ value }) => value)
}

/** Titles and tags: the last acknowledged value, or one that came later or at the same time. */
function contentBreaches(round: Round): string[] {
  const { world, observed } = round
  const reads = [
    ...round.ops.flatMap((op) =>
      (op.kind === 'list' || op.kind === 'one') && op.outcome === 'ok'
        ? (op.seen ?? []).map((seen) => ({ seen, from: op.start, to: op.end }))
        : [],
    ),
    ...Array.from(observed.videos.values(), (seen) => ({ seen, from: Number.POSITIVE_INFINITY, to: Number.POSITIVE_INFINITY })),
  ]
  const writesOf = new Map<string, { titles: Written<string>[]; tags: (tag: string) => Written<boolean>[]; names: Set<string> }>()
  const known = (id: string) => {
    const found = writesOf.get(id) ?? collectWrites(round, id, world.videos.get(id))
    writesOf.set(id, found)
    return found
  }
  return reads.flatMap(({ seen, from, to }) => {
    const { titles, tags, names } = known(seen.id)
    const breaches: string[] = []
    if (titles.length > 0 && !possible(titles, from, to).includes(seen.title))
      breaches.push(`video ${seen.id} was seen with the title ${seen.title}`)
    for (const tag of new Set([...names, ...seen.tags])) {
      const has = seen.tags.includes(tag)
      if (!possible(tags(tag), from, to).includes(has))
        breaches.push(`video ${seen.id} was seen ${has ? 'with' : 'without'} the tag ${tag}`)
    }
    return breaches
  })
}

function collectWrites(round: Round, id: string, before: { title: string; tags: ReadonlySet<string> } | undefined) {
  const titles: Written<string>[] = before ? [{ value: before.title, start: -1, end: -1, isSure: true }] : []
  const calls = of(round, 'tag').filter(({ outcome, videoIds }) => outcome !== 'fail' && videoIds.includes(id))
  for (const op of round.ops) {
    const isIt = (op.kind === 'create' && op.videoId === id) || (op.kind === 'edit' && op.videoId === id)
    if (isIt && op.outcome !== 'fail')
      titles.push({ value: op.title, start: op.start, end: endOf(op), isSure: op.outcome === 'ok' })
  }
  const kept = new Map<string, Written<boolean>[]>()
  const tags = (tag: string) => {
    const found = kept.get(tag) ?? [
      { value: before?.tags.has(tag) ?? false, start: -1, end: -1, isSure: true },
      ...calls
        .filter(({ how, tags }) => how === 'replace' || tags.includes(tag))
        .map((op) => ({
          value: op.how !== 'remove' && op.tags.includes(tag),
          start: op.start,
          end: endOf(op),
          isSure: op.outcome === 'ok',
        })),
    ]
    kept.set(tag, found)
    return found
  }
  return { titles, tags, names: new Set([...(before?.tags ?? []), ...calls.flatMap((call) => call.tags)]) }
}

/** States go forward only, in the order in which they were seen. */
function orderBreaches(round: Round): string[] {
  const breaches: string[] = []
  const highest = new Map<string, { rank: number; end: number }[]>(
    Array.from(round.world.videos, ([id, { rank }]) => [id, [{ rank, end: -1 }]]),
  )
  const readers = round.ops.filter((op) => (op.kind === 'list' || op.kind === 'one') && op.outcome === 'ok')
  const looks = readers.flatMap((op) =>
    op.kind === 'list' || op.kind === 'one' ? (op.seen ?? []).map((seen) => ({ seen, start: op.start, end: op.end })) : [],
  )
  const last = Array.from(round.observed.videos.values(), (seen) => ({
    seen,
    start: Number.POSITIVE_INFINITY,
    end: Number.POSITIVE_INFINITY,
  }))
  for (const { seen, start, end } of [...looks.sort((a, b) => a.start - b.start), ...last]) {
    const rank = rankOf(seen.status)
    const earlier = highest.get(seen.id) ?? []
    if (earlier.some((look) => look.end < start && look.rank > rank))
      breaches.push(`video ${seen.id} went back to ${seen.status}`)
    if (!earlier.some((look) => look.rank >= rank)) highest.set(seen.id, [...earlier, { rank, end }])
  }
  return breaches
}

/** One OTP opens at most one session, the one in its viewer's answer. */
function otpBreaches(round: Round): string[] {
  const { world, observed } = round
  const breaches: string[] = []
  const issued = of(round, 'otp').flatMap(({ outcome, otp }) => (outcome === 'ok' && otp ? [otp] : []))
  for (const otp of [...issued, ...world.otps.keys()]) {
    const name = `the OTP ${otp.slice(0, 6)}…`
    if (!observed.otpHashes.has(hashOf(otp))) breaches.push(`${name} was lost`)
    const redeems = of(round, 'redeem').filter((op) => op.otp === otp)
    const opened = new Set(redeems.flatMap(({ session }) => session ?? []))
    const before = world.otps.get(otp)?.session
    if (before) opened.add(before)
    const sessions = observed.sessions.get(hashOf(otp)) ?? []
    if (opened.size > 1 || sessions.length > 1) breaches.push(`${name} opened two sessions`)
    const [only] = opened
    if (only && sessions[0] !== only) breaches.push(`the session of ${name} was lost`)
    // Who redeems while the video is being deleted may have opened a session, which the deletion ended before they got the answer.
    const mayHave = redeems.some((op) => op.outcome === 'info' || mayBeDeletedBefore(round, op.videoId, op.end))
    if (!only && sessions.length > 0 && !mayHave) breaches.push(`${name} opened a session without a request`)
  }
  return breaches
}

/** A key works until it is revoked, and never again. */
function keyBreaches(round: Round): string[] {
  const { world, observed } = round
  const made = of(round, 'make-key').flatMap(({ outcome, keyId }) => (outcome === 'ok' && keyId ? [keyId] : []))
  const revokes = of(round, 'revoke-key')
  const breaches = [...world.keys.keys(), ...made].flatMap((keyId) => {
    const own = revokes.filter((op) => op.keyId === keyId && op.outcome !== 'fail')
    const isRevoked = world.keys.get(keyId)?.isRevoked === true || own.some(({ outcome }) => outcome === 'ok')
    if (isRevoked && observed.workingKeys.has(keyId)) return [`the revoked key ${keyId} works`]
    return own.length === 0 && !isRevoked && !observed.workingKeys.has(keyId) ? [`the key ${keyId} was lost`] : []
  })
  const late = of(round, 'use-key').filter((use) =>
    revokes.some(({ keyId, outcome, end }) => keyId === use.keyId && outcome === 'ok' && end < use.start && use.outcome === 'ok'),
  )
  return [...breaches, ...late.map(({ keyId }) => `the revoked key ${keyId} worked`)]
}

/** What is known after a round: what was seen. */
export function remember(world: World, ops: readonly Op[], observed: Observation): void {
  const round = { world, ops, observed }
  const videos = new Map(of(round, 'upload').map(({ sha256, isVideo }) => [sha256, isVideo]))
  for (const videoId of [...world.videos.keys(), ...of(round, 'create').flatMap((op) => op.videoId ?? [])]) {
    if (observed.videos.has(videoId)) continue
    world.gone.add(videoId)
    world.videos.delete(videoId)
  }
  for (const { id, title, tags, status } of observed.videos.values()) {
    const sha256 = observed.sources.get(id)
    const arrivedBytes = observed.arrivedBytes.get(id) ?? 0
    const isVideo = world.videos.get(id)?.isVideo ?? (sha256 === undefined ? undefined : videos.get(sha256))
    world.videos.set(id, { title, tags: new Set(tags), rank: rankOf(status), sha256, isVideo, arrivedBytes })
  }
  for (const { otp, videoId } of of(round, 'otp')) if (otp) world.otps.set(otp, { videoId })
  for (const [otp, found] of world.otps) found.session = observed.sessions.get(hashOf(otp))?.[0] ?? found.session
  for (const { keyId, secret } of of(round, 'make-key')) if (keyId && secret) world.keys.set(keyId, { secret, isRevoked: false })
  for (const [keyId, key] of world.keys) key.isRevoked = !observed.workingKeys.has(keyId)
}
