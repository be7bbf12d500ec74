import { TextInput } from '@mantine/core'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { useState } from 'react'
import type { FolderBody, FolderContents } from '../../../src/http/api/folders.ts'
import { callApi } from '../api.ts'
import { ROOT_FOLDER_ID } from '../catalogue/folder-path.ts'
import { FolderSelect } from '../catalogue/folder-select.tsx'
import { refreshLibrary } from '../catalogue/queries.ts'
import { useAnnounce } from '../ui/announcements.tsx'
import { Dialog } from '../ui/dialog.tsx'

const route = getRouteApi('/signed-in/videos')

type Folder = FolderContents['current']
type DialogState = { onClose(): void }

/** Creates a folder in another one, or renames and moves one. */
export function EditFolderDialog({ folder, parentId, onClose }: DialogState & { folder?: Folder; parentId?: string }) {
  const queries = useQueryClient()
  const announce = useAnnounce()
  const before = { name: folder?.name ?? '', parent: folder?.parent ?? parentId ?? ROOT_FOLDER_ID }
  const [changes, setChanges] = useState<Partial<typeof before>>({})
  const { name, parent } = { ...before, ...changes }
  const save = useMutation({
    mutationFn: () =>
      folder
        ? callApi<unknown>('PUT', `videos/folders/${folder.id}`, { body: { name, parent } })
        : callApi<FolderBody>('POST', 'videos/folders', { body: { name, parent } }),
    async onSuccess() {
      await refreshLibrary(queries)
      announce(folder ? 'The folder has been changed.' : `The folder ${name} has been created.`)
      onClose()
    },
  })
  return (
    <Dialog
      title={folder ? 'Rename or move the folder' : 'New folder'}
      onClose={onClose}
      action={folder ? 'Save' : 'Create'}
      isBusy={save.isPending}
      isDisabled={name.trim() === ''}
      error={save.error}
      onSubmit={() => save.mutate()}
    >
      <TextInput
        label="Name"
        value={name}
        maxLength={255}
        data-autofocus
        onChange={({ target }) => setChanges({ ...changes, name: target.value })}
      />
      <FolderSelect label="In" value={parent} without={folder?.id} onChange={(parent) => setChanges({ ...changes, parent })} />
    </Dialog>
  )
}

/** Its videos and folders move to the folder around it. */
export function DeleteFolderDialog({ folder, onClose }: DialogState & { folder: Folder }) {
  const queries = useQueryClient()
  const navigate = route.useNavigate()
  const remove = useMutation({
    mutationFn: () => callApi<unknown>('DELETE', `videos/folders/${folder.id}`),
    async onSuccess() {
      await navigate({ search: (before) => ({ ...before, folder: folder.parent ?? undefined }), replace: true })
      await refreshLibrary(queries)
    },
  })
  return (
    <Dialog
      title={`Delete the folder ${folder.name}?`}
      onClose={onClose}
      action="Delete the folder"
      color="stop"
      isBusy={remove.isPending}
      error={remove.error}
      onSubmit={() => remove.mutate()}
    >
      <p>The videos and folders in it are kept: they move to the folder around it.</p>
    </Dialog>
  )
}
