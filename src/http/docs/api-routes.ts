import type { FastifySchema } from 'fastify'
import type { Permission } from '../../accounts/permission.ts'
import type { OwnerBudget } from '../../rate-limits/rate-limits.ts'
import type { App } from '../wire/app-type.ts'

declare module 'fastify' {
  interface FastifySchema {
    /** What the operation does, in a few words; an operation without them is not in the docs. */
    summary?: string
    /** What else its callers should know. */
    description?: string
  }
  interface FastifyContextConfig {
    /** For the docs alone: what the route reads for itself, more leniently than a schema says it, and what it sends as bytes. */
    described?: Pick<FastifySchema, 'querystring' | 'body' | 'response'>
  }
}

/** A route as it was registered, for the docs. */
export type ApiRoute = {
  method: string
  /** As `/api/videos/:id`. */
  url: string
  permission: Permission | undefined
  /** The class that its calls count in, where it is not that of its permission. */
  budget: OwnerBudget | undefined
  schema: FastifySchema
}

/**
 * Collects the routes that are registered from now on. The docs are made from them at the first request.
 * @returns the list, which fills as interfaces register
 */
export function collectApiRoutes(app: App): readonly ApiRoute[] {
  const routes: ApiRoute[] = []
  app.addHook('onRoute', ({ method, url, config, schema }) => {
    if (schema?.summary === undefined || method === 'HEAD') return
    const all = { ...schema, ...config?.described }
    const { permission, budget } = config ?? {}
    for (const one of [method].flat()) routes.push({ method: one, url, permission, budget, schema: all })
  })
  return routes
}
