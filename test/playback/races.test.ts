import { expect, test } from 'vitest'
import { admitRequest } from '../../src/playback/sessions/admit-request.ts'
import type { Operation, SignedValues } from '../../src/playback/sessions/proof.ts'
import { readProof } from '../../src/playback/sessions/proof.ts'
import { restoreStreamSlots } from '../../src/playback/sessions/stream-slot.ts'
import { type Chance, newChance, rounds } from '../seeded-random.ts'
import type { Viewer } from '../viewer.ts'
import { openBarePlayback, outcomeOf } from './playback-deps.ts'

// Thousands of requests in random order, on a clock that is moved.

/** A request as it could be recorded between browser and server. */
type Recorded = { header: string; sessionId: string; signed: Omit<SignedValues, 'session'> }

const pick = <T>(chance: Chance, items: readonly T[]): T => {
  const item = items[Math.floor(chance.between(0, items.length))]
  if (item === undefined) throw new Error('there is nothing to pick from')
  return item
}

test('of 10 000 replays of recorded requests none is admitted: repeated, changed, of another session, later, or after a restart', async () => {
  const chance = newChance('replays')
  const playback = await openBarePlayback()
  const viewers = await Promise.all(Array.from({ length: 8 }, () => playback.newPlayingViewer()))
  const operations = ['playlist', 'key', 'file', 'beat', 'leave'] as const
  const recorded: Recorded[] = []
  const outcomes = new Map<string, number>()
  for (let n = 0; n < 10_000; n++) {
    if (n % 100 === 0) await recordRequests()
    if (n % 1000 === 999) playback.crash()
    if (n % 400 === 399) playback.passS(chance.between(1, 60))
    const outcome = await outcomeOf(admit(changed(pick(chance, recorded))))
    outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
  }
  expect([...outcomes.keys()].sort()).toEqual(['not-allowed', 'proof-replayed', 'proof-stale'])

  /** What honest browsers send and are answered. */
  async function recordRequests() {
    for (const viewer of viewers) {
      const operation: Operation = pick(chance, operations)
      const request = { operation, argument: operation === 'key' ? '0' : '', body: Buffer.from(operation === 'beat' ? '{}' : '') }
      const sessionId = viewer.state.session
      const nonce = playback.deps.nonces.current()
      const { argument, body } = request
      const parts = { operation, session: sessionId, argument: argument || undefined, body: body.toString(), nonce }
      const entry = { header: viewer.proof(parts), sessionId, signed: request }
      expect(await outcomeOf(admit(entry))).toBe('allowed')
      recorded.push(entry)
    }
  }

  function changed(entry: Recorded): Recorded {
    const { header, sessionId, signed } = entry
    const [version = '', pageId = '', seq = '', nonce = '', tag = ''] = header.split('.')
    const other = pick(chance, recorded)
    const [, otherPage = '', otherSeq = '', otherNonce = '', otherTag = ''] = other.header.split('.')
    const join = (...parts: string[]) => parts.join('.')
    return pick<() => Recorded>(chance, [
      () => entry,
      () => ({ ...entry, sessionId: other.sessionId === sessionId ? 'A'.repeat(22) : other.sessionId }),
      () => ({ ...entry, signed: { ...signed, operation: signed.operation === 'key' ? 'playlist' : 'key' } }),
      () => ({ ...entry, signed: { ...signed, argument: `${signed.argument}1` } }),
      () => ({ ...entry, signed: { ...signed, body: Buffer.from(`${signed.body} `) } }),
      () => ({ ...entry, header: join(version, pageId, String(Number(seq) + 1000), nonce, tag) }),
      () => ({ ...entry, header: join(version, otherPage === pageId ? 'P'.repeat(22) : otherPage, seq, nonce, tag) }),
      () => ({ ...entry, header: join(version, pageId, seq, playback.deps.nonces.current(), otherTag) }),
      () => ({ ...entry, header: join(version, pageId, otherSeq, otherNonce, tag) }),
    ])()
  }

  function admit({ header, sessionId, signed }: Recorded) {
    const visit = { address: pick(chance, ['192.0.2.1', '198.51.100.1', '2001:db8::1']), userAgent: '' }
    return admitRequest(playback.deps, { sessionId, proof: readProof(header), signed, visit, isFlooding: false })
  }
})

test('P10: of screens that redeem, play, ask for keys, leave and come back at the same time never more than three play, also over restarts', async () => {
  const chance = newChance('racing screens')
  const LIMIT = 3
  const options = { userId: 'ann', streamLimit: LIMIT }
  const playback = await openBarePlayback({ durationS: 36_000 }) // no window is asked for twice
  const viewers: Viewer[] = []
  /** Until when each session has its slot, and when it last got a new key. */
  const slots = new Map<string, number>()
  const newKeys = new Map<string, number>()
  let window = 0

  for (let round = 0; round < rounds(60, 900); round++) {
    await Promise.all([1, 2].map(async () => viewers.push(await playback.newPlayingViewer(options))))
    const screens = viewers.slice(-12)
    const kind = pick(chance, ['play', 'play', 'keys', 'leave', 'restart'] as const)
    if (kind === 'restart') await restart()
    else await Promise.all(Array.from({ length: 14 }, () => act(kind, pick(chance, screens))))
    if (chance.next() < 0.3) playback.passS(pick(chance, [1, 5, 17, 18, 40]))
    expect(countPlaying()).toBeLessThanOrEqual(LIMIT)
  }
  playback.passS(20) // a lease at most is lost for a screen that went without a word
  expect(await outcomeOf(playback.beat(await playback.newPlayingViewer(options)))).toBe('allowed')

  function countPlaying(): number {
    for (const [session, untilS] of slots) if (untilS <= playback.nowS()) slots.delete(session)
    return slots.size
  }

  async function act(kind: 'play' | 'keys' | 'leave', viewer: Viewer): Promise<void> {
    const { session } = viewer.state
    if (kind === 'leave') {
      await playback.leave(viewer)
      const keptUntilS = (newKeys.get(session) ?? Number.NEGATIVE_INFINITY) + 18
      const untilS = slots.get(session)
      if (untilS !== undefined) slots.set(session, Math.min(untilS, keptUntilS))
      return
    }
    const isNew = kind === 'keys'
    const outcome = await outcomeOf(isNew ? playback.key(viewer, window++) : playback.beat(viewer))
    if (outcome !== 'allowed') return expect(outcome).toBe('stream-limit')
    slots.set(session, playback.nowS() + 18)
    if (isNew) newKeys.set(session, playback.nowS())
  }

  async function restart(): Promise<void> {
    const savedAtStartS = playback.nowS()
    playback.crash()
    newKeys.clear() // a server that is killed forgets them, and every slot gets a whole lease anyway
    await restoreStreamSlots({ write: playback.write, clock: { nowS: playback.nowS, savedAtStartS } })
    for (const session of slots.keys()) slots.set(session, playback.nowS() + 18)
  }
})
