import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { signedInRoute } from '../sign-in/root-routes.tsx'

export const importRoutes = [
  createRoute({
    getParentRoute: () => signedInRoute,
    path: '/videos/import',
    component: lazyRouteComponent(() => import('./import-page.tsx'), 'ImportPage'),
  }),
] as const
