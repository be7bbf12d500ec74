import { Button } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { lazy, Suspense } from 'react'
import { refreshLibrary } from '../catalogue/queries.ts'
import { useAnnounce } from '../ui/announcements.tsx'
import { focusIfLost } from '../ui/focus.ts'
import { CloseIcon, FolderIcon, LockIcon, TagIcon, TrashIcon } from '../ui/icons.tsx'
import { formatCount } from '../units.ts'
import styles from './bulk-actions.module.css'
import type { BulkAction, Selection } from './use-selection.ts'

const BulkDialog = lazy(() => import('./bulk-dialogs.tsx').then(({ BulkDialog }) => ({ default: BulkDialog })))

type BulkActionsProps = { selection: Selection; open: BulkAction | undefined; onOpen(action: BulkAction | undefined): void }

/** What can be done with the selected videos, in a bar over the list while any is selected. */
export function BulkActions({ selection, open, onOpen }: BulkActionsProps) {
  const queries = useQueryClient()
  const announce = useAnnounce()
  const close = () => onOpen(undefined)
  const done = async (sentence: string) => {
    close()
    selection.clear()
    announce(sentence)
    await refreshLibrary(queries)
    focusIfLost()
  }
  if (selection.size === 0) return null
  return (
    <>
      <div role="toolbar" aria-label="Selected videos" className={styles.bar}>
        <span className={styles.count}>{formatCount(selection.size)} selected</span>
        <Button variant="subtle" color="gray" size="sm" leftSection={<TagIcon size={16} />} onClick={() => onOpen('tag')}>
          Tag
        </Button>
        <Button variant="subtle" color="gray" size="sm" leftSection={<FolderIcon size={16} />} onClick={() => onOpen('move')}>
          Move
        </Button>
        <Button variant="subtle" color="gray" size="sm" leftSection={<LockIcon size={16} />} onClick={() => onOpen('protect')}>
          Protect
        </Button>
        <Button variant="subtle" color="stop" size="sm" leftSection={<TrashIcon size={16} />} onClick={() => onOpen('delete')}>
          Delete
        </Button>
        <Button
          variant="subtle"
          color="gray"
          size="sm"
          aria-label="Clear the selection"
          onClick={selection.clear}
          className={styles.clear}
        >
          <CloseIcon size={16} />
        </Button>
      </div>
      <Suspense>{open && <BulkDialog action={open} videos={selection.videos()} onClose={close} onDone={done} />}</Suspense>
    </>
  )
}
