import { createElement, type ReactNode } from 'react'

// Drawn in strokes on 24 × 24, as decoration: what has an icon also has a name.

type IconProps = { size?: number }

const DRAWING = {
  ...{ 'aria-hidden': true, viewBox: '0 0 24 24', style: { flex: 'none' } },
  ...{ fill: 'none', stroke: 'currentColor', strokeWidth: 1.75, strokeLinecap: 'round', strokeLinejoin: 'round' },
} as const

function icon(...strokes: ReactNode[]) {
  return ({ size = 18 }: IconProps) => createElement('svg', { ...DRAWING, width: size, height: size }, ...strokes)
}

export const VideosIcon = icon(<rect x="3" y="5" width="18" height="14" rx="2.5" />, <path d="M10 9.5v5l4.5-2.5z" />)
export const SearchIcon = icon(<circle cx="11" cy="11" r="6.5" />, <path d="m16 16 4.5 4.5" />)
export const PlusIcon = icon(<path d="M12 5v14M5 12h14" />)
export const UploadIcon = icon(<path d="M12 16V4m0 0L7 9m5-5 5 5M4 16v2.5A1.5 1.5 0 0 0 5.5 20h13a1.5 1.5 0 0 0 1.5-1.5V16" />)
export const LinkIcon = icon(
  <path d="M9.5 14.5 14.5 9.5M11 7l1.7-1.7a4 4 0 0 1 5.7 5.7L16.5 13M13 17l-1.7 1.7a4 4 0 0 1-5.7-5.7L7.5 11" />,
)
export const FolderIcon = icon(
  <path d="M3 7.5A1.5 1.5 0 0 1 4.5 6h4.6l2 2.5h8.4A1.5 1.5 0 0 1 21 10v7.5a1.5 1.5 0 0 1-1.5 1.5h-15A1.5 1.5 0 0 1 3 17.5z" />,
)
export const TagIcon = icon(<path d="M3.5 4.5v7l9 9 7.5-7.5-9-9h-7z" />, <circle cx="8" cy="9" r="1.2" />)
export const LockIcon = icon(<rect x="5" y="11" width="14" height="9" rx="2" />, <path d="M8 11V8a4 4 0 0 1 8 0v3" />)
export const TrashIcon = icon(<path d="M4 7h16M9.5 7V4.5h5V7M6.5 7l.8 12.5h9.4L17.5 7M10 11v5M14 11v5" />)
export const RowsIcon = icon(<path d="M4 6h16M4 12h16M4 18h16" />)
export const CardsIcon = icon(
  <rect x="4" y="4" width="6.5" height="6.5" rx="1.5" />,
  <rect x="13.5" y="4" width="6.5" height="6.5" rx="1.5" />,
  <rect x="4" y="13.5" width="6.5" height="6.5" rx="1.5" />,
  <rect x="13.5" y="13.5" width="6.5" height="6.5" rx="1.5" />,
)
export const CopyIcon = icon(
  <rect x="8.5" y="8.5" width="11.5" height="11.5" rx="2" />,
  <path d="M15.5 8.5V6a2 2 0 0 0-2-2H6a2 2 0 0 0-2 2v7.5a2 2 0 0 0 2 2h2.5" />,
)
export const CheckIcon = icon(<path d="m5 12.5 4.5 4.5L19 7.5" />)
export const CloseIcon = icon(<path d="m6 6 12 12M18 6 6 18" />)
export const ChevronDownIcon = icon(<path d="m6 9.5 6 6 6-6" />)
export const ChevronRightIcon = icon(<path d="m9.5 6 6 6-6 6" />)
export const WarningIcon = icon(<path d="M12 4 2.5 20h19zM12 10v4.5M12 17.3v.2" />)
export const ReloadIcon = icon(<path d="M19.5 12A7.5 7.5 0 1 1 17 6.4M19.5 3.5V8H15" />)
export const PersonIcon = icon(<circle cx="12" cy="8" r="3.8" />, <path d="M4.5 20c.8-3.8 3.7-5.8 7.5-5.8s6.7 2 7.5 5.8" />)
export const ViewersIcon = icon(
  <circle cx="9" cy="8.5" r="3.3" />,
  <path d="M2.8 19c.6-3.3 3-5.2 6.2-5.2s5.6 1.9 6.2 5.2M15.5 5.6a3.3 3.3 0 0 1 0 5.8M17.6 14.4c2 .7 3.2 2.3 3.6 4.6" />,
)
export const ActivityIcon = icon(<path d="M3 12.5h3.5L9.5 5l5 14 3-6.5H21" />)
export const DevelopIcon = icon(<path d="m8.5 7-5 5 5 5M15.5 7l5 5-5 5" />)
export const SystemIcon = icon(
  <rect x="4" y="4.5" width="16" height="6" rx="1.5" />,
  <rect x="4" y="13.5" width="16" height="6" rx="1.5" />,
  <path d="M7.5 7.5v.1M7.5 16.5v.1M11 7.5h5.5M11 16.5h5.5" />,
)
export const SunIcon = icon(
  <circle cx="12" cy="12" r="3.8" />,
  <path d="M12 3v1.5M12 19.5V21M3 12h1.5M19.5 12H21M5.6 5.6l1 1M17.4 17.4l1 1M5.6 18.4l1-1M17.4 6.6l1-1" />,
)
export const MoonIcon = icon(<path d="M20 14A8.2 8.2 0 0 1 10 4a8.2 8.2 0 1 0 10 10z" />)
export const ScreenIcon = icon(<path d="M4.5 5h15v11h-15zM9 20h6M12 16v4" />)
export const SignOutIcon = icon(
  <path d="M14 4H6.5A1.5 1.5 0 0 0 5 5.5v13A1.5 1.5 0 0 0 6.5 20H14M10 12h10.5m0 0L17 8.5m3.5 3.5L17 15.5" />,
)
export const KeyIcon = icon(<circle cx="8" cy="15.5" r="4" />, <path d="m11 12.5 8.5-8.5M16 7.5l3 3" />)
export const BookIcon = icon(
  <path d="M5 4.5h10.5A2.5 2.5 0 0 1 18 7v13H7.5A2.5 2.5 0 0 1 5 17.5zM5 17.5A2.5 2.5 0 0 1 7.5 15H18M9 8.5h5" />,
)
export const MoreIcon = icon(
  <circle cx="5.5" cy="12" r="0.8" fill="currentColor" />,
  <circle cx="12" cy="12" r="0.8" fill="currentColor" />,
  <circle cx="18.5" cy="12" r="0.8" fill="currentColor" />,
)
