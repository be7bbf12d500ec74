import type { QueryClient } from '@tanstack/react-query'
import { createRouter } from '@tanstack/react-router'
import { activityRoutes } from '../activity/routes.ts'
import { alertRoutes } from '../alerts/routes.ts'
import { developRoutes } from '../develop/routes.ts'
import { importRoutes } from '../import/routes.ts'
import { libraryRoutes } from '../library/routes.ts'
import { rootRoute, signedInRoute } from '../sign-in/root-routes.tsx'
import { signInRoutes } from '../sign-in/routes.ts'
import { systemRoutes } from '../system/routes.ts'
import { trashRoutes } from '../trash/routes.ts'
import { FailurePage } from '../ui/failure.tsx'
import { parseQueryString, toQueryString } from '../ui/query-string.ts'
import { consolePath } from '../urls.ts'
import { videoRoutes } from '../video/routes.ts'
import { viewerRoutes } from '../viewers/routes.ts'
import { welcomeRoutes } from '../welcome/routes.ts'
import { Shell } from './shell.tsx'

signedInRoute.update({ component: Shell })

/** Every page: a feature folder's `routes.ts` names its own. */
const routeTree = rootRoute.addChildren([
  ...signInRoutes,
  signedInRoute.addChildren([
    ...libraryRoutes,
    ...videoRoutes,
    ...welcomeRoutes,
    ...importRoutes,
    ...trashRoutes,
    ...alertRoutes,
    ...viewerRoutes,
    ...activityRoutes,
    ...developRoutes,
    ...systemRoutes,
  ]),
])

export function createPages(queries: QueryClient) {
  return createRouter({
    routeTree,
    context: { queries },
    basepath: consolePath || '/',
    parseSearch: parseQueryString,
    stringifySearch: toQueryString,
    defaultErrorComponent: FailurePage,
    defaultPreload: 'intent',
    defaultPreloadStaleTime: 0, // the queries know what is fresh
    scrollRestoration: true,
  })
}

declare module '@tanstack/react-router' {
  interface Register {
    router: ReturnType<typeof createPages>
  }
}
