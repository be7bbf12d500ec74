import { Select, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useForm } from 'react-hook-form'
import type { PlatformLinkBody } from '../../../src/http/api/lti.ts'
import { callApi } from '../api.ts'
import { folderOptions, ROOT_FOLDER_ID } from '../catalogue/folder-path.ts'
import { folderSearchQuery } from '../catalogue/queries.ts'
import { ConfirmDialog } from '../ui/confirm-dialog.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { FactList } from '../ui/fact-list.tsx'
import { FILLED, SwitchField, useField } from '../ui/form.tsx'
import { useChange } from '../ui/use-change.ts'
import { type Platform, platformsQuery } from './queries.ts'

type PlatformDialogProps = { platform: Platform; onClose(): void }
type Settings = { name: string; folderId: string; showsNames: boolean; mayUpload: boolean; confirmed: boolean }

/** In a choice of folders, as the API has null. */
const NONE = 'none'

/** What a platform may do; of one that has registered, who it is. */
export function PlatformDialog({ platform, onClose }: PlatformDialogProps) {
  const { confirmed, name, folderId, showsNames, mayUpload } = platform
  const { control, register, handleSubmit, formState } = useForm<Settings>({
    defaultValues: { name, folderId: folderId ?? (confirmed ? NONE : ROOT_FOLDER_ID), showsNames, mayUpload, confirmed: true },
  })
  const folder = useField({ control, name: 'folderId' })
  const { data } = useQuery(folderSearchQuery(''))
  const change = useChange({
    call: ({ folderId, ...settings }: Settings) =>
      callApi<unknown>('PUT', `lti/platforms/${platform.id}`, {
        body: { ...settings, folderId: folderId === NONE ? null : folderId },
      }),
    announced: confirmed ? `${name} has been changed.` : `${name} has been confirmed.`,
    onDone: onClose,
    refreshes: [platformsQuery.queryKey],
  })
  return (
    <Dialog
      title={confirmed ? `Change ${name}` : `Confirm ${name}?`}
      onClose={onClose}
      action={confirmed ? 'Save' : 'Confirm'}
      change={change}
      isDisabled={!formState.isValid}
      onSubmit={handleSubmit((settings) => change.mutate(settings))}
    >
      {!confirmed && <p>Compare this with what the platform shows. Until you confirm it, nothing is launched from it.</p>}
      <FactList
        facts={[
          ['Issuer', platform.issuer],
          ['Client id', platform.clientId],
          ['Deployments', platform.deploymentIds.join(', ') || 'The first launch adds its own'],
        ]}
      />
      <TextInput label="Name" maxLength={100} autoComplete="off" data-autofocus {...register('name', FILLED)} />
      <Select
        label="Open to its courses"
        description="Teachers choose from this folder and what is in it, and links play nothing else."
        data={[
          { value: NONE, label: 'Nothing' },
          { value: ROOT_FOLDER_ID, label: 'All videos' },
          ...folderOptions(data?.folders ?? []),
        ]}
        allowDeselect={false}
        searchable
        limit={100}
        {...folder}
      />
      <SwitchField
        control={control}
        name="showsNames"
        label="Show names"
        description="In lists of viewers, and as {name} in watermarks."
      />
      <SwitchField
        control={control}
        name="mayUpload"
        label="Teachers may upload"
        description="One video at a time, into the folder that is open to their course."
      />
      {confirmed && <SwitchField control={control} name="confirmed" label="On" description="Off: nothing is launched from it." />}
    </Dialog>
  )
}

/** Makes the link with which a platform registers. */
export function ConnectDialog({ onClose, onMade }: { onClose(): void; onMade(link: PlatformLinkBody): void }) {
  return (
    <ConfirmDialog
      title="Connect a learning platform"
      onClose={onClose}
      action="Make a link"
      call={() => callApi<PlatformLinkBody>('POST', 'lti/links')}
      onDone={onMade}
      refreshes={[]}
    >
      <p>An administrator of the platform opens the link there, within an hour. Then it is listed here, and you confirm it.</p>
    </ConfirmDialog>
  )
}

export function RemovePlatformDialog({ platform, onClose }: PlatformDialogProps) {
  return (
    <ConfirmDialog
      title={`Remove ${platform.name}?`}
      onClose={onClose}
      action="Remove"
      color="stop"
      call={() => callApi<unknown>('DELETE', `lti/platforms/${platform.id}`)}
      announced={`${platform.name} has been removed.`}
      refreshes={[platformsQuery.queryKey]}
    >
      <p>Its activities show a sentence instead of the video, and no grade is sent any more. What people have watched stays.</p>
    </ConfirmDialog>
  )
}
