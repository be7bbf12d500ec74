import type { FastifyBaseLogger } from 'fastify'
import type { App } from './app.ts'

/** What must answer before the service says that it is ready. */
export type HealthDeps = { checks: Record<string, () => Promise<void>> }

/** An answer is kept so long: checks start processes, and anybody may ask. */
const KEPT_MS = 2_000

/** `/healthz`: it serves. `/readyz`: database, storage and ffmpeg answer; 503 names the ones that do not. */
export async function healthInterface(app: App, { checks }: HealthDeps): Promise<void> {
  let latest: { atMs: number; results: ReturnType<typeof runChecks> } | undefined
  app.get('/healthz', async () => ({ status: 'ok' }))
  app.get('/readyz', async (request, reply) => {
    if (!latest || performance.now() - latest.atMs > KEPT_MS)
      latest = { atMs: performance.now(), results: runChecks(checks, request.log) }
    const results = await latest.results
    const isReady = results.every(([, result]) => result === 'ok')
    return reply.code(isReady ? 200 : 503).send({ status: isReady ? 'ready' : 'not ready', checks: Object.fromEntries(results) })
  })
}

function runChecks(checks: HealthDeps['checks'], log: FastifyBaseLogger): Promise<[string, 'ok' | 'failed'][]> {
  return Promise.all(
    Object.entries(checks).map(async ([name, check]): Promise<[string, 'ok' | 'failed']> => {
      try {
        await check()
        return [name, 'ok']
      } catch (error) {
        log.warn({ err: error, check: name }, 'not ready')
        return [name, 'failed']
      }
    }),
  )
}
