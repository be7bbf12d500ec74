import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { signedInRoute } from '../app/root-routes.tsx'
import { videoQuery } from './queries.ts'

export const videoRoutes = [
  createRoute({
    getParentRoute: () => signedInRoute,
    path: '/videos/$videoId',
    loader: ({ context, params }) => context.queries.ensureQueryData(videoQuery(params.videoId)),
    component: lazyRouteComponent(() => import('./video-page.tsx'), 'VideoPage'),
  }),
] as const
