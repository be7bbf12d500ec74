import { type QueryClient, useQueryClient } from '@tanstack/react-query'
import { useEffect } from 'react'
import { apiUrl } from './place.ts'

/** What each event of the server changes, as the beginnings of query keys. */
const CHANGES: Readonly<Record<string, readonly string[][]>> = {
  videos: [['videos'], ['folders']],
  progress: [['queue'], ['videos', 'one']],
  alert: [['alerts']],
  session: [['sessions']],
}

/**
 * Follows what happens in the account, so that pages show it without being loaded again. Only while the tab is visible: over HTTP/1.1
 * a browser has six connections to a server, for all tabs together. Where there is no stream, pages ask from time to time.
 */
export function useEvents(): void {
  const queries = useQueryClient()
  useEffect(() => {
    let stream: EventSource | undefined
    const follow = () => {
      stream?.close()
      stream = document.visibilityState === 'visible' ? openStream(queries) : undefined
    }
    follow()
    document.addEventListener('visibilitychange', follow)
    return () => {
      document.removeEventListener('visibilitychange', follow)
      stream?.close()
    }
  }, [queries])
}

function openStream(queries: QueryClient): EventSource {
  const stream = new EventSource(apiUrl('events'))
  let wasReady = false
  stream.addEventListener('ready', () => {
    // After an interruption: what happened meanwhile is not sent.
    if (wasReady) void queries.invalidateQueries()
    wasReady = true
  })
  for (const [event, changed] of Object.entries(CHANGES))
    stream.addEventListener(event, () => {
      for (const queryKey of changed) void queries.invalidateQueries({ queryKey })
    })
  return stream
}
