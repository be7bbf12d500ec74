import type { FastifyRequest } from 'fastify'
import { type Static, Type } from 'typebox'
import { Failure } from '../../errors.ts'
import type { IdempotencyDeps } from '../../idempotency/idempotency.ts'
import { messageId } from '../../webhooks/attempt.ts'
import { type DeliveryLogDeps, listDeliveries, replayDeliveries } from '../../webhooks/delivery-log.ts'
import { WEBHOOK_EVENTS, type WebhookEvent } from '../../webhooks/event.ts'
import { type TestDeps, testWebhook } from '../../webhooks/test-event.ts'
import {
  createWebhook,
  deleteWebhook,
  listWebhooks,
  type NewWebhook,
  rotateSecret,
  setWebhookEnabled,
  type WebhookTarget,
} from '../../webhooks/webhook.ts'
import type { Webhook } from '../../webhooks/webhook-store.ts'
import { authenticateRequest, changedBy } from '../server/caller.ts'
import type { App } from '../wire/app-type.ts'
import { EXAMPLE } from '../wire/examples.ts'
import { Flag, isOn } from '../wire/flag.ts'
import { IdempotencyHeaders, jsonRepresentation, sendIdempotent } from '../wire/idempotency.ts'
import { isoTime, isoTimeOrNull } from '../wire/iso-time.ts'
import { refuseMisspelledNames } from '../wire/misspelled-names.ts'
import { operation } from '../wire/operation.ts'
import { pagingQuery } from '../wire/paging.ts'
import { readNumberedPage } from './paged-list.ts'

const ALL_EVENTS = '*'

const EVENT_ADVICE = `Send "event": one of ${WEBHOOK_EVENTS.join(', ')}; or ${ALL_EVENTS} for all but alert.`

const PAGE_LIMITS = { default: 20, max: 100 }

const Status = { ...Flag, description: '1: on; 0: off' }

const WebhookBody = Type.Object({
  uuid: Type.String(),
  type: Type.Literal('http'),
  value: Type.String({ description: 'URL that receives the events' }),
  event: Type.String({ description: `the event that it receives: ${WEBHOOK_EVENTS.join(', ')}; ${ALL_EVENTS} for all` }),
  status: Type.Integer({ description: '1: on; 0: off, and events are listed as failed' }),
  statusReason: Type.Optional(Type.String({ description: 'why it is disabled' })),
  failingSince: Type.Union([Type.String(), Type.Null()], {
    description: 'since when deliveries fail, ISO 8601; null while they succeed',
  }),
  createdAt: Type.String({ description: 'ISO 8601' }),
})
const Secret = Type.String({ description: 'whsec_ and base64; shown only once' })
const WebhookParams = Type.Object({ uuid: Type.String({ description: 'of the webhook', examples: [EXAMPLE.webhookId] }) })

const CreateBody = Type.Object({
  type: Type.Optional(Type.Literal('http', { examples: ['http'] })),
  value: Type.Optional(
    Type.String({ description: 'an http or https URL on the public internet', examples: [EXAMPLE.webhookUrl] }),
  ),
  url: Type.Optional(Type.String({ description: 'the same as `value`; one of the two' })),
  event: Type.Optional(Type.String({ description: `absent, empty or ${ALL_EVENTS}: all but alert`, examples: ['video:ready'] })),
  status: Type.Optional(Status),
})
const CreateReply = Type.Interface([WebhookBody], { secret: Secret })
export type CreatedWebhookBody = Static<typeof CreateReply>
const ListReply = Type.Object({ rows: Type.Array(WebhookBody) })
export type WebhookListBody = Static<typeof ListReply>
const DeletedReply = Type.Object({ message: Type.Literal('Deleted') })

const DeliveryBody = Type.Object({
  id: Type.Integer({ description: 'its sequence number for this webhook' }),
  webhookId: Type.String({ description: 'value of the header webhook-id' }),
  event: Type.String(),
  state: Type.String({ description: 'waiting, sending, delivered or failed' }),
  attempts: Type.Integer(),
  time: Type.Integer({ description: 'when the event happened, Unix milliseconds' }),
  triedAt: Type.Union([Type.String(), Type.Null()], { description: 'the last attempt, ISO 8601' }),
  dueAt: Type.Union([Type.String(), Type.Null()], {
    description: 'earliest time of the next attempt, ISO 8601; null when there is none, or it is due',
  }),
  responseStatus: Type.Union([Type.Integer(), Type.Null()], { description: 'status of the last response' }),
  problem: Type.Union([Type.String(), Type.Null()], { description: 'why the last attempt failed' }),
  body: Type.String({ description: 'as it was sent' }),
})
const DeliveriesQuery = Type.Object(pagingQuery(PAGE_LIMITS))
const DeliveriesReply = Type.Object({ count: Type.Integer(), rows: Type.Array(DeliveryBody) })
export type DeliveryListBody = Static<typeof DeliveriesReply>
const ReplayReply = Type.Object({ message: Type.String(), count: Type.Integer() })

const TestReply = Type.Object({
  status: Type.Union([Type.Integer(), Type.Null()], { description: 'what the endpoint answered; null: nothing' }),
  problem: Type.Union([Type.String(), Type.Null()], { description: 'why it did not accept the event; null: it did' }),
})
export type WebhookTestBody = Static<typeof TestReply>

type WebhookRoutesDeps = DeliveryLogDeps & IdempotencyDeps & TestDeps

/** Owners’ webhook endpoints (wire-contract.md, sections 3 and 7; docs/webhooks.md). */
export function webhookRoutes(app: App, deps: WebhookRoutesDeps): void {
  endpointRoutes(app, deps)
  deliveryRoutes(app, deps)
}

function endpointRoutes(app: App, deps: WebhookRoutesDeps): void {
  app.get('/hooks', operation('viewer', { summary: 'List webhooks', response: { 200: ListReply } }), async (request) => ({
    rows: (await listWebhooks(deps, authenticateRequest(request).accountId)).map(webhookBody),
  }))

  app.post(
    '/hooks',
    operation('editor', {
      summary: 'Add a webhook',
      description: 'The secret that signs its events is shown only once.',
      body: CreateBody,
      headers: IdempotencyHeaders,
      response: { 200: CreateReply },
    }),
    async (request, reply) => {
      const { event, status = 1 } = request.body
      const url = readUrl(request.body)
      const webhook = { ...changedBy(request), url, event: readEvent(event), isEnabled: isOn(status) }
      return sendIdempotent(
        deps,
        { request, reply, accountId: webhook.accountId },
        (alsoInTransaction) => createWebhook(deps, webhook, alsoInTransaction),
        jsonRepresentation(
          ({ secret, ...webhook }: NewWebhook): Static<typeof CreateReply> => ({ ...webhookBody(webhook), secret }),
        ),
      )
    },
  )

  app.delete(
    '/hooks',
    operation('editor', { summary: 'Delete a webhook', body: WebhookParams, response: { 200: DeletedReply } }),
    async (request) => {
      await deleteWebhook(deps, webhookTarget(request, request.body.uuid))
      return { message: 'Deleted' as const }
    },
  )

  app.put(
    '/hooks/:uuid',
    operation('editor', {
      summary: 'Enable or disable a webhook',
      params: WebhookParams,
      body: Type.Object({ status: Status }),
      response: { 200: WebhookBody },
    }),
    async (request) => {
      const target = webhookTarget(request, request.params.uuid)
      return webhookBody(await setWebhookEnabled(deps, target, isOn(request.body.status)))
    },
  )

  app.post(
    '/hooks/:uuid/secret',
    operation('editor', {
      summary: 'Rotate the secret of a webhook',
      description: 'For a day, deliveries are signed with the old secret, too.',
      params: WebhookParams,
      response: { 200: Type.Object({ secret: Secret }) },
    }),
    async (request) => {
      return { secret: await rotateSecret(deps, webhookTarget(request, request.params.uuid)) }
    },
  )

  app.post(
    '/hooks/:uuid/test',
    operation('editor', {
      summary: 'Send a test event to a webhook',
      description:
        'One event `test`, signed like all others, now; also to a webhook that is off. It is not listed as a delivery.',
      params: WebhookParams,
      response: { 200: TestReply },
    }),
    async (request) => testWebhook(deps, webhookTarget(request, request.params.uuid)),
  )
}

/** What was sent to a webhook, and sending it again. */
function deliveryRoutes(app: App, deps: WebhookRoutesDeps): void {
  app.get(
    '/hooks/:uuid/deliveries',
    operation('viewer', {
      summary: 'List the deliveries of a webhook',
      description: 'Newest first.',
      params: WebhookParams,
      querystring: DeliveriesQuery,
      response: { 200: DeliveriesReply },
    }),
    async (request) => {
      const { accountId } = authenticateRequest(request)
      return readNumberedPage(request, PAGE_LIMITS, async (paging) => {
        const { count, deliveries } = await listDeliveries(deps, accountId, request.params.uuid, paging)
        return { count, rows: deliveries.map(deliveryBody) }
      })
    },
  )

  app.post(
    '/hooks/:uuid/deliveries/:id/replay',
    operation('editor', {
      summary: 'Send a delivery again',
      params: Type.Interface([WebhookParams], { id: Type.String({ description: 'of the delivery', examples: ['1'] }) }),
      response: { 200: ReplayReply },
    }),
    async (request) => {
      const { uuid, id } = request.params
      const count = await replayDeliveries(deps, webhookTarget(request, uuid), readSequence(id))
      return { message: 'Queued', count }
    },
  )

  app.post(
    '/hooks/:uuid/deliveries/replay',
    operation('editor', { summary: 'Send all failed deliveries again', params: WebhookParams, response: { 200: ReplayReply } }),
    async (request) => {
      const count = await replayDeliveries(deps, webhookTarget(request, request.params.uuid))
      return { message: 'Queued', count }
    },
  )
}

function webhookTarget(request: FastifyRequest, webhookId: string): WebhookTarget {
  return { ...changedBy(request), webhookId }
}

/** The address of a new webhook. @throws Failure `invalid`, also for a field that is misspelled: it would be ignored */
function readUrl(body: Static<typeof CreateBody>): string {
  if ('events' in body) throw new Failure('invalid', `There is no "events": a webhook has one event, or all. ${EVENT_ADVICE}`)
  refuseMisspelledNames(Object.keys(body), Object.keys(CreateBody.properties))
  const { value, url = value } = body
  if (url === undefined) throw new Failure('invalid', 'Send "value" or "url": the http or https address that gets the events.')
  if (value !== undefined && value !== url) throw new Failure('invalid', '"value" and "url" differ. Send one of the two.')
  return url
}

/** @throws Failure `invalid` */
function readEvent(text = ALL_EVENTS): WebhookEvent | undefined {
  if (text === ALL_EVENTS || text === '') return undefined
  const event = WEBHOOK_EVENTS.find((known) => known === text)
  if (!event) throw new Failure('invalid', `There is no such event. ${EVENT_ADVICE}`)
  return event
}

/** @throws Failure `not-found` for what is no number of a delivery */
function readSequence(text: string): number {
  if (!/^[1-9]\d{0,14}$/.test(text)) throw new Failure('not-found', 'Delivery not found')
  return Number(text)
}

function webhookBody(webhook: Webhook): Static<typeof WebhookBody> {
  return {
    uuid: webhook.id,
    type: 'http',
    value: webhook.url,
    event: webhook.event ?? ALL_EVENTS,
    status: webhook.disabledReason === null ? 1 : 0,
    ...(webhook.disabledReason === null ? {} : { statusReason: webhook.disabledReason }),
    failingSince: isoTimeOrNull(webhook.failingSinceS),
    createdAt: isoTime(webhook.createdAtS),
  }
}

type Delivery = Awaited<ReturnType<typeof listDeliveries>>['deliveries'][number]

function deliveryBody(delivery: Delivery): Static<typeof DeliveryBody> {
  return {
    id: delivery.sequence,
    webhookId: messageId(delivery.webhookId, delivery.sequence),
    event: delivery.event,
    state: delivery.state,
    attempts: delivery.attempts,
    time: delivery.timeMs,
    triedAt: isoTimeOrNull(delivery.triedAtS),
    dueAt: delivery.state === 'waiting' && delivery.dueAtS > 0 ? isoTime(delivery.dueAtS) : null,
    responseStatus: delivery.status,
    problem: delivery.problem,
    body: delivery.body,
  }
}
