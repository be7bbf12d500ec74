import { useMutation } from '@tanstack/react-query'
import { useForm } from 'react-hook-form'
import { callApi } from '../api.ts'
import { needsSentence } from '../protection/annotation.ts'
import type { SavedOptions } from '../protection/options-json.tsx'
import { NO_PROTECTION, toOptions } from '../protection/protection.ts'
import { ProtectionFields } from '../protection/protection-form.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { countVideos } from '../units.ts'
import type { BulkDialogProps } from './use-selection.ts'

/** One protection for all selected videos, in the place of what each has. */
export function ProtectDialog({ videos, onClose, onDone }: BulkDialogProps) {
  const form = useForm({ defaultValues: NO_PROTECTION })
  const options = toOptions(form.watch(), {})
  const removes = Object.keys(options).length === 0
  const save = useMutation({
    mutationFn: () =>
      callApi<SavedOptions>('POST', 'videos/otp-defaults', { body: { videos: videos.map(({ id }) => id), options } }),
    onSuccess: ({ eachOtpNeeds = [] }) =>
      onDone(
        `The protection of ${countVideos(videos.length)} has been ${removes ? 'removed' : 'saved'}. ${needsSentence(eachOtpNeeds)}`,
      ),
  })
  return (
    <Dialog
      title={`Protect ${countVideos(videos.length)}`}
      onClose={onClose}
      action={removes ? 'Remove their protection' : 'Save'}
      color={removes ? 'stop' : 'lamp'}
      change={save}
      onSubmit={form.handleSubmit(() => save.mutate())}
    >
      <p>
        For every link to {videos.length === 1 ? 'this video' : 'these videos'} that is issued from now on, in the place of the
        protection that {videos.length === 1 ? 'it has' : 'each of them has'}. What is empty has the default of the account.
      </p>
      <ProtectionFields form={form} isOfVideo />
    </Dialog>
  )
}
