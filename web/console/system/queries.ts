import { infiniteQueryOptions, keepPreviousData, queryOptions } from '@tanstack/react-query'
import type { OwnAccountBody } from '../../../src/http/api/account.ts'
import type { AuditLogBody } from '../../../src/http/api/audit-log.ts'
import type { QueueBody } from '../../../src/http/api/queue.ts'
import type { AccountListBody } from '../../../src/http/console/accounts.ts'
import type { SignInListBody } from '../../../src/http/console/sign-ins.ts'
import type { ChecksBody, ServersBody, SystemStatusBody } from '../../../src/http/console/system.ts'
import type { UserListBody } from '../../../src/http/console/users.ts'
import type { WorkerListBody } from '../../../src/http/console/workers.ts'
import { callApi, callApiForPage } from '../api.ts'
import { rowsQuery } from '../rows-query.ts'

export type User = UserListBody['rows'][number]
export type SignIn = SignInListBody['rows'][number]
export type Account = AccountListBody['rows'][number]
export type Work = QueueBody['rows'][number]
export type Worker = WorkerListBody['rows'][number]
export type Check = ChecksBody['rows'][number]
export type Server = ServersBody['rows'][number]

const REFRESH_MS = 5_000
const AUDIT_PAGE = 100

export const accountQuery = queryOptions({
  queryKey: ['account'],
  queryFn: ({ signal }) => callApi<OwnAccountBody>('GET', 'account', { signal }),
})

export const usersQuery = rowsQuery<User>('users')

export const signInsQuery = rowsQuery<SignIn>('sign-ins')

export const accountsQuery = rowsQuery<Account>('accounts')

export const queueQuery = { ...rowsQuery<Work>('queue'), refetchInterval: REFRESH_MS }

export const workersQuery = { ...rowsQuery<Worker>('system/workers'), refetchInterval: REFRESH_MS }

export const checksQuery = rowsQuery<Check>('system/checks')

export const serversQuery = { ...rowsQuery<Server>('system/servers'), refetchInterval: REFRESH_MS }

export const statusQuery = queryOptions({
  queryKey: ['system', 'status'],
  queryFn: ({ signal }) => callApi<SystemStatusBody>('GET', 'system/status', { signal }),
  refetchInterval: REFRESH_MS,
})

/** The newest events first. @param q words that must be in them */
export const auditLogQuery = (q: string) =>
  infiniteQueryOptions({
    queryKey: ['audit-log', q],
    queryFn: ({ pageParam, signal }) =>
      callApiForPage<AuditLogBody>('audit-log', { query: { q, limit: AUDIT_PAGE, after: pageParam }, signal }),
    initialPageParam: '',
    getNextPageParam: ({ after }) => after,
    placeholderData: keepPreviousData,
  })
