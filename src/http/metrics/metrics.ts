import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Logger } from 'pino'
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { logLevelFor } from '../../errors.ts'
import { listenFailure, METRICS_VARIABLES } from '../../net/listen-failure.ts'
import { listenUrl } from '../server/listen.ts'
import type { App } from '../wire/app-type.ts'

/** What the server counts or holds at the moment; a number that cannot be read now is left out. */
export type ServerState = {
  [name in keyof typeof STATE_METRICS]?: number | Record<string, number>
}

/** The metrics besides those of requests and of the process. `label`: its values are the keys of a record. */
export const STATE_METRICS = {
  reelgate_database_up: { type: 'gauge', help: '1 while the database answers, else 0' },
  reelgate_bucket_up: { type: 'gauge', help: '1 while the bucket answers, else 0; absent where files are in the data folder' },
  reelgate_playback_sessions: { type: 'gauge', help: 'sessions that asked for something in the last minute' },
  reelgate_playback_starts_total: {
    type: 'counter',
    help: 'views that showed a first frame, since the start as all of reelgate_playback_…_total',
  },
  reelgate_playback_start_seconds_total: { type: 'counter', help: 'time from the request to play to that frame' },
  reelgate_playback_played_seconds_total: { type: 'counter', help: 'time for which the picture moved' },
  reelgate_playback_waits_total: { type: 'counter', help: 'times that a started video waited for data' },
  reelgate_playback_waited_seconds_total: { type: 'counter', help: 'time for which it waited' },
  reelgate_playback_frames_total: { type: 'counter', help: 'frames that players were to show' },
  reelgate_playback_dropped_frames_total: { type: 'counter', help: 'frames of those that they did not show' },
  reelgate_playback_errors_total: { type: 'counter', help: 'views whose player stopped, by the reason', label: 'kind' },
  reelgate_chunks: { type: 'gauge', help: 'chunks of videos that are to be encoded, by state', label: 'state' },
  reelgate_segments_published_total: {
    type: 'counter',
    help: 'segments encoded since the start, of all renditions; about 4 s each',
  },
  reelgate_encode_failures_total: { type: 'counter', help: 'videos that failed since the start' },
  reelgate_workers: { type: 'gauge', help: 'encoders on other machines, by state', label: 'state' },
  reelgate_webhook_deliveries: { type: 'gauge', help: 'deliveries that are not finished' },
  reelgate_webhook_retry_delay_seconds: {
    type: 'gauge',
    help: 'for how long the oldest due retry of a webhook has waited; 0: none is due',
  },
  reelgate_webhooks_disabled: { type: 'gauge', help: 'webhooks that were switched off because they failed' },
  reelgate_alerts: { type: 'gauge', help: 'alerts of the last 24 hours, by cause', label: 'cause' },
  reelgate_disk_free_bytes: { type: 'gauge', help: 'free bytes on the disk of the data folder' },
  reelgate_disk_size_bytes: { type: 'gauge', help: 'size of that disk in bytes' },
  reelgate_backup_age_seconds: { type: 'gauge', help: 'age of the last good backup; absent while there is none' },
} as const satisfies Record<string, { type: 'gauge' | 'counter'; help: string; label?: string }>

/** The metrics of requests: the route is its pattern, never an address with ids in it. */
export const REQUEST_METRICS = {
  reelgate_http_requests_total: { type: 'counter', help: 'finished requests by method, route and status' },
  reelgate_http_request_seconds: { type: 'histogram', help: 'time until a response was sent, by route' },
  reelgate_keys_released_total: { type: 'counter', help: 'content keys sent to players' },
} as const

/** Seconds. Segments and keys take milliseconds, uploads minutes. */
const BUCKETS_S = [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5, 30]
const KEY_ROUTE = /^\/play\/.*key/

export type Metrics = {
  /** Counts the requests of an app from now on: to be called before its routes are registered. */
  countRequests(app: App): void
  /** Serves `GET /metrics`, and nothing else, on a port of its own. */
  listen(readState: () => Promise<ServerState>, log: Logger): Promise<{ stop(): Promise<void> }>
}

export function createMetrics({ host, port }: { host: string; port: number }): Metrics {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const registers = [registry]
  const describe = (name: keyof typeof REQUEST_METRICS) => ({ name, help: REQUEST_METRICS[name].help, registers })
  const requests = new Counter({ ...describe('reelgate_http_requests_total'), labelNames: ['method', 'route', 'status'] })
  const seconds = new Histogram({ ...describe('reelgate_http_request_seconds'), labelNames: ['route'], buckets: BUCKETS_S })
  const keys = new Counter(describe('reelgate_keys_released_total'))

  async function expose(readState: () => Promise<ServerState>): Promise<string> {
    const state = await readState()
    const current = new Registry()
    for (const [name, { help, type, ...rest }] of Object.entries(STATE_METRICS)) {
      const value = state[name as keyof ServerState]
      if (value === undefined) continue
      const label = 'label' in rest ? rest.label : undefined
      const options = { name, help, registers: [current], labelNames: label === undefined ? [] : [label] }
      const metric = type === 'counter' ? new Counter(options) : new Gauge(options)
      if (typeof value === 'number') metric.inc(value)
      else for (const [key, part] of Object.entries(value)) metric.inc({ [label ?? '']: key }, part)
    }
    return `${await current.metrics()}\n${await registry.metrics()}`
  }

  return {
    countRequests(app) {
      app.addHook('onResponse', (request, reply, done) => {
        const route = request.routeOptions.url ?? 'none'
        const { statusCode: status } = reply
        requests.inc({ method: request.method, route, status })
        seconds.observe({ route }, reply.elapsedTime / 1000)
        if (status === 200 && KEY_ROUTE.test(route)) keys.inc()
        done()
      })
    },
    async listen(readState, log) {
      const server = createServer((request, response) => {
        if (request.url !== '/metrics' || request.method !== 'GET') return void response.writeHead(404).end()
        expose(readState).then(
          (text) => response.writeHead(200, { 'Content-Type': registry.contentType, 'Cache-Control': 'no-store' }).end(text),
          (error) => {
            log[logLevelFor(error, 'error')]({ err: error }, 'metrics: reading them failed')
            response.writeHead(500).end()
          },
        )
      })
      await new Promise<void>((resolve, reject) => server.once('error', reject).listen({ host, port }, resolve)).catch(
        (cause) => {
          throw listenFailure({ host, port, ...METRICS_VARIABLES }, cause)
        },
      )
      log.info({ url: `${listenUrl(host, (server.address() as AddressInfo).port)}/metrics` }, 'metrics: served')
      return {
        stop: () =>
          new Promise((resolve) => {
            server.close(() => resolve())
            server.closeAllConnections()
          }),
      }
    },
  }
}
