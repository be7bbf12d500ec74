import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { signedInRoute } from '../sign-in/root-routes.tsx'
import { videoQuery } from './queries.ts'
import { VIDEO_TABS, type VideoTab } from './tabs.ts'

export const videoRoutes = [
  createRoute({
    getParentRoute: () => signedInRoute,
    path: '/videos/$videoId',
    validateSearch: ({ tab }): { tab?: VideoTab } => ({ tab: VIDEO_TABS.find((known) => known === tab) }),
    loader: ({ context, params }) => context.queries.ensureQueryData(videoQuery(params.videoId)),
    component: lazyRouteComponent(() => import('./video-page.tsx'), 'VideoPage'),
  }),
] as const
