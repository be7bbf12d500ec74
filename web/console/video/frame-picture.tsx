import { useQuery } from '@tanstack/react-query'
import type { CSSProperties } from 'react'
import styles from './frame-picture.module.css'
import { storyboardQuery } from './queries.ts'

type FramePictureProps = {
  videoId: string
  /** Seconds from the start of what plays now. Undefined, or a time outside of it: the place stays empty. */
  timeS: number | undefined
}

/** A small picture of the video at a time, from its storyboard; nothing while there is none. What it shows is said next to it. */
export function FramePicture({ videoId, timeS }: FramePictureProps) {
  const { data: storyboard } = useQuery(storyboardQuery(videoId))
  if (!storyboard || storyboard.count === 0) return null
  const { intervalS, count, width, height, columns, rows, sheets } = storyboard
  const aspect = width / height
  const shape: CSSProperties = {
    aspectRatio: aspect,
    width: `min(var(--frame-width, 160px), var(--frame-height, 90px) * ${aspect})`,
  }
  if (timeS === undefined || timeS < 0 || timeS > count * intervalS + intervalS)
    return <span className={styles.picture} style={shape} />
  const tile = Math.min(count - 1, Math.floor(timeS / intervalS))
  const onSheet = tile % (columns * rows)
  const share = (place: number, places: number) => (places === 1 ? 0 : (100 * place) / (places - 1))
  return (
    <span
      className={styles.picture}
      data-tile={tile}
      style={{
        ...shape,
        backgroundImage: `url("${sheets[Math.floor(tile / (columns * rows))] ?? ''}")`,
        backgroundSize: `${100 * columns}% ${100 * rows}%`,
        backgroundPosition: `${share(onSheet % columns, columns)}% ${share(Math.floor(onSheet / columns), rows)}%`,
      }}
    />
  )
}
