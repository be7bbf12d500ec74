import { Button, Checkbox } from '@mantine/core'
import { useSuspenseQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import type { TrashBody } from '../../../src/http/api/trash.ts'
import { callApi, csvUrl } from '../api.ts'
import { LIBRARY } from '../catalogue/queries.ts'
import { useMay } from '../sign-in/queries.ts'
import { ConfirmDialog } from '../ui/confirm-dialog.tsx'
import { CsvLink } from '../ui/csv-link.tsx'
import { FailureNotice } from '../ui/failure.tsx'
import { Page } from '../ui/page.tsx'
import { useChange } from '../ui/use-change.ts'
import { countVideos, formatBytes, formatCount, formatDuration, formatIn, formatMoment } from '../units.ts'
import { trashQuery } from './queries.ts'
import styles from './trash-page.module.css'

type Trashed = TrashBody['rows'][number]

/** What was deleted in the last 7 days: restored with its tags and folder, or deleted now. */
export function TrashPage() {
  const { data } = useSuspenseQuery(trashQuery)
  const mayEdit = useMay('editor')
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set())
  const ids = data.rows.map(({ id }) => id).filter((id) => selected.has(id))
  const select = (id: string, isSelected: boolean) =>
    setSelected((before) => new Set(isSelected ? [...before, id] : [...before].filter((other) => other !== id)))
  return (
    <Page title="Trash" above={<Link to="/videos">← Videos</Link>}>
      <p className={styles.lead}>
        {data.count === 0
          ? 'The trash is empty. Deleted videos stay here for 7 days.'
          : `${countVideos(data.count)}, ${formatBytes(data.totalSizeBytes)}. They play nowhere, and are deleted for good 7 days after they came here.`}
      </p>
      {mayEdit && data.count > 0 && (
        <div className={styles.actions}>
          <Checkbox
            label={data.count > data.rows.length ? `Select the newest ${formatCount(data.rows.length)}` : 'Select all'}
            checked={ids.length === data.rows.length}
            indeterminate={ids.length > 0 && ids.length < data.rows.length}
            onChange={({ target }) => setSelected(new Set(target.checked ? data.rows.map(({ id }) => id) : []))}
          />
          <TrashActions ids={ids} onDone={() => setSelected(new Set())} />
        </div>
      )}
      <ul className={styles.list} aria-label="Videos in the trash">
        {data.rows.map((video) => (
          <TrashItem
            key={video.id}
            video={video}
            isSelected={selected.has(video.id)}
            onSelect={mayEdit ? (isSelected) => select(video.id, isSelected) : undefined}
          />
        ))}
      </ul>
      {data.count > 0 && <CsvLink of="The trash" href={csvUrl('trash')} />}
    </Page>
  )
}

type TrashItemProps = { video: Trashed; isSelected: boolean; onSelect: ((isSelected: boolean) => void) | undefined }

function TrashItem({ video: { title, length, totalSizeBytes, deletedAt }, isSelected, onSelect }: TrashItemProps) {
  const endsAtS = Date.parse(deletedAt) / 1000
  return (
    <li className={styles.item}>
      {onSelect && (
        <Checkbox aria-label={`Select ${title}`} checked={isSelected} onChange={({ target }) => onSelect(target.checked)} />
      )}
      <span className={styles.title}>{title}</span>
      <span className={styles.detail}>{length > 0 && formatDuration(length)}</span>
      <span className={styles.detail}>{formatBytes(totalSizeBytes)}</span>
      <span className={styles.detail} title={formatMoment(endsAtS)}>
        deleted for good {formatIn(endsAtS)}
      </span>
    </li>
  )
}

function TrashActions({ ids, onDone }: { ids: readonly string[]; onDone(): void }) {
  const [isAsking, setAsking] = useState(false)
  const restore = useChange({
    call: () => callApi<unknown>('POST', 'trash/restore', { body: { videos: ids } }),
    announced: `${countVideos(ids.length)} restored.`,
    onDone,
    refreshes: LIBRARY,
  })
  return (
    <>
      <Button disabled={ids.length === 0} loading={restore.isPending} onClick={() => restore.mutate()}>
        Restore
      </Button>
      <Button variant="default" disabled={ids.length === 0} onClick={() => setAsking(true)}>
        Delete now
      </Button>
      {restore.error && <FailureNotice error={restore.error} />}
      {isAsking && (
        <ConfirmDialog
          title={`Delete ${countVideos(ids.length)} for good?`}
          onClose={() => setAsking(false)}
          action="Delete for good"
          color="stop"
          call={() => callApi<unknown>('DELETE', 'trash', { body: { videos: ids } })}
          announced={`${countVideos(ids.length)} deleted for good.`}
          onDone={() => {
            setAsking(false)
            onDone()
          }}
          refreshes={LIBRARY}
        >
          <p>Their files are removed and their keys destroyed. This cannot be undone.</p>
        </ConfirmDialog>
      )}
    </>
  )
}
