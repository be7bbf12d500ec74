import { TextInput } from '@mantine/core'
import { getRouteApi } from '@tanstack/react-router'
import { useForm } from 'react-hook-form'
import type { FolderContents } from '../../../src/http/api/folders.ts'
import { callApi } from '../api.ts'
import { ROOT_FOLDER_ID } from '../catalogue/folder-path.ts'
import { FolderSelect } from '../catalogue/folder-select.tsx'
import { LIBRARY } from '../catalogue/queries.ts'
import { ConfirmDialog } from '../ui/confirm-dialog.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { FILLED, useField } from '../ui/form.tsx'
import { useChange } from '../ui/use-change.ts'

const route = getRouteApi('/signed-in/videos')

type Folder = FolderContents['current']
type EditedFolder = { name: string; parent: string }
type DialogState = { onClose(): void }

/** Creates a folder in another one, or renames and moves one. */
export function EditFolderDialog({ folder, parentId, onClose }: DialogState & { folder?: Folder; parentId?: string }) {
  const { control, register, handleSubmit, formState } = useForm<EditedFolder>({
    defaultValues: { name: folder?.name ?? '', parent: folder?.parent ?? parentId ?? ROOT_FOLDER_ID },
  })
  const parent = useField({ control, name: 'parent' })
  const save = useChange({
    call: (body: EditedFolder) =>
      callApi<unknown>(folder ? 'PUT' : 'POST', folder ? `videos/folders/${folder.id}` : 'videos/folders', { body }),
    announced: (_reply, { name }) => (folder ? 'The folder has been changed.' : `The folder ${name} has been created.`),
    onDone: onClose,
    refreshes: LIBRARY,
  })
  return (
    <Dialog
      title={folder ? 'Rename or move the folder' : 'New folder'}
      onClose={onClose}
      action={folder ? 'Save' : 'Create'}
      change={save}
      isDisabled={!formState.isValid}
      onSubmit={handleSubmit((edited) => save.mutate(edited))}
    >
      <TextInput label="Name" maxLength={255} data-autofocus {...register('name', FILLED)} />
      <FolderSelect label="In" without={folder?.id} {...parent} />
    </Dialog>
  )
}

/** Its videos and folders move to the folder around it. */
export function DeleteFolderDialog({ folder, onClose }: DialogState & { folder: Folder }) {
  const navigate = route.useNavigate()
  return (
    <ConfirmDialog
      title={`Delete the folder ${folder.name}?`}
      onClose={onClose}
      action="Delete the folder"
      color="stop"
      call={() => callApi<unknown>('DELETE', `videos/folders/${folder.id}`)}
      onDone={() => navigate({ search: (before) => ({ ...before, folder: folder.parent ?? undefined }), replace: true })}
      refreshes={LIBRARY}
    >
      <p>The videos and folders in it are kept: they move to the folder around it.</p>
    </ConfirmDialog>
  )
}
