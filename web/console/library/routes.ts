import { createRoute, lazyRouteComponent, redirect } from '@tanstack/react-router'
import { listOf, videosPageQuery } from '../catalogue/queries.ts'
import { parseLibrarySearch } from '../catalogue/search.ts'
import { signedInRoute } from '../sign-in/root-routes.tsx'

export const libraryRoutes = [
  createRoute({
    getParentRoute: () => signedInRoute,
    path: '/',
    beforeLoad: () => {
      throw redirect({ to: '/videos', replace: true })
    },
  }),
  createRoute({
    getParentRoute: () => signedInRoute,
    path: '/videos',
    validateSearch: parseLibrarySearch,
    loaderDeps: ({ search }) => search,
    // Asked for together with the page's script; the page itself waits for it and shows an error in its own place.
    loader: ({ context, deps }) => void context.queries.prefetchQuery(videosPageQuery(listOf(deps), 1)),
    component: lazyRouteComponent(() => import('./library-page.tsx'), 'LibraryPage'),
  }),
] as const
