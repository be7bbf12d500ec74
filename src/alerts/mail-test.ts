import { randomUUID } from 'node:crypto'
import type { AlertMailConfig } from '../config/alert-mail.ts'
import { Failure } from '../errors.ts'
import { writeTestMail } from './mail-text.ts'
import { sendMail, serverName } from './smtp.ts'

const TIMEOUT_MS = 60_000

/** Sends a mail as an alert would be sent. @throws Failure that names the setting to look at */
export async function sendTestMail(config: AlertMailConfig | undefined) {
  if (!config) throw new Failure('invalid', 'Set REELGATE_SMTP_URL and REELGATE_ALERT_TO, restart the server, and try again.')
  const { installation, to, from } = config
  const message = { id: randomUUID(), signal: AbortSignal.timeout(TIMEOUT_MS) }
  const { answer, rejected } = await sendMail(config, writeTestMail(installation), message)
  return { server: serverName(config), from, to, rejected, answer }
}
