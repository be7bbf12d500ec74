import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { signedInRoute } from '../sign-in/root-routes.tsx'
import { alertsQuery } from './queries.ts'

export const alertRoutes = [
  createRoute({
    getParentRoute: () => signedInRoute,
    path: '/alerts',
    loader: ({ context }) => context.queries.ensureQueryData(alertsQuery),
    component: lazyRouteComponent(() => import('./alerts-page.tsx'), 'AlertsPage'),
  }),
] as const
