import { MutationCache, onlineManager, QueryCache, QueryClient } from '@tanstack/react-query'
import { ApiFailure, mayPass } from '../api.ts'
import { connection } from '../connection.ts'

const MAX_RETRIES = 3

/** @param onSignedOut when a call was refused because the sign-in is over */
export function createQueryClient(onSignedOut: () => void): QueryClient {
  const onError = (error: Error) => {
    if (error instanceof ApiFailure && error.status === 401) onSignedOut()
  }
  // Reads pause while the server is away, and are repeated when it is back. What a person has asked for is tried, and fails in words.
  onlineManager.setEventListener((setOnline) => connection.subscribe(() => setOnline(!connection.get().isAway)))
  return new QueryClient({
    queryCache: new QueryCache({ onError }),
    mutationCache: new MutationCache({ onError }),
    defaultOptions: {
      queries: {
        staleTime: 10_000,
        retry: (count, error) => count < MAX_RETRIES && error instanceof ApiFailure && mayPass(error),
        retryDelay: delayOf,
      },
      mutations: { networkMode: 'always' },
    },
  })
}

function delayOf(attempt: number, error: Error): number {
  const retryAfterS = error instanceof ApiFailure ? error.retryAfterS : undefined
  return retryAfterS === undefined ? 500 * 2 ** attempt : retryAfterS * 1000
}
