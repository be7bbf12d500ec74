import { TextInput } from '@mantine/core'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { useForm } from 'react-hook-form'
import type { FolderBody, FolderContents } from '../../../src/http/api/folders.ts'
import { callApi } from '../api.ts'
import { ROOT_FOLDER_ID } from '../catalogue/folder-path.ts'
import { FolderSelect } from '../catalogue/folder-select.tsx'
import { refreshLibrary } from '../catalogue/queries.ts'
import { useAnnounce } from '../ui/announcements.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { FILLED, useField } from '../ui/form.tsx'

const route = getRouteApi('/signed-in/videos')

type Folder = FolderContents['current']
type EditedFolder = { name: string; parent: string }
type DialogState = { onClose(): void }

/** Creates a folder in another one, or renames and moves one. */
export function EditFolderDialog({ folder, parentId, onClose }: DialogState & { folder?: Folder; parentId?: string }) {
  const queries = useQueryClient()
  const announce = useAnnounce()
  const { control, register, handleSubmit, formState } = useForm<EditedFolder>({
    defaultValues: { name: folder?.name ?? '', parent: folder?.parent ?? parentId ?? ROOT_FOLDER_ID },
  })
  const parent = useField({ control, name: 'parent' })
  const save = useMutation({
    mutationFn: (body: EditedFolder) =>
      folder
        ? callApi<unknown>('PUT', `videos/folders/${folder.id}`, { body })
        : callApi<FolderBody>('POST', 'videos/folders', { body }),
    async onSuccess(_reply, { name }) {
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
      isDisabled={!formState.isValid}
      error={save.error}
      onSubmit={handleSubmit((edited) => save.mutate(edited))}
    >
      <TextInput label="Name" maxLength={255} data-autofocus {...register('name', FILLED)} />
      <FolderSelect label="In" without={folder?.id} {...parent} />
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
