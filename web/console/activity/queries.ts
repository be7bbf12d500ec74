import { queryOptions } from '@tanstack/react-query'
import type { StatisticsBody } from '../../../src/http/api/statistics.ts'
import { callApi } from '../api.ts'
import { dateOf } from '../viewers/queries.ts'

const DAY_MS = 24 * 3600 * 1000

/** Views and bandwidth of the last days, of the account or of one video. */
export const statisticsQuery = (days: number, video?: string) =>
  queryOptions({
    queryKey: ['statistics', days, video],
    queryFn: ({ signal }) =>
      callApi<StatisticsBody>('GET', 'statistics', {
        query: { from: dateOf(Date.now() - (days - 1) * DAY_MS), to: dateOf(Date.now()), video },
        signal,
      }),
  })
