import { MultiSelect } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { tagsQuery } from '../catalogue/queries.ts'
import { tagsOf } from '../catalogue/search.ts'
import styles from './library-toolbar.module.css'
import { useChangeSearch } from './library-toolbar.tsx'

const route = getRouteApi('/signed-in/videos')

export function TagFilter() {
  const search = route.useSearch()
  const change = useChangeSearch()
  const { data: tags = [] } = useQuery(tagsQuery)
  const chosen = tagsOf(search)
  if (tags.length === 0 && chosen.length === 0) return null
  return (
    <MultiSelect
      className={styles.tags}
      aria-label="Only videos with these tags"
      placeholder={chosen.length === 0 ? 'Tags' : undefined}
      data={[...new Set([...tags, ...chosen])].filter((tag) => !tag.includes(','))}
      value={chosen}
      onChange={(next) => change({ tags: next.join(',') || undefined })}
      searchable
      clearable
      hidePickedOptions
      limit={50}
      nothingFoundMessage="There is no such tag."
    />
  )
}
