import { queryOptions } from '@tanstack/react-query'
import type { QualityRow } from '../../../src/http/api/quality.ts'
import type { StatisticsBody, UsageBody } from '../../../src/http/api/statistics.ts'
import { callApi } from '../api.ts'
import { rowsQuery } from '../rows-query.ts'
import { lastDays } from '../viewers/queries.ts'

/** Views and bandwidth of the last days, of the account or of one video. */
export const statisticsQuery = (days: number, video?: string) =>
  queryOptions({
    queryKey: ['statistics', days, video],
    queryFn: ({ signal }) => callApi<StatisticsBody>('GET', 'statistics', { query: { ...lastDays(days), video }, signal }),
  })

/** How videos played in the last days, of the account or of one video, by day or another group. */
export const qualityQuery = (days: number, by: 'day' | 'country' | 'browser' | 'network' | 'video', video?: string) =>
  rowsQuery<QualityRow>('quality', { queryKey: ['quality', days, by, video], query: { ...lastDays(days), by, video } })

/** A month of UTC as an address has it, such as `2026-11`, and its days. */
type Month = { name: string; from: string; to: string }

const MONTHS = 13

/** The months of which usage is kept, the newest first. */
export function keptMonths(now = new Date()): Month[] {
  return Array.from({ length: MONTHS }, (_, ago) => {
    const dayOf = (day: number, month: number) =>
      new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - ago + month, day)).toISOString().slice(0, 10)
    const from = dayOf(1, 0)
    return { name: from.slice(0, 7), from, to: dayOf(0, 1) }
  })
}

/** Views and bandwidth of each video in a month. */
export const usageQuery = ({ from, to }: Month) =>
  rowsQuery<UsageBody['rows'][number]>('usage', { queryKey: ['usage', from, to], query: { from, to } })
