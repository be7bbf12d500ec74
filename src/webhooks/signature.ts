import { createHmac, randomBytes } from 'node:crypto'

// Standard Webhooks 1.0: scheme `v1`, HMAC-SHA256 with a shared secret.

const PREFIX = 'whsec_'
const SECRET_BYTES = 32

export function newWebhookSecret(): string {
  return `${PREFIX}${randomBytes(SECRET_BYTES).toString('base64')}`
}

/** The headers of one attempt, with a signature for each secret: during a rotation the receiver may know either. */
export function signedHeaders(secrets: readonly string[], message: { id: string; timestampS: number; body: string }) {
  const signed = `${message.id}.${message.timestampS}.${message.body}`
  const signatures = secrets.map((secret) => {
    const key = Buffer.from(secret.slice(PREFIX.length), 'base64')
    return `v1,${createHmac('sha256', key).update(signed).digest('base64')}`
  })
  return {
    'webhook-id': message.id,
    'webhook-timestamp': String(message.timestampS),
    'webhook-signature': signatures.join(' '),
  }
}
