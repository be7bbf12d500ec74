import { Button, MultiSelect, TagsInput } from '@mantine/core'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import type { VideoBody } from '../../../src/http/api/video-body.ts'
import { callApi } from '../api.ts'
import { useAnnounce } from '../app/announcements.tsx'
import { Dialog } from '../app/dialog.tsx'
import { CloseIcon, FolderIcon, TagIcon, TrashIcon } from '../app/icons.tsx'
import { formatCount } from '../units.ts'
import styles from './bulk-actions.module.css'
import { FolderSelect } from './folder-dialogs.tsx'
import { ROOT_FOLDER_ID } from './folder-path.ts'
import { refreshLibrary, tagsQuery } from './queries.ts'
import type { Selection } from './use-selection.ts'

export type BulkAction = 'tag' | 'move' | 'delete'

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
  }
  if (selection.size === 0) return null
  const videos = selection.videos()
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
      <TagDialog videos={videos} isOpen={open === 'tag'} onClose={close} onDone={done} />
      <MoveDialog videos={videos} isOpen={open === 'move'} onClose={close} onDone={done} />
      <DeleteDialog videos={videos} isOpen={open === 'delete'} onClose={close} onDone={done} />
    </>
  )
}

type BulkDialogProps = { videos: readonly VideoBody[]; isOpen: boolean; onClose(): void; onDone(sentence: string): Promise<void> }

export function countVideos(count: number): string {
  return count === 1 ? '1 video' : `${formatCount(count)} videos`
}

function TagDialog({ videos, isOpen, onClose, onDone }: BulkDialogProps) {
  const { data: known = [] } = useQuery(tagsQuery)
  const [added, setAdded] = useState<string[]>([])
  const [removed, setRemoved] = useState<string[]>([])
  const present = [...new Set(videos.flatMap(({ tags }) => tags))].toSorted((a, b) => a.localeCompare(b))
  const save = useMutation({
    async mutationFn() {
      const ids = videos.map(({ id }) => id)
      if (added.length > 0) await callApi<unknown>('POST', 'videos/tags', { body: { videos: ids, tags: added } })
      if (removed.length > 0) await callApi<unknown>('DELETE', 'videos/tags', { body: { videos: ids, tags: removed } })
    },
    onSuccess: () => onDone(`The tags of ${countVideos(videos.length)} have been changed.`),
  })
  return (
    <Dialog
      title={`Tag ${countVideos(videos.length)}`}
      isOpen={isOpen}
      onClose={onClose}
      action="Save"
      isBusy={save.isPending}
      isDisabled={added.length === 0 && removed.length === 0}
      error={save.error}
      onSubmit={() => save.mutate()}
    >
      <TagsInput
        label="Add tags"
        description="Enter ends a tag."
        data={known}
        value={added}
        onChange={setAdded}
        limit={50}
        acceptValueOnBlur
        data-autofocus
      />
      {present.length > 0 && (
        <MultiSelect label="Remove tags" data={present} value={removed} onChange={setRemoved} hidePickedOptions searchable />
      )}
    </Dialog>
  )
}

function MoveDialog({ videos, isOpen, onClose, onDone }: BulkDialogProps) {
  const [folderId, setFolderId] = useState(ROOT_FOLDER_ID)
  const move = useMutation({
    async mutationFn() {
      for (const { id } of videos) await callApi<unknown>('POST', `videos/${id}`, { body: { folderId } })
    },
    onSuccess: () => onDone(`${countVideos(videos.length)} moved.`),
  })
  return (
    <Dialog
      title={`Move ${countVideos(videos.length)}`}
      isOpen={isOpen}
      onClose={onClose}
      action="Move"
      isBusy={move.isPending}
      error={move.error}
      onSubmit={() => move.mutate()}
    >
      <FolderSelect label="To" value={folderId} onChange={setFolderId} />
    </Dialog>
  )
}

const MAX_NAMED = 5

function DeleteDialog({ videos, isOpen, onClose, onDone }: BulkDialogProps) {
  const remove = useMutation({
    mutationFn: () => callApi<unknown>('DELETE', 'videos', { body: { videos: videos.map(({ id }) => id) } }),
    onSuccess: () => onDone(`${countVideos(videos.length)} deleted.`),
  })
  const others = videos.length - MAX_NAMED
  return (
    <Dialog
      title={`Delete ${countVideos(videos.length)}?`}
      isOpen={isOpen}
      onClose={onClose}
      action={`Delete ${countVideos(videos.length)}`}
      color="stop"
      isBusy={remove.isPending}
      error={remove.error}
      onSubmit={() => remove.mutate()}
    >
      <ul className={styles.names}>
        {videos.slice(0, MAX_NAMED).map(({ id, title }) => (
          <li key={id}>{title}</li>
        ))}
        {others > 0 && <li>and {formatCount(others)} more</li>}
      </ul>
      <p>They stop playing everywhere, and their files and keys are destroyed. This cannot be undone.</p>
    </Dialog>
  )
}
