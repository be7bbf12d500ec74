import { Link } from '@tanstack/react-router'

/** A video by its title; null: it was deleted. */
export function VideoLink({ id, title, tab }: { id: string; title: string | null; tab?: 'statistics' }) {
  if (title === null) return 'Deleted video'
  return (
    <Link to="/videos/$videoId" params={{ videoId: id }} search={tab && { tab }}>
      {title}
    </Link>
  )
}
