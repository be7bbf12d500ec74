import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { signedInRoute } from '../sign-in/root-routes.tsx'
import { sessionsQuery, viewingsOfViewerQuery } from './queries.ts'

const DAYS = ['30', '90'] as const
type WatchedSearch = { days?: (typeof DAYS)[number] | '7'; q?: string }

export const viewerRoutes = [
  createRoute({
    getParentRoute: () => signedInRoute,
    path: '/viewers',
    loader: ({ context }) => context.queries.ensureQueryData(sessionsQuery()),
    component: lazyRouteComponent(() => import('./viewers-page.tsx'), 'ViewersPage'),
  }),
  createRoute({
    getParentRoute: () => signedInRoute,
    path: '/viewers/watched',
    validateSearch: ({ days, q }): WatchedSearch => ({
      days: DAYS.find((known) => known === days),
      q: typeof q === 'string' && q !== '' ? q : undefined,
    }),
    component: lazyRouteComponent(() => import('./watched-page.tsx'), 'WatchedPage'),
  }),
  createRoute({
    getParentRoute: () => signedInRoute,
    path: '/viewers/refused',
    component: lazyRouteComponent(() => import('./refused-page.tsx'), 'RefusedPage'),
  }),
  createRoute({
    getParentRoute: () => signedInRoute,
    path: '/viewers/$userId',
    loader: ({ context, params: { userId } }) =>
      Promise.all([
        context.queries.ensureQueryData(sessionsQuery({ userId })),
        context.queries.ensureQueryData(viewingsOfViewerQuery(userId)),
      ]),
    component: lazyRouteComponent(() => import('./viewer-page.tsx'), 'ViewerPage'),
  }),
] as const
