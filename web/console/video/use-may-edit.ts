import { useQuery } from '@tanstack/react-query'
import type { VideoAccessBody } from '../../../src/http/console/videos.ts'
import { callApi } from '../api.ts'
import { useMay } from '../sign-in/queries.ts'

/** Whether the person may edit a video: an owner every one, an uploader those that they have added. */
export function useMayEdit(videoId: string): boolean {
  const [mayEditAll, mayUpload] = [useMay('editor'), useMay('uploader')]
  const { data } = useQuery({
    queryKey: ['videos', 'access', videoId],
    queryFn: ({ signal }) => callApi<VideoAccessBody>('GET', `videos/${encodeURIComponent(videoId)}/access`, { signal }),
    enabled: mayUpload && !mayEditAll,
    staleTime: Number.POSITIVE_INFINITY,
  })
  return mayEditAll || (data?.mayEdit ?? false)
}
