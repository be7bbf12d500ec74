import { createHmac } from 'node:crypto'
import { equalsInConstantTime } from '../crypto/constant-time.ts'

// AWS Signature Version 4 over an S3 POST policy ("Authenticating Requests: Browser-Based Uploads Using POST").

export const SIGNATURE_ALGORITHM = 'AWS4-HMAC-SHA256'
const SERVICE = 's3'

export type Signer = { accessKeyId: string; secret: string; region: string }

/** `20261121T050000Z`, the form of `x-amz-date`. */
export function amzDate(nowS: number): string {
  return new Date(nowS * 1000).toISOString().replace(/[-:]|\.\d{3}/g, '')
}

/** The credential scope that goes with a date. */
export function amzCredential(signer: Signer, date: string): string {
  return `${signer.accessKeyId}/${date.slice(0, 8)}/${signer.region}/${SERVICE}/aws4_request`
}

/** The signature of a base64 policy, in lower-case hexadecimal. */
export function signPolicy(signer: Signer, date: string, policyBase64: string): string {
  const day = hmac(`AWS4${signer.secret}`, date.slice(0, 8))
  const key = hmac(hmac(hmac(day, signer.region), SERVICE), 'aws4_request')
  return hmac(key, policyBase64).toString('hex')
}

export function isValidSignature(signer: Signer, date: string, policyBase64: string, signature: string): boolean {
  return equalsInConstantTime(signPolicy(signer, date, policyBase64), signature)
}

function hmac(key: string | Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest()
}
