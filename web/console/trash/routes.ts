import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { signedInRoute } from '../sign-in/root-routes.tsx'
import { trashQuery } from './queries.ts'

export const trashRoutes = [
  createRoute({
    getParentRoute: () => signedInRoute,
    path: '/trash',
    loader: ({ context }) => context.queries.ensureQueryData(trashQuery),
    component: lazyRouteComponent(() => import('./trash-page.tsx'), 'TrashPage'),
  }),
] as const
