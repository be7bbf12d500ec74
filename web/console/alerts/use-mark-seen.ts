import { useMutation, useQueryClient } from '@tanstack/react-query'
import { callApi } from '../api.ts'
import { type Alert, alertsQuery } from './queries.ts'

/** Marks alerts, the newest first, as seen. */
export function useMarkSeen() {
  const queries = useQueryClient()
  return useMutation({
    mutationFn: ([newest]: readonly Alert[]) => callApi<unknown>('PUT', 'alerts/seen', { body: { upTo: newest?.id } }),
    onSuccess: () => queries.invalidateQueries({ queryKey: alertsQuery.queryKey }),
  })
}
