import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { type CursorDeps, decodeCursor, encodeCursor } from '../../catalogue/cursor.ts'
import { authenticateRequest } from '../server/caller.ts'
import { isCsvRequest } from '../wire/list-csv.ts'
import { readPaging } from '../wire/paging.ts'

// Lists page by page, and as a file with all pages: read one after the other, so that other calls are answered in between.

const PAGE = { default: 100, max: 1000 }
/** Rows of one file, which is made in memory. */
export const MAX_CSV_ROWS = 100_000
const CSV_PAGE = { default: MAX_CSV_ROWS, max: MAX_CSV_ROWS }

/** The parameters that `readPagedList` reads, for the schema of a route. */
export const PAGED_QUERY = {
  after: Type.Optional(Type.String({ description: 'from the Link header of the previous page' })),
  limit: Type.Optional(Type.String({ description: `default ${PAGE.default}; at most ${PAGE.max}` })),
}

export type PagedListDeps = CursorDeps & { publicUrl(): string }

type Query = { [name in string]?: string } & { after?: string; limit?: string }

/**
 * The page of a list in the order of ids that a request asks for, with the Link to the next one in the reply; for a CSV file all pages.
 * @param list returns the newest rows, at most `limit`, with ids below `below`
 * @throws Failure `invalid`
 */
export async function readPagedList<Row extends { id: number }>(
  deps: PagedListDeps,
  request: FastifyRequest<{ Querystring: Query }>,
  reply: FastifyReply,
  list: (page: { limit: number; below: number | undefined }) => Promise<Row[]>,
): Promise<Row[]> {
  const { accountId } = authenticateRequest(request)
  const { after, ...query } = request.query
  const { limit } = readPaging(query, isCsvRequest(request) ? CSV_PAGE : PAGE)
  const rows: Row[] = []
  let below = after === undefined ? undefined : decodeCursor(deps, accountId, after)
  let isLast = false
  while (!isLast && rows.length < limit) {
    const size = Math.min(PAGE.max, limit - rows.length)
    const page = await list({ limit: size, below })
    rows.push(...page)
    below = page.at(-1)?.id
    isLast = page.length < size
  }
  if (!isLast && below !== undefined) {
    const next = new URLSearchParams({ ...query, limit: String(limit), after: encodeCursor(deps, accountId, below) })
    reply.header('Link', `<${deps.publicUrl()}${request.url.replace(/\?.*$/s, '')}?${next}>; rel="next"`)
  }
  return rows
}

/** The numbered page that a request asks for; for a CSV file the rows of all pages. @throws Failure `invalid` */
export async function readNumberedPage<Row, Page extends { rows: readonly Row[] }>(
  request: FastifyRequest<{ Querystring: { page?: string; limit?: string } }>,
  limits: { default: number; max: number },
  list: (paging: { page: number; limit: number }) => Promise<Page & { rows: readonly Row[] }>,
): Promise<Page & { rows: readonly Row[] }> {
  if (!isCsvRequest(request)) return list(readPaging(request.query, limits))
  const rows: Row[] = []
  for (let page = 1; ; page++) {
    const found = await list({ page, limit: limits.max })
    rows.push(...found.rows)
    if (found.rows.length < limits.max || rows.length >= MAX_CSV_ROWS) return { ...found, rows }
  }
}
