import type { LinkProps } from '@tanstack/react-router'
import { ActivityIcon, DevelopIcon, SystemIcon, VideosIcon, ViewersIcon } from '../ui/icons.tsx'

export type NavigationItem = { label: string; to: NonNullable<LinkProps['to']>; Icon: typeof VideosIcon }

/** The items of the side bar, and of the bar at the bottom of a phone. A page is named here when it is finished. */
export const NAVIGATION: readonly NavigationItem[] = [
  { label: 'Videos', to: '/videos', Icon: VideosIcon },
  { label: 'Viewers', to: '/viewers', Icon: ViewersIcon },
  { label: 'Activity', to: '/activity', Icon: ActivityIcon },
  { label: 'Develop', to: '/develop', Icon: DevelopIcon },
  { label: 'System', to: '/system', Icon: SystemIcon },
]
