import { LRUCache } from 'lru-cache'
import type { Logger } from 'pino'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { newToken } from '../crypto/secret.ts'
import type { Db } from '../db/database.ts'
import type { LtiGradeRow, LtiPlatformRow } from '../db/tables.ts'
import { Failure } from '../errors.ts'
import type { Claim, Claims } from '../jobs/claims.ts'
import { type Dispatcher, startDispatcher } from '../jobs/dispatcher.ts'
import type { Signals } from '../signals/signals.ts'
import type { RestoredCopy } from '../webhooks/restored-copy.ts'
import { retryDelayS } from '../webhooks/schedule.ts'
import { askPlatform } from './ask-platform.ts'
import { openSubject, scoresUrl, toScore } from './grade.ts'
import { findDueScore, findGrade, updateGrade } from './grade-store.ts'
import { SCORE_SCOPE } from './message.ts'
import type { PlatformDeps } from './platform.ts'
import { findPlatform } from './platform-store.ts'
import { signForPlatform } from './tool-key.ts'
import type { RecordTrouble } from './trouble.ts'

// Scores on their way to grade books: Assignment and Grade Services 2.0, with a token as the security framework says (section 4.1).
// What is due is in the rows, so a restart resumes.

type ScoreDeps = PlatformDeps & {
  wallNowS: () => number
  claims: Pick<Claims, 'claimNext'>
  signals: Pick<Signals, 'on'>
  copy: Pick<RestoredCopy, 'isPaused'>
  recordTrouble: RecordTrouble
  log: Logger
}

const MAX_ATTEMPTS_NOW = 4
const POLL_INTERVAL_MS = 2_000
const ASSERTION_LIFE_S = 300
/** A token is used no longer than this before it ends. */
const TOKEN_MARGIN_S = 60
const MAX_TOKENS = 1_000

const TokenReply = Type.Object(
  { access_token: Type.String({ pattern: '^[!-~]+$', maxLength: 8192 }), expires_in: Type.Optional(Type.Number()) },
  { additionalProperties: true },
)

type AccessTokens = LRUCache<string, { token: string; endsAtS: number }>

/** Sends scores as they become due, retried as webhooks are. */
export function startScoreSender(deps: ScoreDeps): Pick<Dispatcher, 'stop'> {
  const { db, claims, signals, nowS, copy, log } = deps
  const tokens: AccessTokens = new LRUCache({ max: MAX_TOKENS })

  async function claim(onlyUrgent: boolean) {
    if (onlyUrgent || copy.isPaused()) return undefined
    return claims.claimNext({
      kind: 'score',
      find: () => findDueScore(db, nowS()),
      subjectOf: ({ id }) => id,
      begin: (tx, found) => beginAttempt(tx, found.id, nowS()),
      start: (attempt) => (claim, signal) => send(deps, tokens, { ...attempt, claim, signal }),
    })
  }

  const follows = { signals, work: 'score' } as const
  return startDispatcher({ slots: MAX_ATTEMPTS_NOW, claim, pollIntervalMs: POLL_INTERVAL_MS, follows, log })
}

type Attempt = { grade: LtiGradeRow; platform: LtiPlatformRow }

/** As it is now: the score may have risen since it was found, and the platform may be gone. */
async function beginAttempt(tx: Db, id: string, nowS: number): Promise<Attempt | undefined> {
  const grade = await findGrade(tx, id)
  const platform = grade && (await findPlatform(tx, grade.platformId))
  if (!grade || grade.dueAtS === null || grade.dueAtS > nowS || !platform) return undefined
  await updateGrade(tx, id, { attempts: grade.attempts + 1 })
  return { platform, grade: { ...grade, attempts: grade.attempts + 1 } }
}

type Sending = Attempt & { claim: Claim; signal: AbortSignal }

async function send(deps: ScoreDeps, tokens: AccessTokens, { grade, platform, claim, signal }: Sending): Promise<void> {
  const { nowS, wallNowS } = deps
  const timestampMs = Math.max(wallNowS() * 1000, grade.sentAtMs + 1) // platforms refuse one that is not newer
  const problem = await sendScore(deps, tokens, { grade, platform, timestampMs, signal }).catch((error: unknown) => {
    if (signal.aborted || !(error instanceof Failure)) throw error
    return error.message
  })
  await claim.settle(async (tx) => {
    const current = await findGrade(tx, grade.id)
    if (!current) return
    const risenAtS = current.tenths > grade.tenths ? nowS() : null
    if (problem === undefined) {
      const sent = { sentTenths: grade.tenths, sentAtMs: timestampMs, problem: null, attempts: 0 }
      return updateGrade(tx, grade.id, { ...sent, dueAtS: risenAtS })
    }
    const delayS = retryDelayS(grade.attempts)
    const next = delayS === undefined ? { dueAtS: risenAtS, attempts: 0 } : { dueAtS: nowS() + delayS }
    return updateGrade(tx, grade.id, { ...next, problem, sentAtMs: timestampMs })
  })
  if (problem !== undefined) await deps.recordTrouble(platform, problem)
}

/** @returns why it was not accepted; undefined: it was @throws Failure in words; `signal.reason` */
async function sendScore(
  deps: ScoreDeps,
  tokens: AccessTokens,
  { grade, platform, timestampMs, signal }: Attempt & { timestampMs: number; signal: AbortSignal },
): Promise<string | undefined> {
  const { masterKey, outbound } = deps
  const token = await getToken(deps, tokens, platform, signal)
  const { status } = await askPlatform(outbound, {
    accountId: platform.accountId,
    url: scoresUrl(grade.lineItem),
    method: 'POST',
    headers: { 'Content-Type': 'application/vnd.ims.lis.v1.score+json', Authorization: `Bearer ${token}` },
    body: JSON.stringify(toScore(grade, { subject: openSubject(masterKey, grade), timestampMs })),
    signal,
  })
  if (status === 401) tokens.delete(platform.id)
  return status >= 200 && status <= 299 ? undefined : `The platform did not take a score: it answered ${status}.`
}

async function getToken(
  { masterKey, outbound, nowS, wallNowS }: ScoreDeps,
  tokens: AccessTokens,
  platform: LtiPlatformRow,
  signal: AbortSignal,
): Promise<string> {
  const { id, accountId, clientId, tokenUrl } = platform
  const known = tokens.get(id)
  if (known && known.endsAtS > nowS()) return known.token
  const claims = { iss: clientId, sub: clientId, aud: tokenUrl, jti: newToken() }
  const assertion = await signForPlatform(masterKey, platform, claims, { nowS: wallNowS(), lifeS: ASSERTION_LIFE_S })
  const form = new URLSearchParams({
    grant_type: 'client_credentials',
    client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
    client_assertion: assertion,
    scope: SCORE_SCOPE,
  })
  const headers = { 'Content-Type': 'application/x-www-form-urlencoded' }
  const { status, body } = await askPlatform(outbound, {
    ...{ accountId, url: tokenUrl, method: 'POST', headers, body: form.toString(), signal },
  })
  if (status !== 200 || !Value.Check(TokenReply, body))
    throw new Failure('unavailable', `The platform gave no token for scores: it answered ${status}.`)
  const lifeS = Math.min(3600, body.expires_in ?? 0) - TOKEN_MARGIN_S
  tokens.set(id, { token: body.access_token, endsAtS: nowS() + lifeS })
  return body.access_token
}
