import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Webhook } from 'standardwebhooks'
import { expect } from 'vitest'
import type { Owner } from '../client.ts'

// Owners' endpoints: real HTTP on a port of this machine that the server under test is allowed to ask; each endpoint has a path.

export type Event = {
  hookId: string
  event: string
  time: number
  sequence: number
  payload: {
    id: string
    title: string
    upload_time: number
    tags: string[]
    length: number
    status: string
    [field: string]: unknown
  }
}
export type Received = { headers: IncomingHttpHeaders; body: string; event: Event }

/** How the n-th request, from 0, is answered. */
export type Answer = (response: ServerResponse, n: number) => void

export type Receiver = {
  url: string
  received: Received[]
  answer(next: Answer): void
  /** Resolves with what has come once there are so many. */
  until(count: number): Promise<Received[]>
}

export type Receivers = { host: string; newReceiver(answer?: Answer): Receiver; close(): Promise<void> }

/** Listens on one port; `newReceiver` makes an endpoint there. */
export async function startReceivers(port = 0): Promise<Receivers> {
  const endpoints = new Map<string, { received: Received[]; answer: Answer }>()
  const server = createServer(async (request, response) => {
    const body = Buffer.concat(await Array.fromAsync(request)).toString()
    const endpoint = endpoints.get(request.url ?? '')
    if (!endpoint) return void response.writeHead(404).end()
    const { received } = endpoint
    received.push({ headers: request.headers, body, event: JSON.parse(body) })
    endpoint.answer(response, received.length - 1)
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    host,
    newReceiver(answer = (response) => response.writeHead(204).end()) {
      const path = `/hook/${endpoints.size}`
      const endpoint = { received: [] as Received[], answer }
      endpoints.set(path, endpoint)
      return {
        url: `http://${host}${path}`,
        received: endpoint.received,
        answer(next) {
          endpoint.answer = next
        },
        async until(count) {
          await expect.poll(() => endpoint.received.length).toBeGreaterThanOrEqual(count)
          return endpoint.received
        },
      }
    },
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** What the standard's own library reads of a delivery. @throws when it is not signed with this secret, or too old */
export function verify(secret: string, { body, headers }: Pick<Received, 'body' | 'headers'>): unknown {
  const named = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map((name) => [name, String(headers[name])])
  return new Webhook(secret).verify(body, Object.fromEntries(named))
}

export type WebhookBody = {
  uuid: string
  type: string
  value: string
  event: string
  status: number
  statusReason?: string
  failingSince: string | null
  createdAt: string
}
export type DeliveryBody = {
  id: number
  webhookId: string
  event: string
  state: string
  attempts: number
  time: number
  triedAt: string | null
  dueAt: string | null
  responseStatus: number | null
  problem: string | null
  body: string
}

/** The owner's calls about webhooks. */
export function webhooksOf(owner: Owner) {
  async function get<T>(method: string, path: string, body?: unknown): Promise<T> {
    const response = await owner.call(method, `/api/hooks${path}`, { body })
    if (response.status !== 200) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`)
    return response.json() as Promise<T>
  }
  const deliveries = (uuid: string, query = '') =>
    get<{ count: number; rows: DeliveryBody[] }>('GET', `/${uuid}/deliveries${query}`)
  return {
    create: (url: string, event?: string) =>
      get<WebhookBody & { secret: string }>('POST', '', { type: 'http', value: url, event, status: 1 }),
    list: async () => (await get<{ rows: WebhookBody[] }>('GET', '')).rows,
    remove: (uuid: string) => get<{ message: string }>('DELETE', '', { uuid }),
    set: (uuid: string, status: 0 | 1) => get<WebhookBody>('PUT', `/${uuid}`, { status }),
    rotate: async (uuid: string) => (await get<{ secret: string }>('POST', `/${uuid}/secret`)).secret,
    deliveries,
    replay: (uuid: string, id?: number) =>
      get<{ count: number }>('POST', `/${uuid}/deliveries/${id === undefined ? '' : `${id}/`}replay`),
    /** Asks until the newest delivery is in this state. */
    async untilNewest(uuid: string, state: string): Promise<DeliveryBody> {
      const newest = async () => (await deliveries(uuid, '?limit=1')).rows[0]
      await expect.poll(async () => (await newest())?.state).toBe(state)
      const found = await newest()
      if (!found) throw new Error('there is no delivery')
      return found
    },
  }
}
