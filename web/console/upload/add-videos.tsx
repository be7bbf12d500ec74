import { Button, Menu } from '@mantine/core'
import { useRef } from 'react'
import { ChevronDownIcon, FolderIcon, PlusIcon, UploadIcon } from '../app/icons.tsx'
import { useMay } from '../sign-in/queries.ts'
import { useAddFiles } from './drop-target.tsx'
import { readInput } from './dropped-files.ts'

/** The button that adds videos: files, a whole folder, or from addresses. */
export function AddVideos() {
  const addFiles = useAddFiles()
  const files = useRef<HTMLInputElement>(null)
  const folder = useRef<HTMLInputElement>(null)
  if (!useMay('uploader')) return null
  const take = (input: HTMLInputElement) => {
    addFiles(readInput(input.files ?? []))
    input.value = '' // so that the same files can be chosen again
  }
  return (
    <>
      <Menu width={220}>
        <Menu.Target>
          <Button leftSection={<PlusIcon size={16} />} rightSection={<ChevronDownIcon size={14} />}>
            Add videos
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item leftSection={<UploadIcon size={16} />} onClick={() => files.current?.click()}>
            Upload files
          </Menu.Item>
          <Menu.Item leftSection={<FolderIcon size={16} />} onClick={() => folder.current?.click()}>
            Upload a folder
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
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
