import { Button, Menu } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import { useMay } from '../sign-in/queries.ts'
import { ChevronDownIcon, FolderIcon, LinkIcon, PlusIcon, UploadIcon } from '../ui/icons.tsx'
import { FileInputs } from './file-inputs.tsx'

/** The button that adds videos: files, a whole folder, or from addresses. */
export function AddVideos() {
  if (!useMay('uploader')) return null
  return (
    <FileInputs>
      {({ chooseFiles, chooseFolder }) => (
        <Menu width={220}>
          <Menu.Target>
            <Button leftSection={<PlusIcon size={16} />} rightSection={<ChevronDownIcon size={14} />}>
              Add videos
            </Button>
          </Menu.Target>
          <Menu.Dropdown>
            <Menu.Item leftSection={<UploadIcon size={16} />} onClick={chooseFiles}>
              Upload files
            </Menu.Item>
            <Menu.Item leftSection={<FolderIcon size={16} />} onClick={chooseFolder}>
              Upload a folder
            </Menu.Item>
            <Menu.Item leftSection={<LinkIcon size={16} />} component={Link} to="/videos/import">
              Import from addresses
            </Menu.Item>
          </Menu.Dropdown>
        </Menu>
      )}
    </FileInputs>
  )
}
