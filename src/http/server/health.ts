import type { Failure } from '../../errors.ts'
import type { App } from '../wire/app-type.ts'
import { type LimitDeps, limitByAddress } from './limit.ts'

export type HealthDeps = LimitDeps & {
  /** The latest results: `ok`, `low` or `away` where some functions are not available, or what is wrong. Reading them waits for nothing. */
  readChecks(): Readonly<Record<string, string>>
  /** Whether webhooks wait, because this is a restored copy. */
  areWebhooksHeld(): boolean
}

/**
 * Refuses all requests except `/healthz` and `/readyz` while another server has the database or this one must answer nothing, even those
 * that could be answered from memory.
 */
export function refuseAll(app: App, refusal: () => Failure | undefined): void {
  app.addHook('onRequest', (request, _reply, done) => {
    const error = refusal()
    if (error && !PROBE_PATHS.includes(request.routeOptions.url ?? '')) throw error
    done()
  })
}

const READY: readonly string[] = ['ok', 'low', 'away']

/** What load balancers and supervisors ask. */
export const PROBE_PATHS: readonly string[] = ['/healthz', '/readyz']

/**
 * `/healthz`: the process serves. `/readyz`: 200 while database, storage and ffmpeg work, also with low disk space, without a sandbox,
 * with held webhooks, and while a bucket is away, as every server of the installation would leave its load balancer; else 503, which
 * names what does not work. Both answer from memory.
 */
export async function healthInterface(app: App, { readChecks, areWebhooksHeld, ...limiting }: HealthDeps): Promise<void> {
  limitByAddress(app, limiting, 'health')
  app.get('/healthz', async () => ({ status: 'ok' }))
  app.get('/readyz', async (_request, reply) => {
    const checks = readChecks()
    const isReady = Object.values(checks).every((result) => READY.includes(result))
    return reply.code(isReady ? 200 : 503).send({
      status: isReady ? 'ready' : 'not ready',
      checks: { ...checks, ...(areWebhooksHeld() && { webhooks: 'held' }) },
    })
  })
}
