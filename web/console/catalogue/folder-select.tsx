import { Select } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { folderOptions, folderPathOf, ROOT_FOLDER_ID } from './folder-path.ts'
import { folderSearchQuery } from './queries.ts'

type FolderSelectProps = { label: string; value: string; without?: string; onChange(folderId: string): void }

/** A choice among all folders, by their path; `without` leaves out a folder and what is in it. */
export function FolderSelect({ label, value, without, onChange }: FolderSelectProps) {
  const { data } = useQuery(folderSearchQuery(''))
  const all = data?.folders ?? []
  const isLeftOut = (id: string) => without !== undefined && folderPathOf(all, id).some((around) => around.id === without)
  return (
    <Select
      label={label}
      data={[{ value: ROOT_FOLDER_ID, label: 'No folder' }, ...folderOptions(all).filter((option) => !isLeftOut(option.value))]}
      value={value}
      onChange={(folderId) => onChange(folderId ?? ROOT_FOLDER_ID)}
      allowDeselect={false}
      searchable
      limit={100}
      nothingFoundMessage="There is no such folder."
    />
  )
}
