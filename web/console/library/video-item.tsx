import { Skeleton } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import { memo } from 'react'
import type { VideoBody } from '../../../src/http/api/video-body.ts'
import { isUnderWay, lookOf } from '../catalogue/status.ts'
import { useMinute } from '../ui/use-minute.ts'
import { countViews, formatAgo, formatBytes, formatCount, formatDuration, formatMoment } from '../units.ts'
import { Poster } from './poster.tsx'
import styles from './video-item.module.css'

type VideoItemProps = {
  video: VideoBody
  /** Undefined until they are known. */
  views: number | undefined
  isSelected: boolean
  /** Whether any video is selected: then each shows its box. */
  isSelecting: boolean
  /** Whether the person may select videos. */
  maySelect: boolean
  /** 0 for one video of the list, -1 for all others. */
  tabIndex: number
}

/** A video as a line of the table. */
export const VideoRow = memo(function VideoRow(props: VideoItemProps) {
  const { video, views, isSelected } = props
  return (
    <div className={styles.row} data-selected={isSelected || undefined}>
      <PickBox {...props} />
      <div className={styles.still}>
        <Poster video={video} widthPx={96} />
        {video.length > 0 && (
          <span className={styles.length}>
            <Length video={video} />
          </span>
        )}
      </div>
      <div className={styles.text}>
        <Title {...props} />
        <Below video={video} />
      </div>
      <div className={styles.state}>
        <State video={video} />
        {views !== undefined && <span className={styles.views}>{countViews(views)}</span>}
      </div>
      <div className={styles.number}>
        <Length video={video} />
      </div>
      <div className={styles.number}>
        <span className="visually-hidden">Size </span>
        {video.totalSizeBytes > 0 && formatBytes(video.totalSizeBytes)}
      </div>
      <div className={styles.number}>
        <span className="visually-hidden">Views </span>
        {views !== undefined && formatCount(views)}
      </div>
      <Added video={video} />
    </div>
  )
})

/** A video as a card. */
export const VideoCard = memo(function VideoCard(props: VideoItemProps) {
  const { video, isSelected } = props
  return (
    <div className={styles.card} data-selected={isSelected || undefined}>
      <div className={styles.cardStill}>
        <Poster video={video} widthPx={320} />
        {video.length > 0 && (
          <span className={styles.length}>
            <Length video={video} />
          </span>
        )}
        <div className={styles.cardPick}>
          <PickBox {...props} />
        </div>
      </div>
      <Title {...props} />
      <div className={styles.cardBelow}>
        <State video={video} />
        <Added video={video} />
      </div>
    </div>
  )
})

/** In the place of a video whose page is loading. */
export function LoadingItem({ view }: { view: 'table' | 'cards' }) {
  if (view === 'table')
    return (
      <div className={styles.row}>
        <span />
        <Skeleton width={96} height={54} radius={6} />
        <Skeleton height={14} width="45%" />
      </div>
    )
  return (
    <div className={styles.card}>
      <Skeleton className={styles.cardStill} radius={6} />
      <Skeleton height={14} width="70%" />
    </div>
  )
}

/** As Mantine's look, but one element: a search draws dozens of them between two letters. */
function PickBox({ video, isSelected, isSelecting, maySelect, tabIndex }: VideoItemProps) {
  if (!maySelect) return <span />
  return (
    <input
      type="checkbox"
      aria-label={`Select ${video.title}`}
      className={styles.box}
      data-shown={isSelecting || undefined}
      tabIndex={tabIndex}
      checked={isSelected}
      onChange={() => undefined} // the list listens for the click, which knows of Shift
    />
  )
}

function Title({ video, tabIndex }: VideoItemProps) {
  return (
    <Link
      to="/videos/$videoId"
      params={{ videoId: video.id }}
      className={styles.title}
      title={video.title}
      tabIndex={tabIndex}
      data-video
    >
      {video.title}
    </Link>
  )
}

/** What is missing or went wrong, else the tags. */
function Below({ video }: { video: VideoBody }) {
  if (video.statusReason) return <span className={styles.reason}>{video.statusReason}</span>
  return <span className={styles.tags}>{video.tags.join(' · ')}</span>
}

function State({ video: { status, replacement } }: { video: VideoBody }) {
  const { label, color } = lookOf(status, replacement)
  return (
    <span className={styles.status} data-color={color} data-under-way={isUnderWay(status, replacement) || undefined}>
      {label}
    </span>
  )
}

function Length({ video: { length } }: { video: VideoBody }) {
  if (length === 0) return null
  return (
    <>
      <span className="visually-hidden">Length </span>
      {formatDuration(length)}
    </>
  )
}

function Added({ video: { upload_time: addedAtS } }: { video: VideoBody }) {
  useMinute()
  return (
    <span className={styles.added} title={formatMoment(addedAtS)}>
      <span className="visually-hidden">Added </span>
      {formatAgo(addedAtS)}
    </span>
  )
}
