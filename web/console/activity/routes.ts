import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { signedInRoute } from '../app/root-routes.tsx'

const DAYS = ['7', '90'] as const

export const activityRoutes = [
  createRoute({
    getParentRoute: () => signedInRoute,
    path: '/activity',
    validateSearch: ({ days }): { days?: (typeof DAYS)[number] | '30' } => ({ days: DAYS.find((known) => known === days) }),
    component: lazyRouteComponent(() => import('./activity-page.tsx'), 'ActivityPage'),
  }),
] as const
