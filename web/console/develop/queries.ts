import { queryOptions } from '@tanstack/react-query'
import type { BanListBody } from '../../../src/http/api/bans.ts'
import type { KeyListBody } from '../../../src/http/api/keys.ts'
import type { CourseListBody, PlatformListBody } from '../../../src/http/api/lti.ts'
import type { UploadTokenListBody } from '../../../src/http/api/upload-tokens.ts'
import type { DeliveryListBody, WebhookListBody } from '../../../src/http/api/webhooks.ts'
import { callApi } from '../api.ts'
import { rowsQuery } from '../rows-query.ts'

export type Key = KeyListBody['rows'][number]
export type Permission = Key['permissions'][number]
export type UploadToken = UploadTokenListBody['rows'][number]
export type Platform = PlatformListBody['rows'][number]
export type Course = CourseListBody['rows'][number]
export type Webhook = WebhookListBody['rows'][number]
export type Delivery = DeliveryListBody['rows'][number]
export type Ban = BanListBody['rows'][number]

export const DELIVERIES_ON_PAGE = 20

export const keysQuery = rowsQuery<Key>('keys')

export const uploadTokensQuery = rowsQuery<UploadToken>('upload-tokens')

export const webhooksQuery = rowsQuery<Webhook>('hooks', { queryKey: ['webhooks', 'list'] })

export const deliveriesQuery = (webhookId: string, page: number) =>
  queryOptions({
    queryKey: ['webhooks', 'deliveries', webhookId, page],
    queryFn: ({ signal }) =>
      callApi<DeliveryListBody>('GET', `hooks/${encodeURIComponent(webhookId)}/deliveries`, {
        query: { page, limit: DELIVERIES_ON_PAGE },
        signal,
      }),
    refetchInterval: 10_000,
  })

export const platformsQuery = rowsQuery<Platform>('lti/platforms')

export const coursesQuery = (platformId: string) => rowsQuery<Course>(`lti/platforms/${platformId}/courses`)

export const bansQuery = rowsQuery<Ban>('bans')
