import type { Answer, Call, Parts, Send } from './http.ts'
import { multipart } from './http.ts'

export type CallOptions = {
  /** Undefined: the account's own key; null: no key at all. */
  key?: string | null
  headers?: readonly (readonly [string, string])[]
  /** At most one of the following. */
  json?: unknown
  form?: Record<string, string> | string
  parts?: Parts
  body?: string
}

export type Client = {
  /** A call to the current interface. */
  api(method: string, path: string, options?: CallOptions): Promise<Answer>
  /** A call to the earlier interface; the key goes into the form. */
  v2(path: string, fields?: Record<string, string>, key?: string | null): Promise<Answer>
}

export function createClient(send: Send, base: string, ownKey: string): Client {
  return {
    api(method, path, options = {}) {
      const key = options.key === undefined ? ownKey : options.key
      const authorization: [string, string][] = key === null ? [] : [['Authorization', `Apisecret ${key}`]]
      return send({
        method,
        url: `${base}/api${path}`,
        ...encodeCall(options, [...authorization, ['Accept', 'application/json']]),
      })
    },
    v2(path, fields = {}, key = ownKey) {
      const form = { ...(key === null ? {} : { clientSecretKey: key }), ...fields }
      return send({ method: 'POST', url: `${base}/v2${path}`, ...encodeCall({ form }) })
    },
  }
}

/** Headers and body of a call. */
export function encodeCall(
  { headers = [], json, form, parts, body }: CallOptions,
  first: readonly (readonly [string, string])[] = [],
): Pick<Call, 'headers' | 'body'> {
  const encoded = (type: string, body: string | Buffer) => ({
    headers: [...first, ['Content-Type', type], ...headers] as const,
    body,
  })
  if (json !== undefined) return encoded('application/json', JSON.stringify(json))
  if (form !== undefined) {
    return encoded('application/x-www-form-urlencoded', typeof form === 'string' ? form : new URLSearchParams(form).toString())
  }
  if (parts !== undefined) {
    const { type, body } = multipart(parts)
    return encoded(type, body)
  }
  return { headers: [...first, ...headers], body }
}
