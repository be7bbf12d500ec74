import type { AccountDisablingDeps } from '../../accounts/account.ts'
import { Failure } from '../../errors.ts'
import { eventRoutes } from '../api/events.ts'
import { type ApiRoutesDeps, apiRoutes, authenticateCallers } from '../api/interface.ts'
import type { FindCaller } from '../server/caller.ts'
import { countUnauthenticated } from '../server/identify.ts'
import type { App } from '../wire/app-type.ts'
import { accountAdminRoutes } from './accounts.ts'
import { readSignInToken } from './cookie.ts'
import { refuseOtherSites } from './origin.ts'
import { refuseVideosOfOthers } from './own-videos.ts'
import { type PasskeyRoutesDeps, passkeyRoutes } from './passkeys.ts'
import { signInRoutes } from './sign-in.ts'
import { signInsRoutes } from './sign-ins.ts'
import { type SystemRoutesDeps, systemRoutes } from './system.ts'
import { userRoutes } from './users.ts'
import { consoleVideoRoutes } from './videos.ts'
import { type WorkerAdminDeps, workerAdminRoutes } from './workers.ts'

export type ConsoleApiDeps = ApiRoutesDeps & PasskeyRoutesDeps & AccountDisablingDeps & SystemRoutesDeps & WorkerAdminDeps

/**
 * The current interface for the console's own pages, `/console/api`: the same operations, authenticated by the cookie of a person who is
 * signed in, never by a key; and those that only a person can use.
 */
export async function consoleApiInterface(app: App, deps: ConsoleApiDeps): Promise<void> {
  app.addHook('onRequest', async (request, reply) => {
    try {
      refuseOtherSites(request, deps.publicUrl())
    } catch (error) {
      throw error instanceof Failure ? await countUnauthenticated(deps, { request, reply }, error) : error
    }
  })
  const findCaller: FindCaller = async (request) => deps.findSignedIn(readSignInToken(deps, request))
  authenticateCallers(app, { ...deps, findCaller })
  refuseVideosOfOthers(app, deps)
  apiRoutes(app, deps)
  consoleVideoRoutes(app, deps)
  eventRoutes(app, { ...deps, findCaller })
  signInRoutes(app, deps)
  passkeyRoutes(app, deps)
  signInsRoutes(app, deps)
  userRoutes(app, deps)
  accountAdminRoutes(app, deps)
  systemRoutes(app, deps)
  workerAdminRoutes(app, deps)
}
