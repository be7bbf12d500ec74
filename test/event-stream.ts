/** An event of a stream (HTML, section 9.2): its name, and its data as JSON. */
export type StreamEvent = { event: string; data: Record<string, unknown> }

/** A page that follows a stream of events, as `EventSource` does. */
export async function openStream(url: string, headers: Record<string, string>) {
  const stopping = new AbortController()
  const response = await fetch(url, { headers, signal: stopping.signal })
  if (response.status !== 200 || !response.body) throw new Error(`${response.status} ${await response.text()}`)
  const received: StreamEvent[] = []
  let lastId = ''
  const waiting = new Set<() => void>()
  let isEnded = false
  let wasCutOff = false
  let rest = ''

  async function read(): Promise<void> {
    const decoder = new TextDecoder()
    for await (const bytes of response.body ?? []) {
      const blocks = (rest + decoder.decode(bytes, { stream: true })).split('\n\n')
      rest = blocks.pop() ?? ''
      received.push(...blocks.flatMap(parseBlock))
      lastId = blocks.findLast((block) => block.startsWith('id: '))?.slice('id: '.length) ?? lastId
      for (const wake of waiting) wake()
    }
  }
  const ended = read()
    .catch(() => {
      wasCutOff = true
    })
    .finally(() => {
      isEnded = true
      for (const wake of waiting) wake()
    })

  return {
    headers: response.headers,
    received,
    /** What a browser sends as `Last-Event-ID` when it opens the stream again. */
    lastId: () => lastId,
    /** Resolves when the stream has ended. */
    ended,
    /** Whether it ended in the middle, by this page or because the connection was closed. */
    wasCutOff: () => wasCutOff,
    /** The first event that is as wanted, also one that came before. */
    async until(isWanted: (event: StreamEvent) => boolean): Promise<StreamEvent> {
      for (;;) {
        const found = received.find(isWanted)
        if (found) return found
        if (isEnded) throw new Error(`the stream ended: ${JSON.stringify(received)}`)
        const { promise, resolve } = Promise.withResolvers<void>()
        waiting.add(resolve)
        await promise
        waiting.delete(resolve)
      }
    },
    close: () => stopping.abort(),
  }
}

function parseBlock(block: string): StreamEvent[] {
  const fields = new Map(
    block.split('\n').map((line): [string, string] => [line.split(':')[0] ?? '', line.replace(/^\w*: ?/, '')]),
  )
  const event = fields.get('event')
  return event === undefined ? [] : [{ event, data: JSON.parse(fields.get('data') ?? '{}') }]
}

/** The text of a response; of a stream that does not end its beginning. */
export async function readText(response: Response): Promise<string> {
  if (!response.headers.get('content-type')?.startsWith('text/event-stream')) return response.text()
  const reader = response.body?.getReader()
  const { value } = (await reader?.read()) ?? {}
  await reader?.cancel()
  return new TextDecoder().decode(value)
}
