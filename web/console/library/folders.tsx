import { ActionIcon, Button, Menu, UnstyledButton } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { lazy, Suspense, useState } from 'react'
import type { FolderBody } from '../../../src/http/api/folders.ts'
import { folderPathOf, ROOT_FOLDER_ID } from '../catalogue/folder-path.ts'
import { folderQuery, folderSearchQuery } from '../catalogue/queries.ts'
import { EXACTLY } from '../catalogue/search.ts'
import { useMay } from '../sign-in/queries.ts'
import { ChevronRightIcon, FolderIcon, MoreIcon, PlusIcon } from '../ui/icons.tsx'
import { formatCount } from '../units.ts'
import styles from './folders.module.css'

const route = getRouteApi('/signed-in/videos')
const MAX_SHOWN = 12

const EditFolderDialog = lazy(() =>
  import('./folder-dialogs.tsx').then(({ EditFolderDialog }) => ({ default: EditFolderDialog })),
)
const DeleteFolderDialog = lazy(() =>
  import('./folder-dialogs.tsx').then(({ DeleteFolderDialog }) => ({ default: DeleteFolderDialog })),
)

/** The way to the open folder, and what can be done with it. */
export function FolderPath({ folderId }: { folderId: string }) {
  const search = route.useSearch()
  const { data: contents } = useQuery(folderQuery(folderId))
  const { data: found } = useQuery(folderSearchQuery(''))
  const mayEdit = useMay('editor')
  const [dialog, setDialog] = useState<'edit' | 'delete'>()
  if (!contents) return null
  const above = folderPathOf(found?.folders ?? [], folderId).slice(0, -1)
  const close = () => setDialog(undefined)
  return (
    <div className={styles.path}>
      <nav aria-label="Folders around this one">
        <Link to="/videos" search={{ ...search, folder: undefined }} activeOptions={EXACTLY}>
          All videos
        </Link>
        {above.map(({ id, name }) => (
          <span key={id}>
            <ChevronRightIcon size={14} />
            <Link to="/videos" search={{ ...search, folder: id }} activeOptions={EXACTLY}>
              {name}
            </Link>
          </span>
        ))}
        <span aria-current="page">
          <ChevronRightIcon size={14} />
          {contents.current.name}
        </span>
      </nav>
      {mayEdit && (
        <Menu position="bottom-start">
          <Menu.Target>
            <ActionIcon variant="subtle" color="gray" aria-label={`Change the folder ${contents.current.name}`}>
              <MoreIcon size={18} />
            </ActionIcon>
          </Menu.Target>
          <Menu.Dropdown>
            <Menu.Item onClick={() => setDialog('edit')}>Rename or move</Menu.Item>
            <Menu.Item color="stop" onClick={() => setDialog('delete')}>
              Delete
            </Menu.Item>
          </Menu.Dropdown>
        </Menu>
      )}
      <Suspense>
        {dialog === 'edit' && <EditFolderDialog folder={contents.current} onClose={close} />}
        {dialog === 'delete' && <DeleteFolderDialog folder={contents.current} onClose={close} />}
      </Suspense>
    </div>
  )
}

/** The folders in the open one, or the outermost, and a new one. */
export function FolderStrip({ folderId = ROOT_FOLDER_ID }: { folderId?: string }) {
  const { data: contents } = useQuery(folderQuery(folderId))
  const mayEdit = useMay('editor')
  const [isCreating, setCreating] = useState(false)
  const [showsAll, setShowsAll] = useState(false)
  if (!contents) return null
  const folders = showsAll ? contents.folderList : contents.folderList.slice(0, MAX_SHOWN)
  const hidden = contents.folderList.length - folders.length
  return (
    <nav aria-label="Folders" className={styles.strip}>
      {folders.map((folder) => (
        <FolderLink key={folder.id} folder={folder} />
      ))}
      {hidden > 0 && (
        <UnstyledButton className={styles.folder} onClick={() => setShowsAll(true)}>
          {formatCount(hidden)} more
        </UnstyledButton>
      )}
      {mayEdit && (
        <Button
          variant="subtle"
          color="gray"
          size="compact-sm"
          leftSection={<PlusIcon size={14} />}
          onClick={() => setCreating(true)}
        >
          New folder
        </Button>
      )}
      <Suspense>{isCreating && <EditFolderDialog parentId={folderId} onClose={() => setCreating(false)} />}</Suspense>
    </nav>
  )
}

function FolderLink({ folder: { id, name, videosCount } }: { folder: FolderBody }) {
  const search = route.useSearch()
  return (
    <Link to="/videos" search={{ ...search, folder: id }} className={styles.folder} activeOptions={EXACTLY}>
      <FolderIcon size={16} />
      <span className={styles.name}>{name}</span>
      <span className={styles.count}>{formatCount(videosCount)}</span>
    </Link>
  )
}
