import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { signedInRoute } from '../sign-in/root-routes.tsx'

const DAYS = ['7', '90'] as const

export const activityRoutes = [
  createRoute({
    getParentRoute: () => signedInRoute,
    path: '/activity',
    validateSearch: ({ days, month }): { days?: (typeof DAYS)[number] | '30'; month?: string } => ({
      days: DAYS.find((known) => known === days),
      month: typeof month === 'string' ? month : undefined,
    }),
    component: lazyRouteComponent(() => import('./activity-page.tsx'), 'ActivityPage'),
  }),
] as const
