import { Failure } from '../errors.ts'
import { isMailAddress } from '../mail-address.ts'
import { invalid, type Variables } from './environment.ts'
import { isLoopback } from './loopback.ts'

/** How alerts are sent by e-mail. */
export type AlertMailConfig = Readonly<{
  /** The installation's public host, or this machine's name. */
  installation: string
  host: string
  port: number
  security: 'tls' | 'starttls' | 'none'
  /** Never to be logged. */
  login: { user: string; pass: string } | undefined
  to: readonly string[]
  from: string
}>

export function readAlertMail(variables: Variables, installation: string): AlertMailConfig | undefined {
  const { REELGATE_SMTP_URL: url, REELGATE_ALERT_TO: recipients, REELGATE_ALERT_FROM: sender } = variables
  if (url === undefined && recipients === undefined) return undefined
  if (url === undefined || recipients === undefined) {
    const missing = url === undefined ? 'REELGATE_SMTP_URL, the mail server' : 'REELGATE_ALERT_TO, the addresses that get alerts'
    throw new Failure('invalid', `Alerts by e-mail need REELGATE_SMTP_URL and REELGATE_ALERT_TO. Set ${missing}.`)
  }
  const to = recipients.split(',').map((address) => address.trim())
  const from = sender ?? to[0] ?? ''
  if (!to.every(isMailAddress)) throw invalid('REELGATE_ALERT_TO')
  if (!isMailAddress(from)) throw invalid('REELGATE_ALERT_FROM')
  return { installation, ...readSmtpUrl(url), to, from }
}

const SMTP_URL =
  /^(?<scheme>smtps?):\/\/(?:(?<user>[^:@/?#\s]+):(?<password>[^:@/?#\s]+)@)?(?<host>\[[\da-f:]+\]|[\w.-]+)(?::(?<port>[1-9]\d{0,4}))?\/?(?:\?tls=(?<tls>off|required))?$/i
const SMTP_PORTS = { tls: 465, starttls: 587, none: 25 } as const

function readSmtpUrl(text: string): Pick<AlertMailConfig, 'host' | 'port' | 'security' | 'login'> {
  const { scheme, user, password, host: bracketed, port, tls } = SMTP_URL.exec(text)?.groups ?? {}
  if (scheme === undefined || bracketed === undefined || Number(port ?? 1) > 65_535) throw invalid('REELGATE_SMTP_URL')
  const host = bracketed.replace(/^\[|\]$/g, '')
  const login = user && password ? { user: decodePart(user), pass: decodePart(password) } : undefined
  // A mail server on this machine often has a certificate that nothing trusts, and what it is sent does not leave the machine.
  const isPlain = tls === undefined ? isLoopback(host) : tls === 'off'
  const security = scheme.toLowerCase() === 'smtps' ? 'tls' : isPlain ? 'none' : 'starttls'
  if (security === 'none' && login && !isLoopback(host)) {
    throw new Failure(
      'invalid',
      'REELGATE_SMTP_URL has a password and tls=off, so that others on the network could read it. Leave out tls=off, or user and password.',
    )
  }
  return { host, port: Number(port ?? SMTP_PORTS[security]), security, login }
}

function decodePart(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw invalid('REELGATE_SMTP_URL')
  }
}
