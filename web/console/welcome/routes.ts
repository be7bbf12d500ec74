import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { signedInRoute } from '../sign-in/root-routes.tsx'

export const welcomeRoutes = [
  createRoute({
    getParentRoute: () => signedInRoute,
    path: '/welcome',
    /** The video of the first steps; absent: the one that is uploaded now, or none yet. */
    validateSearch: ({ video }): { video?: string } => ({ video: typeof video === 'string' && video !== '' ? video : undefined }),
    component: lazyRouteComponent(() => import('./welcome-page.tsx'), 'WelcomePage'),
  }),
] as const
