import { type ReactNode, useRef } from 'react'
import { useAddFiles } from './drop-target.tsx'
import { readInput } from './dropped-files.ts'

type Choose = { chooseFiles(): void; chooseFolder(): void }

/** The browser's dialogs for files and for a folder, opened by what is drawn; what is chosen is uploaded. */
export function FileInputs({ children }: { children(choose: Choose): ReactNode }) {
  const addFiles = useAddFiles()
  const files = useRef<HTMLInputElement>(null)
  const folder = useRef<HTMLInputElement>(null)
  const take = (input: HTMLInputElement) => {
    void addFiles(readInput(input.files ?? []))
    input.value = '' // so that the same files can be chosen again
  }
  return (
    <>
      {children({ chooseFiles: () => files.current?.click(), chooseFolder: () => folder.current?.click() })}
      <input
        ref={files}
        type="file"
        hidden
        multiple
        accept="video/*,.mkv,.ts,.mts,.m2ts,.mxf"
        onChange={({ target }) => take(target)}
      />
      <input ref={folder} type="file" hidden webkitdirectory="" onChange={({ target }) => take(target)} />
    </>
  )
}
