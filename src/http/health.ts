import type { FastifyBaseLogger } from 'fastify'
import { levelOf } from '../errors.ts'
import type { App } from './app.ts'
import { type LimitDeps, limitVisitors } from './limits.ts'

/** What must answer before the service says that it is ready; `low` serves on, and somebody should look after it. */
export type HealthDeps = LimitDeps & { checks: Record<string, () => Promise<undefined | 'low'>> }

/** An answer is kept so long: checks start processes, and anybody may ask. */
const KEPT_MS = 2_000

/** `/healthz`: it serves. `/readyz`: database, storage and ffmpeg answer; 503 names the ones that do not. Space that runs out is only told. */
export async function healthInterface(app: App, { checks, ...limiting }: HealthDeps): Promise<void> {
  limitVisitors(app, limiting, 'health')
  let latest: { atMs: number; results: ReturnType<typeof runChecks> } | undefined
  app.get('/healthz', async () => ({ status: 'ok' }))
  app.get('/readyz', async (request, reply) => {
    if (!latest || performance.now() - latest.atMs > KEPT_MS)
      latest = { atMs: performance.now(), results: runChecks(checks, request.log) }
    const results = await latest.results
    const isReady = results.every(([, result]) => result !== 'failed')
    return reply.code(isReady ? 200 : 503).send({ status: isReady ? 'ready' : 'not ready', checks: Object.fromEntries(results) })
  })
}

function runChecks(checks: HealthDeps['checks'], log: FastifyBaseLogger): Promise<[string, 'ok' | 'low' | 'failed'][]> {
  return Promise.all(
    Object.entries(checks).map(async ([name, check]): Promise<[string, 'ok' | 'low' | 'failed']> => {
      try {
        return [name, (await check()) ?? 'ok']
      } catch (error) {
        log[levelOf(error, 'warn')]({ err: error, check: name }, 'not ready')
        return [name, 'failed']
      }
    }),
  )
}
