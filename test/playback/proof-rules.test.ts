import { createECDH, createHash, createHmac, createSecretKey } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { parseMasterKey } from '../../src/crypto/master-key.ts'
import { isSignedMediaPath, mediaSignature, signedMediaPath } from '../../src/playback/media/media-path.ts'
import { startPlaybackClock } from '../../src/playback/playback-clock.ts'
import { acceptSeq, createNonces, isSignedWith, newReplayWindow, readProof } from '../../src/playback/sessions/proof.ts'
import { deriveProofKey } from '../../src/playback/sessions/server-key.ts'
import { createTickets } from '../../src/playback/ticket.ts'
import { openDatabaseAt } from '../db/database.ts'
import { type Location, makeLocation } from '../installation-folder.ts'
import { readRows } from '../rows.ts'

// The rules below the routes, each a function of values.

const masterKey = parseMasterKey(Buffer.alloc(32, 3))

describe('the numbers of a page', () => {
  /** What the window represents, written as a set of all that was accepted. */
  function newOracle() {
    const accepted = new Set<number>()
    let highest = 0
    return (seq: number) => {
      if (accepted.has(seq) || seq < highest - 32) return false
      accepted.add(seq)
      highest = Math.max(highest, seq)
      return true
    }
  }

  const near = fc.integer({ min: 1, max: 120 })
  const jumps = fc.oneof({ weight: 8, arbitrary: near }, { weight: 1, arbitrary: fc.integer({ min: 1, max: 9_999_999_999 }) })

  test.each([
    ['close together', fc.array(near, { maxLength: 400 })],
    ['with jumps', fc.array(jumps, { maxLength: 400 })],
  ])('%s: each is accepted once, and none that is more than 32 below the highest', (_, sequences) => {
    fc.assert(
      fc.property(sequences, (numbers) => {
        const window = newReplayWindow()
        const oracle = newOracle()
        for (const seq of numbers) expect([seq, acceptSeq(window, seq)]).toEqual([seq, oracle(seq)])
      }),
      { numRuns: 2000 },
    )
  })

  test('any order of a page’s next 33 numbers is accepted whole', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 9_999_999_900 }),
        fc.shuffledSubarray(Array.from({ length: 33 }, (_, i) => i + 1)),
        (start, order) => {
          const window = { highest: start, seen: -1 }
          expect(order.every((step) => acceptSeq(window, start + step))).toBe(true)
          expect(order.some((step) => acceptSeq(window, start + step))).toBe(false)
        },
      ),
    )
  })
})

describe('a nonce', () => {
  test('is 24 characters, one for everybody within 30 seconds, valid for 90 to 120', () => {
    let nowS = 1_800_000_000
    const nonces = createNonces(masterKey, () => nowS)
    const nonce = nonces.current()
    expect(nonce).toMatch(/^[\w-]{24}$/)
    nowS += 29
    expect(nonces.current()).toBe(nonce)
    nowS += 1
    expect(nonces.current()).not.toBe(nonce)
    nowS = 1_800_000_000 + 119
    expect(nonces.isFresh(nonce)).toBe(true)
    nowS += 1
    expect(nonces.isFresh(nonce)).toBe(false)
  })

  test('of another start, of a time to come, or changed in any bit is none', () => {
    const nowS = () => 1_800_000_000
    const nonces = createNonces(masterKey, nowS)
    const nonce = nonces.current()
    expect(createNonces(masterKey, nowS).isFresh(nonce)).toBe(false)
    expect(nonces.isFresh(createNonces(masterKey, () => nowS() + 30).current())).toBe(false)
    for (let bit = 0; bit < 18 * 8; bit++) {
      const bytes = Buffer.from(nonce, 'base64url')
      bytes[bit >> 3] = (bytes[bit >> 3] ?? 0) ^ (1 << (bit & 7))
      expect([bit, nonces.isFresh(bytes.toString('base64url'))]).toEqual([bit, false])
    }
    expect(nonces.isFresh('_'.repeat(24))).toBe(false)
  })
})

describe('a proof key', () => {
  const pair = (first: number) => {
    const ecdh = createECDH('prime256v1')
    ecdh.setPrivateKey(Buffer.from(Array.from({ length: 32 }, (_, i) => first + i)))
    return ecdh
  }

  test('and its tag are the protocol’s vector', () => {
    const key = deriveProofKey(pair(0x01), pair(0x21).getPublicKey())
    expect(key?.export().toString('hex')).toBe('743d92ebb9c9aaf49e50123b06c5518451c9155defd7e9b6389c79192727bd40')
    const tag = 'ZKZwJkH7WUz0ecLq-z2nNdbH5UE0Zz3yTQ_vvKJrUbM'
    const proof = readProof(`2.${'B'.repeat(21)}A.12.${'C'.repeat(24)}.${tag}`)
    const signed = { operation: 'key', session: 'A'.repeat(22), argument: '7', body: Buffer.alloc(0) } as const
    expect(key && isSignedWith(key, proof, signed)).toBe(true)
  })

  test('cannot be agreed on with what is not a point of the curve', () => {
    const point = pair(0x21).getPublicKey()
    const offCurve = Buffer.from(point)
    offCurve[64] = (offCurve[64] ?? 0) ^ 1
    const zeroPoint = Buffer.concat([Buffer.from([4]), Buffer.alloc(64)])
    const compressed = Buffer.from(pair(0x21).getPublicKey(null, 'compressed'))
    const hybrid = Buffer.from(pair(0x21).getPublicKey(null, 'hybrid'))
    for (const bad of [offCurve, zeroPoint, compressed, hybrid, Buffer.alloc(65), Buffer.alloc(1), Buffer.alloc(0)])
      expect(deriveProofKey(pair(0x01), bad)).toBe(undefined)
  })

  test('of each browser and of each server key is another', () => {
    const keys = [
      [0x01, 0x21],
      [0x01, 0x41],
      [0x61, 0x21],
    ].map(([server = 0, browser = 0]) => deriveProofKey(pair(server), pair(browser).getPublicKey())?.export().toString('hex'))
    expect(new Set(keys).size).toBe(3)
  })
})

describe('a tag', () => {
  const proofKey = createSecretKey(Buffer.alloc(32, 5))
  const signed = { operation: 'beat', session: 'S'.repeat(22), argument: '', body: Buffer.from('{}') } as const
  const lines = `reelgate-proof-2\nbeat\n${signed.session}\n-\n${'P'.repeat(22)}\n7\n${'N'.repeat(24)}\n${createHash('sha256').update('{}').digest('base64url')}`
  const tag = createHmac('sha256', proofKey).update(lines).digest('base64url')
  const proof = readProof(`2.${'P'.repeat(22)}.7.${'N'.repeat(24)}.${tag}`)

  test('is over eight lines, joined by line feeds, as the protocol writes them', () => {
    expect(isSignedWith(proofKey, proof, signed)).toBe(true)
    for (const changed of [
      { operation: 'leave' },
      { session: 's'.repeat(22) },
      { argument: '0' },
      { body: Buffer.from('{} ') },
      { body: Buffer.alloc(0) },
    ] as const)
      expect(isSignedWith(proofKey, proof, { ...signed, ...changed })).toBe(false)
    for (const changed of [{ seq: 8 }, { pageId: 'p'.repeat(22) }, { nonce: 'n'.repeat(24) }])
      expect(isSignedWith(proofKey, { ...proof, ...changed }, signed)).toBe(false)
  })

  test('with any one character changed is false', () => {
    for (let location = 0; location < tag.length; location++) {
      const changed = `${tag.slice(0, location)}${tag[location] === 'A' ? 'B' : 'A'}${tag.slice(location + 1)}`
      expect(isSignedWith(proofKey, { ...proof, tag: changed }, signed)).toBe(false)
    }
  })

  test('under another key is false', () => {
    expect(isSignedWith(createSecretKey(Buffer.alloc(32, 6)), proof, signed)).toBe(false)
  })

  test('header: whatever text comes, it is read whole or refused', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.stringMatching(/^2\.[\w-]{22}\.\d{1,11}\.[\w-]{24}\.[\w-]{43}$/)), (header) => {
        try {
          const { pageId, seq, nonce, tag } = readProof(header)
          expect(header.startsWith(`2.${pageId}.${seq}.${nonce}.`)).toBe(true)
          expect([tag.length, seq >= 1, seq <= 9_999_999_999]).toEqual([43, true, true])
        } catch (error) {
          expect(error).toMatchObject({ code: 'not-allowed' })
        }
      }),
    )
  })
})

describe('a signed media path', () => {
  const video = { videoId: '0123456789abcdef'.repeat(2), generation: 1 }

  test('is the protocol’s vector, so that nginx alone can check it', () => {
    expect(mediaSignature('0123456789abcdef'.repeat(2), 1_764_000_000, video)).toBe('9TYDSiT212A0mo7O-eWH1w')
  })

  test('is one for all viewers of an hour, and lives one hour at least, two at most', () => {
    const hourS = 3600
    const at = (nowS: number) => signedMediaPath(['secret'], video, 90_000 * hourS + nowS)
    expect(new Set([1, 2, hourS / 2, hourS].map(at)).size).toBe(1)
    expect(at(hourS + 1)).not.toBe(at(hourS))
    expect(at(1)).toMatch(new RegExp(`^media/${90_002 * hourS}/[\\w-]{22}/${video.videoId}/1$`))
  })

  test('is believed until its end, for its video, generation and time alone', () => {
    const path = { exp: 1000, sig: mediaSignature('secret', 1000, video), ...video }
    expect(isSignedMediaPath(['secret'], path, 999)).toBe(true)
    expect(isSignedMediaPath(['secret'], path, 1000)).toBe(false)
    for (const changed of [{ exp: 1001 }, { generation: 2 }, { videoId: 'f'.repeat(32) }, { sig: 'A'.repeat(22) }, { sig: '' }]) {
      expect(isSignedMediaPath(['secret'], { ...path, ...changed }, 999)).toBe(false)
    }
    expect(isSignedMediaPath(['other'], path, 999)).toBe(false)
  })
})

test('a page’s ticket names the embedding host for a day; a changed one names none', () => {
  let nowS = 1_800_000_000
  const tickets = createTickets(masterKey, () => nowS)
  const ticket = tickets.issue('https://school.example:8443/lesson?who=ann')
  expect(tickets.readHost(ticket)).toBe('school.example:8443')
  expect(ticket).not.toContain('ann')
  expect(tickets.readHost(tickets.issue(undefined))).toBe('-')
  for (const bad of [
    ticket.replace('school', 'public'),
    ticket.replace('1800000000', '1800000001'),
    ticket.slice(0, -1),
    `${ticket}x`,
    '',
    '..',
  ]) {
    expect(tickets.readHost(bad)).toBeUndefined()
  }
  expect(createTickets(parseMasterKey(Buffer.alloc(32, 4)), () => nowS).readHost(ticket)).toBeUndefined()
  nowS += 24 * 3600 - 1
  expect(tickets.readHost(ticket)).toBe('school.example:8443')
  nowS += 1
  expect(tickets.readHost(ticket)).toBeUndefined()
})

describe('O06: the playback clock', () => {
  async function openClock(wallNowS: () => number, before?: Location, serverClockS?: () => Promise<number>) {
    const location = before ?? (await makeLocation())
    if (!before) onTestFinished(location.remove)
    const database = await openDatabaseAt(location)
    const clock = await startPlaybackClock({ ...database, serverClockS }, wallNowS)
    const stop = async () => {
      await clock.stop()
      await database.close()
    }
    return { clock, stop, location }
  }

  test('is not moved by a step of the wall clock, forward or back', async () => {
    let wallS = 1_800_000_000
    const { clock, stop } = await openClock(() => wallS)
    for (const stepS of [3600, -7200, 10 ** 9]) {
      wallS += stepS
      expect(clock.nowS() - 1_800_000_000).toBeLessThan(60)
      expect(clock.nowS()).toBeGreaterThanOrEqual(1_800_000_000)
    }
    await stop()
  })

  test('is the database’s where that has one, however far off the server’s own is, and never goes back', async () => {
    const first = await openClock(
      () => 1_800_003_600,
      undefined,
      async () => 1_800_000_000,
    )
    expect(first.clock.nowS() - 1_800_000_000).toBeLessThan(60)
    const reachedS = first.clock.nowS()
    await first.stop()
    const back = await openClock(
      () => 1_799_996_400,
      first.location,
      async () => 1_799_990_000,
    )
    expect(back.clock.nowS()).toBeGreaterThanOrEqual(reachedS)
    expect(back.clock.nowS() - reachedS).toBeLessThan(60)
    await back.stop()
  })

  test('never goes back over a restart, and follows a wall clock that is ahead', async () => {
    const first = await openClock(() => 1_800_000_000)
    const reachedS = first.clock.nowS()
    await first.stop()
    const back = await openClock(() => 1_700_000_000, first.location)
    expect(back.clock.nowS()).toBeGreaterThanOrEqual(reachedS)
    expect(back.clock.nowS() - reachedS).toBeLessThan(60)
    await back.stop()
    const ahead = await openClock(() => 1_900_000_000, first.location)
    expect(ahead.clock.nowS()).toBeGreaterThanOrEqual(1_900_000_000)
    await ahead.stop()
  })

  test('is saved every five seconds, so that a crash costs no more', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] })
    onTestFinished(() => void vi.useRealTimers())
    const { clock, stop, location } = await openClock(() => 1_800_000_000)
    await vi.advanceTimersByTimeAsync(60_000)
    const saved = () => readRows<{ value: string }>(location, `select value from setting where name = 'playback-clock'`)[0]
    await expect.poll(() => clock.nowS() - Number(saved()?.value)).toBeLessThanOrEqual(5)
    await stop()
  })
})
