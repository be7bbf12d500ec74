import { sql } from 'kysely'
import { expect, onTestFinished, test } from 'vitest'
import { insertAccount } from '../../../src/accounts/account-store.ts'
import { insertApiKey } from '../../../src/accounts/api-key-store.ts'
import { assertExternalIdsFree } from '../../../src/catalogue/own-fields.ts'
import { insertVideo } from '../../../src/catalogue/video-store.ts'
import { newId } from '../../../src/crypto/secret.ts'
import type { Database, Db } from '../../../src/db/database.ts'
import { findOtp, insertOtp, spendOtp } from '../../../src/playback/otp-store.ts'
import { insertSession } from '../../../src/playback/sessions/session-store.ts'
import { takeSlot } from '../../../src/playback/sessions/stream-slot-store.ts'
import { rounds } from '../../seeded-random.ts'
import { makeOtpRow, makeSessionRow } from '../bare-rows.ts'
import { connectSecondServer } from '../second-server.ts'
import { connectTo, openOwnPostgres } from './database.ts'

// Guarantees with any writers at the weakest isolation: one conditional statement and constraints settle these races.

const OTPS = rounds(200, 1_000)

test('O03: of two concurrent redeems of each of hundreds of OTPs, READ COMMITTED, exactly one spends it and gets a session', async () => {
  const database = await openOwnPostgres()
  const video = await addVideo(database)
  const hashes = Array.from({ length: OTPS }, (_, i) => hashOf(i))
  await Promise.all(hashes.map((hash) => database.write.append((tx) => insertOtp(tx, makeOtpRow({ ...video, hash })))))

  const rivals = [connectTo(database.url), connectTo(database.url)]
  const won = rivals.map(() => 0)
  await Promise.all(
    rivals.map(async (rival, mine) => {
      for (const hash of hashes) {
        const isMine = await rival.transaction().execute(async (tx) => {
          await findOtp(tx, hash)
          if (!(await spendOtp(tx, hash, 10))) return false
          await insertSession(tx, sessionOf(video, `${mine} ${hash.toString('hex')}`, hash))
          return true
        })
        if (isMine) won[mine] = (won[mine] ?? 0) + 1
      }
    }),
  )
  expect(won.reduce((sum, each) => sum + each)).toBe(OTPS)
  const { rows } = await sql`select count(*) as opened, count(distinct otp_hash) as apart from playback_session`.execute(
    database.db,
  )
  expect(rows).toEqual([{ opened: OTPS, apart: OTPS }])
})

test('O03: an OTP has one session, whatever was read before', async () => {
  const database = await openOwnPostgres()
  const video = await addVideo(database)
  const rivals = [connectTo(database.url), connectTo(database.url)]
  const outcomes = await Promise.allSettled(rivals.map((rival, i) => insertSession(rival, sessionOf(video, `s${i}`, hashOf(1)))))
  expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
  expect(outcomes.find(({ status }) => status === 'rejected')).toMatchObject({ reason: { code: '23505' } })
})

test('F-188: of two servers that give one externalId at the same time, one is refused with the conflict', async () => {
  const database = await openOwnPostgres()
  const { accountId } = await addVideo(database)
  const other = connectSecondServer(database.url)
  onTestFinished(() => other.close())
  for (let round = 0; round < 20; round++) {
    const externalId = `own ${round}`
    const outcomes = await Promise.allSettled(
      [database, other].map(({ write }) =>
        write(async (tx) => {
          await assertExternalIdsFree(tx, accountId, [externalId])
          await insertVideo(tx, accountId, { id: newId(), title: 'A video', uploadTimeS: 1, externalId })
        }),
      ),
    )
    const refused = outcomes.filter((outcome) => outcome.status === 'rejected')
    expect(refused.map(({ reason }) => [reason.kind, reason.message])).toEqual([
      ['conflict', expect.stringContaining(externalId)],
    ])
  }
})

const LIMIT = 3

test('a viewer never has more streams than the limit, and no session has two, under concurrent requests', async () => {
  const database = await openOwnPostgres()
  const video = await addVideo(database)
  const names = Array.from({ length: 10 }, (_, i) => `s${i}`)
  await database.write(async (tx) => {
    for (const [i, name] of names.entries()) await insertSession(tx, sessionOf(video, name, hashOf(i)))
  })
  const rivals = Array.from({ length: 4 }, () => connectTo(database.url))
  for (let round = 0; round < 30; round++) {
    const nowS = 100 * round // all slots of the previous round have lapsed
    const holders = await Promise.all(rivals.map((rival, i) => takeSlots(rival, video, rotated(names, i * 2), nowS)))
    const live = await database.db.selectFrom('streamSlot').select('sessionId').where('endsAtS', '>', nowS).execute()
    expect(live.length).toBeLessThanOrEqual(LIMIT)
    expect(new Set(holders.flat())).toEqual(new Set(live.map(({ sessionId }) => sessionId)))
    expect(new Set(holders.flat()).size).toBe(live.length)
  }
})

/** Requests a slot for each session. @returns the sessions that got one */
async function takeSlots(rival: Db, video: Video, names: readonly string[], nowS: number): Promise<string[]> {
  const holders: string[] = []
  for (const sessionId of names) {
    const claim = { sessionId, accountId: video.accountId, userId: 'viewer', limit: LIMIT }
    const isTaken = await takeSlot(rival, claim, nowS, nowS + 18).catch(isRejectedByTable)
    if (isTaken) holders.push(sessionId)
  }
  return holders
}

/** Another connection gave the same session its slot in between: `write` would run again, and find that out. */
function isRejectedByTable(error: unknown): boolean {
  if (error instanceof Error && 'code' in error && error.code === '23505') return false
  throw error
}

const rotated = <T>(list: readonly T[], by: number) => [...list.slice(by), ...list.slice(0, by)]

type Video = Awaited<ReturnType<typeof addVideo>>

async function addVideo({ write }: Pick<Database, 'write'>) {
  const video = { accountId: newId(), apiKeyId: newId(), videoId: newId() }
  const { accountId, apiKeyId, videoId } = video
  await write(async (tx) => {
    await insertAccount(tx, { id: accountId, name: 'a', createdAtS: 1, mayUpload: true, mayImport: true })
    const key = {
      id: apiKeyId,
      accountId,
      hash: hashOf(0),
      prefix: 'p',
      name: 'n',
      permissions: '[]',
      createdAtS: 1,
      expiresAtS: null,
    }
    await insertApiKey(tx, key)
    await insertVideo(tx, accountId, { id: videoId, title: 'A video', uploadTimeS: 1 })
    await tx.updateTable('video').set({ status: 'ready', generation: 1 }).where('id', '=', videoId).execute()
  })
  return video
}

function hashOf(number: number): Buffer {
  const hash = Buffer.alloc(32)
  hash.writeUInt32BE(number)
  return hash
}

const sessionOf = ({ accountId, videoId }: Video, id: string, otpHash: Buffer) =>
  makeSessionRow({ id, otpHash, accountId, videoId })
