import type { App } from './app.ts'

/** What must answer before the service says that it is ready. */
export type HealthDeps = { checks: Record<string, () => Promise<void>> }

/** `/healthz`: it serves. `/readyz`: database, storage and ffmpeg answer; 503 names the ones that do not. */
export async function healthInterface(app: App, { checks }: HealthDeps): Promise<void> {
  app.get('/healthz', async () => ({ status: 'ok' }))
  app.get('/readyz', async (request, reply) => {
    const results = await Promise.all(
      Object.entries(checks).map(async ([name, check]): Promise<[string, 'ok' | 'failed']> => {
        try {
          await check()
          return [name, 'ok']
        } catch (error) {
          request.log.warn({ err: error, check: name }, 'not ready')
          return [name, 'failed']
        }
      }),
    )
    const isReady = results.every(([, result]) => result === 'ok')
    return reply.code(isReady ? 200 : 503).send({ status: isReady ? 'ready' : 'not ready', checks: Object.fromEntries(results) })
  })
}
