import { useRouterState } from '@tanstack/react-router'
import { type ReactNode, useCallback, useEffect, useState } from 'react'
import { ROOT_FOLDER_ID } from '../catalogue/folder-path.ts'
import { useMay } from '../sign-in/queries.ts'
import { UploadIcon } from '../ui/icons.tsx'
import styles from './drop-target.module.css'
import { type ChosenFile, readDrop } from './dropped-files.ts'
import { useUploads } from './upload-provider.tsx'

/** The folder that is open in the library: what is added goes there. */
function useOpenFolder(): string {
  const folder = useRouterState({ select: ({ location }) => location.search.folder })
  return folder ?? ROOT_FOLDER_ID
}

/** Starts uploads into the open folder. */
export function useAddFiles(): (chosen: readonly ChosenFile[]) => Promise<void> {
  const uploads = useUploads()
  const folderId = useOpenFolder()
  return useCallback((chosen) => uploads.add(chosen, folderId), [uploads, folderId])
}

/** The whole page as a place to drop videos and folders on. */
export function DropTarget({ children }: { children: ReactNode }) {
  const addFiles = useAddFiles()
  const mayUpload = useMay('uploader')
  const [isOver, setOver] = useState(false)
  useEffect(() => {
    if (!mayUpload) return
    const listening = new AbortController()
    let depth = 0 // of elements that the pointer has entered and not left
    const listen = (type: 'dragenter' | 'dragleave' | 'dragover' | 'drop', react: (transfer: DataTransfer) => void) =>
      window.addEventListener(
        type,
        (event) => {
          if (!event.dataTransfer?.types.includes('Files')) return
          event.preventDefault()
          react(event.dataTransfer)
        },
        { signal: listening.signal },
      )
    listen('dragenter', () => {
      depth += 1
      setOver(true)
    })
    listen('dragleave', () => {
      depth -= 1
      if (depth <= 0) setOver(false)
    })
    listen('dragover', (transfer) => {
      transfer.dropEffect = 'copy'
    })
    listen('drop', (transfer) => {
      depth = 0
      setOver(false)
      void readDrop(transfer).then(addFiles)
    })
    return () => listening.abort()
  }, [mayUpload, addFiles])
  return (
    <>
      {children}
      {isOver && (
        <div className={styles.over}>
          <div>
            <UploadIcon size={32} />
            Drop videos or folders to upload them
          </div>
        </div>
      )}
    </>
  )
}
