import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { rootRoute } from './root-routes.tsx'

export const signInRoutes = [
  createRoute({
    getParentRoute: () => rootRoute,
    path: '/sign-in',
    /** Where the person wanted to go. Only an address of the console's own: a link must not lead elsewhere after the sign-in. */
    validateSearch: ({ next }): { next?: string } => ({ next: isOwnAddress(next) ? next : undefined }),
    component: lazyRouteComponent(() => import('./sign-in-page.tsx'), 'SignInPage'),
  }),
  createRoute({
    getParentRoute: () => rootRoute,
    path: '/link',
    component: lazyRouteComponent(() => import('./link-page.tsx'), 'LinkPage'),
  }),
] as const

function isOwnAddress(next: unknown): next is string {
  return typeof next === 'string' && /^\/(?![/\\])/.test(next)
}
