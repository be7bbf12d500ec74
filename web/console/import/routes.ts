import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { signedInRoute } from '../app/root-routes.tsx'

export const importRoutes = [
  createRoute({
    getParentRoute: () => signedInRoute,
    path: '/videos/import',
    component: lazyRouteComponent(() => import('./import-page.tsx'), 'ImportPage'),
  }),
] as const
