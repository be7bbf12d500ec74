import { createRoute, lazyRouteComponent, redirect } from '@tanstack/react-router'
import { videosPageQuery } from '../catalogue/queries.ts'
import { accountDefaultsQuery } from '../protection/queries.ts'
import { signedInRoute } from '../sign-in/root-routes.tsx'
import { accountQuery } from '../system/queries.ts'
import { bansQuery, keysQuery, platformsQuery, uploadTokensQuery, webhooksQuery } from './queries.ts'

export const developRoutes = [
  createRoute({
    getParentRoute: () => signedInRoute,
    path: '/develop',
    beforeLoad: () => {
      throw redirect({ to: '/develop/code', replace: true })
    },
  }),
  createRoute({
    getParentRoute: () => signedInRoute,
    path: '/develop/code',
    loader: ({ context }) => context.queries.ensureQueryData(videosPageQuery({ state: 'ready' }, 1)),
    component: lazyRouteComponent(() => import('./code-page.tsx'), 'CodePage'),
  }),
  createRoute({
    getParentRoute: () => signedInRoute,
    path: '/develop/defaults',
    loader: ({ context }) => context.queries.ensureQueryData(accountDefaultsQuery),
    component: lazyRouteComponent(() => import('./defaults-page.tsx'), 'DefaultsPage'),
  }),
  createRoute({
    getParentRoute: () => signedInRoute,
    path: '/develop/keys',
    loader: ({ context: { queries } }) =>
      Promise.all([queries.ensureQueryData(keysQuery), queries.ensureQueryData(uploadTokensQuery)]),
    component: lazyRouteComponent(() => import('./keys-page.tsx'), 'KeysPage'),
  }),
  createRoute({
    getParentRoute: () => signedInRoute,
    path: '/develop/webhooks',
    loader: ({ context }) => context.queries.ensureQueryData(webhooksQuery),
    component: lazyRouteComponent(() => import('./webhooks-page.tsx'), 'WebhooksPage'),
  }),
  createRoute({
    getParentRoute: () => signedInRoute,
    path: '/develop/webhooks/$webhookId',
    loader: ({ context }) => context.queries.ensureQueryData(webhooksQuery),
    component: lazyRouteComponent(() => import('./webhook-page.tsx'), 'WebhookPage'),
  }),
  createRoute({
    getParentRoute: () => signedInRoute,
    path: '/develop/platforms',
    loader: ({ context }) => context.queries.ensureQueryData(platformsQuery),
    component: lazyRouteComponent(() => import('./platforms-page.tsx'), 'PlatformsPage'),
  }),
  createRoute({
    getParentRoute: () => signedInRoute,
    path: '/develop/limits',
    loader: ({ context: { queries } }) =>
      Promise.all([
        queries.ensureQueryData(accountQuery),
        queries.ensureQueryData(bansQuery),
        queries.ensureQueryData(keysQuery),
      ]),
    component: lazyRouteComponent(() => import('./limits-page.tsx'), 'LimitsPage'),
  }),
] as const
