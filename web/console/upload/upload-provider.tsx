import { useQueryClient } from '@tanstack/react-query'
import { createContext, type ReactNode, use, useEffect, useState, useSyncExternalStore } from 'react'
import { refreshLibrary } from '../catalogue/queries.ts'
import { createFolderFinder } from './find-folder.ts'
import { createPresentFinder } from './find-present.ts'
import { keepUnderWay } from './interrupted.ts'
import { createUploads, isUnderWay, type Upload, type Uploads } from './uploads.ts'

const UploadContext = createContext<Uploads | undefined>(undefined)

/** Keeps the uploads of this tab while the person goes from page to page, and the tab from closing by mistake. */
export function UploadProvider({ children }: { children: ReactNode }) {
  const queries = useQueryClient()
  const [uploads] = useState(() =>
    createUploads({
      findFolder: createFolderFinder(queries),
      findPresent: createPresentFinder(queries),
      onVideo: () => void refreshLibrary(queries),
    }),
  )
  const underWay = useSyncExternalStore(uploads.subscribe, uploads.list).filter(isUnderWay)
  const isBusy = underWay.length > 0
  useEffect(() => keepUnderWay(underWay.map(({ title }) => title)))
  useEffect(() => {
    if (!isBusy) return
    const ask = (event: BeforeUnloadEvent) => event.preventDefault()
    window.addEventListener('beforeunload', ask)
    return () => window.removeEventListener('beforeunload', ask)
  }, [isBusy])
  return <UploadContext value={uploads}>{children}</UploadContext>
}

export function useUploads(): Uploads {
  const uploads = use(UploadContext)
  if (!uploads) throw new Error('Uploads are available inside UploadProvider only.')
  return uploads
}

export function useUploadList(): readonly Upload[] {
  const uploads = useUploads()
  return useSyncExternalStore(uploads.subscribe, uploads.list)
}
