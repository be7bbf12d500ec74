import type { AlertListBody } from '../../../src/http/api/alerts.ts'
import { rowsQuery } from '../rows-query.ts'

export type Alert = AlertListBody['rows'][number]

const REFRESH_MS = 30_000
/** Of the last days, newest first: what is older is in the API. */
const MAX_ROWS = 200

export const alertsQuery = { ...rowsQuery<Alert>('alerts', { query: { limit: MAX_ROWS } }), refetchInterval: REFRESH_MS }
