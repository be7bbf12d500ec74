import { createRoute, lazyRouteComponent, redirect } from '@tanstack/react-router'
import { signedInRoute } from '../sign-in/root-routes.tsx'

export const systemRoutes = [
  createRoute({
    getParentRoute: () => signedInRoute,
    path: '/system',
    beforeLoad: () => {
      throw redirect({ to: '/system/you', replace: true })
    },
  }),
  createRoute({
    getParentRoute: () => signedInRoute,
    path: '/system/you',
    component: lazyRouteComponent(() => import('./you-page.tsx'), 'YouPage'),
  }),
  createRoute({
    getParentRoute: () => signedInRoute,
    path: '/system/people',
    component: lazyRouteComponent(() => import('./people-page.tsx'), 'PeoplePage'),
  }),
  createRoute({
    getParentRoute: () => signedInRoute,
    path: '/system/settings',
    component: lazyRouteComponent(() => import('./settings-page.tsx'), 'SettingsPage'),
  }),
  createRoute({
    getParentRoute: () => signedInRoute,
    path: '/system/queue',
    component: lazyRouteComponent(() => import('./queue-page.tsx'), 'QueuePage'),
  }),
  createRoute({
    getParentRoute: () => signedInRoute,
    path: '/system/audit-log',
    validateSearch: ({ q }): { q?: string } => ({ q: typeof q === 'string' && q !== '' ? q : undefined }),
    component: lazyRouteComponent(() => import('./audit-log-page.tsx'), 'AuditLogPage'),
  }),
  createRoute({
    getParentRoute: () => signedInRoute,
    path: '/system/server',
    component: lazyRouteComponent(() => import('./server-page.tsx'), 'ServerPage'),
  }),
  createRoute({
    getParentRoute: () => signedInRoute,
    path: '/system/accounts',
    component: lazyRouteComponent(() => import('./accounts-page.tsx'), 'AccountsPage'),
  }),
] as const
