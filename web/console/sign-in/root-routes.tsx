import type { QueryClient } from '@tanstack/react-query'
import { createRootRouteWithContext, createRoute, Outlet, redirect } from '@tanstack/react-router'
import { FailurePage, NotFoundPage } from '../ui/failure.tsx'
import { signInQuery } from './queries.ts'

/** What every page gets. */
type PageContext = { queries: QueryClient }

export const rootRoute = createRootRouteWithContext<PageContext>()({
  component: Outlet,
  notFoundComponent: () => (
    <main>
      <NotFoundPage />
    </main>
  ),
})

/**
 * Around every page that needs a person: who is not signed in goes to `/sign-in`, and returns to the same address from there. What is
 * shown around the page, `app/router.tsx` adds.
 */
export const signedInRoute = createRoute({
  getParentRoute: () => rootRoute,
  id: 'signed-in',
  async beforeLoad({ context, location }) {
    const signIn = await context.queries.ensureQueryData(signInQuery)
    if (!signIn.signedIn) throw redirect({ to: '/sign-in', search: { next: location.href } })
    return { signIn }
  },
  errorComponent: FailurePage,
  notFoundComponent: NotFoundPage,
})
