import { QueryClient } from '@tanstack/react-query'
import { ApiFailure } from '../api.ts'

const MAX_RETRIES = 3

export function createQueryClient(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      queries: { staleTime: 10_000, retry: (count, error) => count < MAX_RETRIES && mayPass(error), retryDelay: delayOf },
    },
  })
}

/** Whether the same call may succeed a moment later: no answer, too many calls, or a server that is not ready. */
function mayPass(error: Error): boolean {
  return error instanceof ApiFailure && (error.status === 0 || error.status === 429 || error.status >= 502)
}

function delayOf(attempt: number, error: Error): number {
  const retryAfterS = error instanceof ApiFailure ? error.retryAfterS : undefined
  return retryAfterS === undefined ? 500 * 2 ** attempt : retryAfterS * 1000
}
