import { type QueryClient, useQueryClient } from '@tanstack/react-query'
import { useEffect } from 'react'
import { connection } from '../connection.ts'
import { apiUrl } from '../urls.ts'

/** What each event of the server changes, as the beginnings of query keys. */
const CHANGES: Readonly<Record<string, readonly string[][]>> = {
  videos: [['videos'], ['folders']],
  progress: [['queue'], ['videos', 'one']],
  alert: [['alerts']],
  session: [['sessions']],
}

/** A browser opens a stream again that was cut off, but not one that was refused, as a proxy does without a server behind it. */
const REOPEN_MS = 10_000

/**
 * Follows what happens in the account, so that pages show it without being loaded again. Only while the tab is visible: over HTTP/1.1
 * a browser has six connections to a server, for all tabs together. Where there is no stream, pages ask from time to time. A stream that
 * ends is the first sign that the server is away.
 */
export function useEvents(): void {
  const queries = useQueryClient()
  useEffect(() => {
    let stream: EventSource | undefined
    let reopening: ReturnType<typeof setTimeout> | undefined
    let wasReady = false
    const follow = () => {
      clearTimeout(reopening)
      stream?.close()
      stream = document.visibilityState === 'visible' ? openStream(queries, { onReady, onError }) : undefined
    }
    function onReady() {
      // After an interruption: what happened meanwhile is not sent.
      if (wasReady) void queries.invalidateQueries()
      wasReady = true
    }
    function onError() {
      void connection.check()
      if (stream?.readyState !== EventSource.CLOSED) return
      clearTimeout(reopening)
      reopening = setTimeout(follow, REOPEN_MS)
    }
    follow()
    const leave = connection.subscribe(() => !connection.get().isAway && follow())
    document.addEventListener('visibilitychange', follow)
    return () => {
      leave()
      document.removeEventListener('visibilitychange', follow)
      clearTimeout(reopening)
      stream?.close()
    }
  }, [queries])
}

function openStream(queries: QueryClient, { onReady, onError }: { onReady(): void; onError(): void }): EventSource {
  const stream = new EventSource(apiUrl('events'))
  stream.addEventListener('ready', onReady)
  stream.addEventListener('error', onError)
  for (const [event, changed] of Object.entries(CHANGES))
    stream.addEventListener(event, () => {
      for (const queryKey of changed) void queries.invalidateQueries({ queryKey })
    })
  return stream
}
