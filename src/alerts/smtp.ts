import { createHash } from 'node:crypto'
import type { AlertMailConfig } from '../config/alert-mail.ts'
import { errorCode, Failure } from '../errors.ts'
import type { MailText } from './mail-text.ts'

// The mail server is named by the operator, like the database: it may be on this machine or its network, and what owners' URLs may
// reach (src/outbound) does not apply to it.

const CONNECT_TIMEOUT_MS = 10_000
const ANSWER_TIMEOUT_MS = 30_000

type SentMail = {
  answer: string
  /** Recipients that it did not accept, while it accepted others. */
  rejected: readonly string[]
}

/**
 * Sends one mail.
 * @param id the same for repetitions of a mail, by which mail programs recognize them
 * @throws Failure `unavailable` that names the setting to look at; `signal.reason` when it is aborted
 */
export async function sendMail(
  config: AlertMailConfig,
  { subject, text }: MailText,
  { id, signal }: { id: string; signal: AbortSignal },
): Promise<SentMail> {
  const transport = await openTransport(config)
  const { to, from } = config
  const messageId = `<${createHash('sha256').update(id).digest('hex').slice(0, 32)}@${from.split('@')[1]}>`
  const headers = { 'Auto-Submitted': 'auto-generated' }
  try {
    const sent = await transport.sendMail({ from, to: [...to], subject, text, messageId, headers, signal })
    return { answer: sent.response, rejected: sent.rejected }
  } catch (error) {
    signal.throwIfAborted()
    throw explain(config, error)
  } finally {
    transport.close()
  }
}

/** Connects and signs in, and sends nothing. @throws Failure that names the setting to look at */
export async function checkMailServer(config: AlertMailConfig): Promise<void> {
  const transport = await openTransport(config)
  try {
    await transport.verify()
  } catch (error) {
    throw explain(config, error)
  } finally {
    transport.close()
  }
}

export const serverName = ({ host, port }: AlertMailConfig) => `${host.includes(':') ? `[${host}]` : host}:${port}`

/** Loaded only where mails are sent. */
async function openTransport({ host, port, security, login }: AlertMailConfig) {
  const { createTransport } = await import('nodemailer')
  return createTransport({
    ...{ host, port, secure: security === 'tls', requireTLS: security === 'starttls', ignoreTLS: security === 'none' },
    ...(login ? { auth: login, forceAuth: true } : {}),
    ...{ connectionTimeout: CONNECT_TIMEOUT_MS, dnsTimeout: CONNECT_TIMEOUT_MS },
    ...{ greetingTimeout: ANSWER_TIMEOUT_MS, socketTimeout: ANSWER_TIMEOUT_MS },
    ...{ disableFileAccess: true, disableUrlAccess: true },
  })
}

function explain(config: AlertMailConfig, error: unknown): Failure {
  if (!(error instanceof Error)) throw error
  const said = 'response' in error && typeof error.response === 'string' ? error.response : error.message
  return new Failure(
    'unavailable',
    withoutPassword(`${remedyFor(config, errorCode(error), said)} (${said.trim().slice(0, 300)})`, config),
    {
      cause: withoutPassword(error.message, config),
    },
  )
}

function remedyFor(config: AlertMailConfig, code: string, said: string): string {
  const server = serverName(config)
  if (/certificate|self.signed|altname/i.test(said))
    return `REELGATE_SMTP_URL: the certificate of ${server} is not accepted. Use the name that is in it; NODE_EXTRA_CA_CERTS adds an authority of your own.`
  if (code === 'EDNS') return `REELGATE_SMTP_URL: the host ${config.host} was not found. Correct the name.`
  if (code === 'EAUTH')
    return config.login
      ? `REELGATE_SMTP_URL: ${server} does not accept the user name or the password. Correct them, with %40 for an @ and %2F for a /.`
      : `REELGATE_SMTP_URL: ${server} wants a user name and a password. Add them, as smtp://USER:PASSWORD@HOST.`
  if (config.security === 'starttls' && (code === 'ETLS' || /STARTTLS/.test(said)))
    return `REELGATE_SMTP_URL: ${server} offers no STARTTLS. Use smtps:// for a port with TLS, or ?tls=off for a server in your own network.`
  if (code === 'EENVELOPE')
    return `${server} does not accept a mail from ${config.from} to ${config.to.join(', ')}. Check REELGATE_ALERT_FROM and the recipients, such as REELGATE_ALERT_TO, and whether it wants a user name and a password.`
  if (code === 'EMESSAGE' || code === 'EPROTOCOL') return `The mail server ${server} did not accept the mail.`
  return `REELGATE_SMTP_URL: ${server} cannot be reached, or does not speak SMTP. Check host and port, smtp:// or smtps://, and firewalls.`
}

function withoutPassword(text: string, { login }: AlertMailConfig): string {
  return login ? text.replaceAll(login.pass, '…') : text
}
