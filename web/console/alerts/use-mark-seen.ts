import { callApi } from '../api.ts'
import { useChange } from '../ui/use-change.ts'
import { type Alert, alertsQuery } from './queries.ts'

/** Marks alerts, the newest first, as seen. */
export function useMarkSeen() {
  return useChange({
    call: ([newest]: readonly Alert[]) => callApi<unknown>('PUT', 'alerts/seen', { body: { upTo: newest?.id } }),
    refreshes: [alertsQuery.queryKey],
  })
}
