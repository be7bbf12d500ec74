import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { App } from '../../src/http/wire/app-type.ts'

/** Runs `begin`, which starts a server. @returns what it answers with the method and path of each route, such as `GET /console/api/videos` */
export async function collectRoutes<T>(begin: () => Promise<T>): Promise<{ started: T; routes: string[] }> {
  const routes = new Set<string>()
  function collect(message: unknown): void {
    const { fastify } = message as { fastify: App }
    fastify.addHook('onRoute', ({ method, url }) => {
      for (const one of [method].flat()) routes.add(`${one} ${url.replace(/(?<=.)\/$/, '')}`)
    })
  }
  subscribe('fastify.initialization', collect)
  const started = await begin().finally(() => unsubscribe('fastify.initialization', collect))
  return { started, routes: [...routes] }
}
