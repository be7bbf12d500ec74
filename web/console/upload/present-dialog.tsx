import { useSyncExternalStore } from 'react'
import { Dialog } from '../ui/dialog.tsx'
import { listNames } from '../units.ts'
import { useUploads } from './upload-provider.tsx'

/** Asks about files that seem to be here already; the others are being uploaded meanwhile. */
export function PresentDialog() {
  const uploads = useUploads()
  const names = useSyncExternalStore(uploads.subscribe, uploads.asked)
  const isOne = names.length === 1
  return (
    <Dialog
      title={isOne ? 'This file is here already' : `${names.length} files are here already`}
      onClose={() => uploads.answer(false)}
      cancel="Leave out"
      action="Upload again"
      onSubmit={() => uploads.answer(true)}
    >
      <p>
        {listNames(names)}: the list of uploads has {isOne ? 'this file' : 'these files'}, or the folder has{' '}
        {isOne ? 'a video with its title' : 'videos with their titles'}. Uploaded again, {isOne ? 'it becomes' : 'they become'}{' '}
        {isOne ? 'another video' : 'other videos'} next to {isOne ? 'it' : 'them'}.
      </p>
    </Dialog>
  )
}
