import { randomBytes } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { Batches } from '../db/database.ts'
import { insertChallenge, removeChallenge } from './challenge-rows.ts'

/** How long a browser may take to sign a challenge: the person looks for a phone. */
export const CHALLENGE_LIFE_S = 300
/** More than people who sign in at the same time. In memory: a challenge that a restart forgets is asked for again. */
const MAX_CHALLENGES = 10_000

/** Challenges that browsers are signing. Each is valid once: for the person who adds a passkey, or for any who signs in. */
export type Challenges = {
  make(consoleUserId?: string): Promise<string>
  /** Spends a challenge. False: it was not made for this, has expired or was spent. */
  spend(challenge: string | undefined, consoleUserId?: string): Promise<boolean>
}

type ChallengesDeps = {
  /** Undefined: no other server can use the database. */
  batches: Batches | undefined
  servers?: { isShared(): boolean }
  nowS(): number
}

/** In memory while this server is alone; then in rows, since the signed one may come to another server. */
export function createChallenges({ batches, servers, nowS }: ChallengesDeps): Challenges {
  const inMemory = createChallengesInMemory()
  const inRows = batches && createChallengesInRows(batches, nowS)
  const current = () => (inRows && servers?.isShared() ? inRows : inMemory)
  return {
    make: (consoleUserId) => current().make(consoleUserId),
    spend: (challenge, consoleUserId) => current().spend(challenge, consoleUserId),
  }
}

const newChallenge = () => randomBytes(32).toString('base64url')

function createChallengesInMemory(): Challenges {
  const open = new LRUCache<string, { consoleUserId: string | undefined }>({
    ...{ max: MAX_CHALLENGES, ttl: CHALLENGE_LIFE_S * 1000 },
  })
  return {
    async make(consoleUserId) {
      const challenge = newChallenge()
      open.set(challenge, { consoleUserId })
      return challenge
    },
    async spend(challenge = '', consoleUserId) {
      const found = open.get(challenge)
      open.delete(challenge)
      return found !== undefined && found.consoleUserId === consoleUserId
    },
  }
}

function createChallengesInRows({ transaction }: Batches, nowS: () => number): Challenges {
  return {
    async make(consoleUserId = '') {
      const challenge = newChallenge()
      await transaction(async (tx) => {
        await insertChallenge(tx, { challenge, consoleUserId, endsAtS: nowS() + CHALLENGE_LIFE_S }, nowS())
        return { result: undefined, isDurable: false }
      })
      return challenge
    },
    async spend(challenge = '', consoleUserId = '') {
      const found = await transaction(async (tx) => ({ result: await removeChallenge(tx, challenge), isDurable: true }))
      return found !== undefined && found.consoleUserId === consoleUserId && found.endsAtS > nowS()
    },
  }
}
