import { useQueryClient } from '@tanstack/react-query'
import { filesQuery, previewQuery } from './queries.ts'

/** The player above begins again, with the captions as they are now. */
export function useRefreshCaptions(videoId: string) {
  const queries = useQueryClient()
  return async () => {
    await queries.invalidateQueries({ queryKey: filesQuery(videoId).queryKey })
    await queries.resetQueries({ queryKey: previewQuery(videoId).queryKey })
  }
}
