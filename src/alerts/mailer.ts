import type { Logger } from 'pino'
import type { AlertMailConfig } from '../config/alert-mail.ts'
import type { Db } from '../db/database.ts'
import { Failure } from '../errors.ts'
import type { Claim, Claims } from '../jobs/claims.ts'
import { type Dispatcher, type Job, startDispatcher } from '../jobs/dispatcher.ts'
import { DAY_S } from '../time.ts'
import { beginAttempt, type DueMail, endAttempt, findDueMail, listAlertsOfMail } from './mail-store.ts'
import { MAX_MAILED, writeAlertMail, writeNotice } from './mail-text.ts'
import { sendMail } from './smtp.ts'

type MailerDeps = {
  db: Db
  claims: Pick<Claims, 'claimNext'>
  nowS: () => number
  log: Logger
}

/** After each attempt that failed. The last one is made within a day: later the alert is no news. */
const RETRY_DELAYS_S = [60, 300, 1_800, 7_200, 21_600, 36_000]
const MAX_ATTEMPTS = RETRY_DELAYS_S.length + 1
const POLL_INTERVAL_MS = 2_000

/** Sends mails as they become due, one after another. They are rows, so a restart resumes. */
export function startAlertMailer(deps: MailerDeps, config: AlertMailConfig): Pick<Dispatcher, 'stop'> {
  async function claim(onlyUrgent: boolean): Promise<Job | undefined> {
    if (onlyUrgent) return undefined // one is being sent
    const { db, claims, nowS } = deps
    const yesterday = Math.floor(nowS() / DAY_S) - 1
    return claims.claimNext({
      kind: 'mail',
      find: () => findDueMail(db, yesterday, { nowS: nowS(), maxAttempts: MAX_ATTEMPTS }),
      subjectOf: ({ id }) => id,
      begin: async (tx, mail) => ((await beginAttempt(tx, mail, nowS() + (retryDelayS(mail) ?? 0))) ? mail : undefined),
      start: (mail) => (claim, signal) => send(deps, config, { mail, claim, signal }),
    })
  }
  return startDispatcher({ slots: 1, claim, pollIntervalMs: POLL_INTERVAL_MS, log: deps.log })
}

/** How long it waits after the attempt that is due; undefined: that is the last. */
function retryDelayS({ attempts }: DueMail): number | undefined {
  return RETRY_DELAYS_S[attempts]
}

async function send(
  { db, nowS, log }: MailerDeps,
  config: AlertMailConfig,
  { mail, claim, signal }: { mail: DueMail; claim: Claim; signal: AbortSignal },
): Promise<void> {
  const { id, cause } = mail
  const { to, text } = await writeMail(db, config, mail)
  const message = { id: `${config.installation} ${id}`, signal }
  const sent = await sendMail({ ...config, to }, text, message).catch((error: unknown) => {
    if (error instanceof Failure) return error
    if (signal.aborted) return undefined
    throw error
  })
  if (!sent) return // the server is stopping, and the next start tries again
  if (sent instanceof Failure) {
    await claim.settle((tx) => endAttempt(tx, id, { sentAtS: null, problem: sent.message }))
    log.warn({ cause, reason: sent.message, retryAfterS: retryDelayS(mail) }, 'e-mail: not sent')
    return
  }
  if (sent.rejected.length > 0) log.warn({ cause, rejected: sent.rejected }, 'e-mail: recipients rejected')
  await claim.settle((tx) => endAttempt(tx, id, { sentAtS: nowS(), problem: null }))
  log.info({ cause }, 'e-mail: sent')
}

async function writeMail(db: Db, { installation, to }: AlertMailConfig, mail: DueMail) {
  const { cause, recipient, subject, text } = mail
  if (recipient !== null)
    return { to: [recipient], text: writeNotice(installation, { subject: subject ?? '', text: text ?? '' }) }
  return { to, text: writeAlertMail(installation, cause, await listAlertsOfMail(db, mail, MAX_MAILED + 1)) }
}
