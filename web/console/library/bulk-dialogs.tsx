import { MultiSelect, TagsInput } from '@mantine/core'
import { useMutation, useQuery } from '@tanstack/react-query'
import { lazy, Suspense, useState } from 'react'
import { useForm } from 'react-hook-form'
import type { VideoBody } from '../../../src/http/api/video-body.ts'
import { callApi } from '../api.ts'
import { ROOT_FOLDER_ID } from '../catalogue/folder-path.ts'
import { FolderSelect } from '../catalogue/folder-select.tsx'
import { tagsQuery } from '../catalogue/queries.ts'
import { Dialog } from '../ui/dialog.tsx'
import { useField } from '../ui/form.tsx'
import { countVideos, formatCount } from '../units.ts'
import styles from './bulk-dialogs.module.css'
import type { BulkAction, BulkDialogProps } from './use-selection.ts'

// Its fields are as large as the rest.
const ProtectDialog = lazy(() => import('./protect-dialog.tsx').then(({ ProtectDialog }) => ({ default: ProtectDialog })))

/** What is to be done with all selected videos. */
export function BulkDialog({ action, ...props }: BulkDialogProps & { action: BulkAction }) {
  if (action === 'tag') return <TagDialog {...props} />
  if (action === 'protect')
    return (
      <Suspense>
        <ProtectDialog {...props} />
      </Suspense>
    )
  return action === 'move' ? <MoveDialog {...props} /> : <DeleteDialog {...props} />
}

type ChangedTags = { added: string[]; removed: string[] }

function TagDialog({ videos, onClose, onDone }: BulkDialogProps) {
  const { data: known = [] } = useQuery(tagsQuery)
  const [typed, setTyped] = useState('')
  const { control, handleSubmit, formState } = useForm<ChangedTags>({ defaultValues: { added: [], removed: [] } })
  const added = useField({ control, name: 'added' })
  const removed = useField({ control, name: 'removed' })
  const present = [...new Set(videos.flatMap(({ tags }) => tags))].toSorted((a, b) => a.localeCompare(b))
  const save = useMutation({
    async mutationFn({ added, removed }: ChangedTags) {
      const ids = idsOf(videos)
      if (added.length > 0) await callApi<unknown>('POST', 'videos/tags', { body: { videos: ids, tags: added } })
      if (removed.length > 0) await callApi<unknown>('DELETE', 'videos/tags', { body: { videos: ids, tags: removed } })
    },
    onSuccess: () => onDone(`The tags of ${countVideos(videos.length)} have been changed.`),
  })
  return (
    <Dialog
      title={`Tag ${countVideos(videos.length)}`}
      onClose={onClose}
      action="Save"
      change={save}
      isDisabled={!formState.isDirty}
      onSubmit={handleSubmit((changed) => save.mutate(changed))}
    >
      <TagsInput
        label="Add tags"
        description="Enter ends a tag."
        data={typed === '' ? [] : known} // a list that is open all the time would cover the buttons
        searchValue={typed}
        onSearchChange={setTyped}
        limit={50}
        acceptValueOnBlur
        data-autofocus
        {...added}
      />
      {present.length > 0 && <MultiSelect label="Remove tags" data={present} hidePickedOptions searchable {...removed} />}
    </Dialog>
  )
}

function MoveDialog({ videos, onClose, onDone }: BulkDialogProps) {
  const { control, handleSubmit } = useForm({ defaultValues: { folderId: ROOT_FOLDER_ID } })
  const folderId = useField({ control, name: 'folderId' })
  const move = useMutation({
    mutationFn: (to: { folderId: string }) => callApi<unknown>('POST', 'videos/move', { body: { videos: idsOf(videos), ...to } }),
    onSuccess: () => onDone(`${countVideos(videos.length)} moved.`),
  })
  return (
    <Dialog
      title={`Move ${countVideos(videos.length)}`}
      onClose={onClose}
      action="Move"
      change={move}
      onSubmit={handleSubmit((to) => move.mutate(to))}
    >
      <FolderSelect label="To" {...folderId} />
    </Dialog>
  )
}

const MAX_NAMED = 5

function idsOf(videos: readonly VideoBody[]): string[] {
  return videos.map(({ id }) => id)
}

function DeleteDialog({ videos, onClose, onDone }: BulkDialogProps) {
  const withFile = videos.filter(({ status }) => status !== 'PRE-Upload').length
  const remove = useMutation({
    mutationFn: () => callApi<unknown>('DELETE', 'videos', { query: { trash: 1 }, body: { videos: idsOf(videos) } }),
    onSuccess: () =>
      onDone(withFile === 0 ? `${countVideos(videos.length)} deleted.` : `${countVideos(withFile)} moved to the trash.`),
  })
  const others = videos.length - MAX_NAMED
  return (
    <Dialog
      title={`Delete ${countVideos(videos.length)}?`}
      onClose={onClose}
      action={`Delete ${countVideos(videos.length)}`}
      color="stop"
      change={remove}
      onSubmit={() => remove.mutate()}
    >
      <ul className={styles.names}>
        {videos.slice(0, MAX_NAMED).map(({ id, title }) => (
          <li key={id}>{title}</li>
        ))}
        {others > 0 && <li>and {formatCount(others)} more</li>}
      </ul>
      <p>{whatDeletingMeans(videos.length, withFile)}</p>
    </Dialog>
  )
}

/** The trash is for files: a video that waits for its own has nothing to restore. */
function whatDeletingMeans(all: number, withFile: number): string {
  const kept =
    withFile === 1
      ? 'It stops playing everywhere. For 7 days you can restore it from the trash.'
      : 'They stop playing everywhere. For 7 days you can restore them from the trash.'
  if (withFile === all) return kept
  if (withFile > 0) return `${kept} Those that still wait for a file are deleted for good.`
  return all === 1 ? 'It has no file yet, and is deleted for good.' : 'They have no file yet, and are deleted for good.'
}
