import type { FastifyBaseLogger } from 'fastify'
import { DatabaseInUse, levelOf } from '../../errors.ts'
import type { App } from './app.ts'
import { type LimitDeps, limitByAddress } from './rate-limits.ts'

/** What must answer before the service says that it is ready; `low` leaves it ready, without some of what it does. */
export type HealthDeps = LimitDeps & {
  checks: Record<string, () => Promise<'low' | undefined>>
  /** Looked at in each call. */
  notices(): Promise<Notices>
}

/** What leaves it ready, and the operator should look after: space that runs out, webhooks that wait. */
export type Notices = { space: 'ok' | 'low'; webhooks?: 'held' }

type Result = 'ok' | 'low' | 'failed' | 'held by another server'

/** Refuses every call but those to `/healthz` and `/readyz` while another server has the database: keys and pages come from memory, too. */
export function refuseWhileDatabaseInUse(app: App, refusal: () => DatabaseInUse | undefined): void {
  app.addHook('onRequest', async (request) => {
    const held = refusal()
    if (held && !PATHS.includes(request.routeOptions.url ?? '')) throw held
  })
}

const PATHS = ['/healthz', '/readyz']

/** An answer is kept so long: checks start processes, and anybody may ask. */
const KEPT_MS = 2_000

/** `/healthz`: it serves. `/readyz`: database, storage and ffmpeg answer; 503 names the ones that do not. Space that runs out, a sandbox that does not start, and webhooks that wait, leave it ready. */
export async function healthInterface(app: App, { checks, notices, ...limiting }: HealthDeps): Promise<void> {
  limitByAddress(app, limiting, 'health')
  let latest: { atMs: number; results: ReturnType<typeof runChecks> } | undefined
  app.get('/healthz', async () => ({ status: 'ok' }))
  app.get('/readyz', async (request, reply) => {
    if (!latest || performance.now() - latest.atMs > KEPT_MS)
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
        log[levelOf(error, 'warn')]({ err: error, check: name }, 'not ready')
        return [name, error instanceof DatabaseInUse ? 'held by another server' : 'failed']
      }
    }),
  )
}
