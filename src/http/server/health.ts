import type { FastifyBaseLogger } from 'fastify'
import { DatabaseInUse, logLevelFor } from '../../errors.ts'
import type { App } from './app-type.ts'
import { type LimitDeps, limitByAddress } from './rate-limits.ts'

export type HealthDeps = LimitDeps & {
  /** What must work for the service to be ready. `low`: it is ready, but some of its functions are not available. */
  checks: Record<string, () => Promise<'low' | undefined>>
  /** Read for each request. */
  notices(): Promise<Notices>
}

/** What the operator should take care of, though the service is ready: low disk space, held webhooks. */
export type Notices = { space: 'ok' | 'low'; webhooks?: 'held' }

type Result = 'ok' | 'low' | 'failed' | 'held by another server'

/** Refuses all requests except `/healthz` and `/readyz` while another server has the database, even those that could be answered from memory. */
export function refuseWhileDatabaseInUse(app: App, refusal: () => DatabaseInUse | undefined): void {
  app.addHook('onRequest', (request, _reply, done) => {
    const error = refusal()
    if (error && !PROBE_PATHS.includes(request.routeOptions.url ?? '')) throw error
    done()
  })
}

const PROBE_PATHS = ['/healthz', '/readyz']

/** How long results are cached: checks start processes, and anyone may send requests. */
const CACHE_MS = 2_000

/**
 * `/healthz`: the process serves. `/readyz`: 200 while database, storage and ffmpeg work, also with low disk space, without a sandbox and
 * with held webhooks; else 503, which names what does not work.
 */
export async function healthInterface(app: App, { checks, notices, ...limiting }: HealthDeps): Promise<void> {
  limitByAddress(app, limiting, 'health')
  let latest: { atMs: number; results: ReturnType<typeof runChecks> } | undefined
  app.get('/healthz', async () => ({ status: 'ok' }))
  app.get('/readyz', async (request, reply) => {
    if (!latest || performance.now() - latest.atMs > CACHE_MS)
      latest = { atMs: performance.now(), results: runChecks(checks, request.log) }
    const results = await latest.results
    const isReady = results.every(([, result]) => result === 'ok' || result === 'low')
    return reply
      .code(isReady ? 200 : 503)
      .send({ status: isReady ? 'ready' : 'not ready', checks: { ...Object.fromEntries(results), ...(await notices()) } })
  })
}

function runChecks(checks: HealthDeps['checks'], log: FastifyBaseLogger): Promise<[string, Result][]> {
  return Promise.all(
    Object.entries(checks).map(async ([name, check]): Promise<[string, Result]> => {
      try {
        return [name, (await check()) ?? 'ok']
      } catch (error) {
        log[logLevelFor(error, 'warn')]({ err: error, check: name }, 'health: check failed')
        return [name, error instanceof DatabaseInUse ? 'held by another server' : 'failed']
      }
    }),
  )
}
