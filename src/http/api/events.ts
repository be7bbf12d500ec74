import { Readable } from 'node:stream'
import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import type { Caller } from '../../accounts/permission.ts'
import { Failure } from '../../errors.ts'
import type { AccountEvents } from '../../events/account-events.ts'
import type { AccountEvent, EventCursor } from '../../events/changes.ts'
import { authenticateRequest, type FindCaller } from '../server/caller.ts'
import type { App } from '../wire/app-type.ts'

const EventsReply = {
  200: {
    description: 'A stream of events, as EventSource reads it',
    content: { 'text/event-stream': { schema: Type.String() } },
  },
}

/** Streams of one person or key: one for each open tab. */
const MAX_STREAMS_PER_CALLER = 20
/** Proxies close a connection that is silent for a minute. */
const HEARTBEAT_MS = 15_000
/** A client that reads no faster is cut off; it reads the lists again when it comes back. */
const MAX_UNREAD_BYTES = 64 * 1024
/** How long a browser waits before it comes back. */
const RETRY_MS = 3_000

export type EventRoutesDeps = { events: AccountEvents }

/** `GET /events`: what happens in the account, while it happens. @param deps.findCaller asked again and again, so that a stream ends with its caller's access */
export function eventRoutes(app: App, { events, findCaller }: EventRoutesDeps & { findCaller: FindCaller }): void {
  const open = new Map<Readable, string>()
  app.addHook('preClose', (done) => {
    for (const stream of open.keys()) stream.push(null) // or the stop would wait for them
    done()
  })

  app.get(
    '/events',
    {
      exposeHeadRoute: false,
      config: { permission: 'viewer', described: { response: EventsReply } },
      schema: {
        summary: 'Follow what happens',
        description:
          'Server-sent events of the account, at most a second late, whichever server began the stream: `ready` first; `videos` when a list of videos shows something else; `progress` {video, status, state, part} of videos that wait, are imported or are encoded, with null where there is no more work; `alert` {cause, video, userId, session}; `session` {session, video, userId, state: started or ended}. A client that comes back with the `Last-Event-ID` that it has seen, as EventSource does, gets the `videos` and `alert` events that it has missed; of sessions and of work on videos read the lists again after each `ready`. The stream ends when the key is revoked or the person signs out. A person or key may have 20 streams.',
      },
    },
    async (request, reply) => {
      const caller = authenticateRequest(request)
      assertFewStreams([...open.values()], callerId(caller))
      const stream = new Readable({ read: () => undefined })
      let lastSentMs = performance.now()
      const begun = Promise.withResolvers<void>()
      let sending = begun.promise
      let lastId = ''
      open.set(stream, callerId(caller))
      stream.once('close', () => open.delete(stream))
      const stopListening = await events
        .listen(
          caller.accountId,
          (happened, cursor) => {
            sending = sending.then(() => send(happened, formatCursor(cursor)))
          },
          readCursor(request.headers['last-event-id']),
        )
        .catch((error) => {
          stream.destroy()
          throw error
        })
      if (request.raw.destroyed) stream.destroy()
      if (stream.destroyed) stopListening()
      else stream.once('close', stopListening)

      /** @param id sent behind them: a client that has it has them all */
      async function send(happened: readonly AccountEvent[], id: string): Promise<void> {
        if (!(await isStillAllowed(request, caller))) stream.push(null)
        if (stream.destroyed || stream.readableEnded) return
        if (stream.readableLength > MAX_UNREAD_BYTES) return void stream.destroy()
        for (const { type, ...data } of happened) stream.push(`event: ${type}\ndata: ${JSON.stringify(data)}\n\n`)
        if (id !== lastId) stream.push(`id: ${id}\n\n`)
        lastId = id
        const nowMs = performance.now()
        if (happened.length === 0 && nowMs - lastSentMs < HEARTBEAT_MS) return
        if (happened.length === 0) stream.push(':\n\n')
        lastSentMs = nowMs
      }

      stream.push(`retry: ${RETRY_MS}\nevent: ready\ndata: {}\n\n`)
      begun.resolve()
      return reply.type('text/event-stream; charset=utf-8').header('X-Accel-Buffering', 'no').send(stream)
    },
  )

  /** Whether the caller may still read this account: it was not signed out, and does not look into another one. */
  async function isStillAllowed(request: FastifyRequest, { accountId }: Caller): Promise<boolean> {
    try {
      const now = await findCaller(request)
      return now.accountId === accountId && now.permissions.includes('viewer')
    } catch (error) {
      return error instanceof Failure && error.kind === 'unavailable' // the database will answer again
    }
  }
}

function formatCursor({ changeNumber, alertId }: EventCursor): string {
  return `${changeNumber}-${alertId}`
}

/** Undefined: the client has none, or one that is not ours. */
function readCursor(id: string | string[] | undefined): EventCursor | undefined {
  const [, changeNumber, alertId] = /^(\d{1,15})-(\d{1,15})$/.exec(String(id)) ?? []
  return changeNumber === undefined ? undefined : { changeNumber: Number(changeNumber), alertId: Number(alertId) }
}

function callerId(caller: Caller): string {
  return 'apiKeyId' in caller ? caller.apiKeyId : caller.consoleUserId
}

/** @throws Failure `limited` */
function assertFewStreams(callerIds: readonly string[], id: string): void {
  if (callerIds.filter((one) => one === id).length < MAX_STREAMS_PER_CALLER) return
  throw new Failure('limited', `At most ${MAX_STREAMS_PER_CALLER} pages follow what happens at a time. Close some of them.`, {
    retryAfterS: 60,
  })
}
