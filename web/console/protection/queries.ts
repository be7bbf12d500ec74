import { queryOptions } from '@tanstack/react-query'
import { callApi } from '../api.ts'
import type { OtpDefaults } from './protection.ts'

export const accountDefaultsQuery = queryOptions({
  queryKey: ['otp-defaults'],
  queryFn: ({ signal }) => callApi<OtpDefaults>('GET', 'otp-defaults', { signal }),
})
