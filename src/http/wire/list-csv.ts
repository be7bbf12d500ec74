import type { FastifyReply, FastifyRequest } from 'fastify'
import { Failure } from '../../errors.ts'
import type { App } from './app-type.ts'
import { csvDocument } from './csv.ts'
import { type JsonSchema, listProperties, toJsonSchema } from './json-schema.ts'

// Every list of an interface is a file for spreadsheets, too: the same route with `format=csv`. Its columns are those of the reply's schema.

/** For the docs: the parameter of every list. */
export const FORMAT_PARAMETER: JsonSchema = {
  const: 'csv',
  description: 'csv: the rows as a CSV file with a column for each field. Without a limit it has all pages, at most 100 000 rows',
}

export function isCsvRequest({ query }: Pick<FastifyRequest, 'query'>): boolean {
  return typeof query === 'object' && query !== null && 'format' in query && query.format === 'csv'
}

/** Sends the lists of the routes that are registered from now on as CSV where a request asks for it. */
export function sendListsAsCsv(app: App): void {
  const running = new Map<string, FastifyRequest>()

  app.addHook('onRoute', (route) => {
    const row = route.method === 'GET' ? findRowSchema(route.schema?.response) : undefined
    if (row) Object.assign(route, { preHandler: beginFile, preSerialization: sendAs(row), onSend: endFile })
  })

  /** A file is many pages, so an account gets one at a time. */
  function beginFile(request: FastifyRequest, _reply: FastifyReply, done: (error?: Error) => void): void {
    const accountId = request.holder?.accountId
    const isFile = accountId !== undefined && isCsvRequest(request)
    const isBusy = isFile && running.has(accountId)
    if (isFile && !isBusy) running.set(accountId, request)
    done(isBusy ? new Failure('limited', BUSY, { retryAfterS: 2 }) : undefined)
  }

  function endFile(request: FastifyRequest, _reply: FastifyReply, payload: unknown, done: Done): void {
    const accountId = request.holder?.accountId ?? ''
    if (running.get(accountId) === request) running.delete(accountId)
    done(null, payload)
  }
}

const BUSY = 'Another CSV file of this account is being made. Try again in a moment.'

type Done = (error: Error | null, payload: unknown) => void

function sendAs(row: JsonSchema) {
  return (request: FastifyRequest, reply: FastifyReply, payload: unknown, done: Done): void => {
    if (reply.statusCode === 200 && isCsvRequest(request)) {
      const [name = 'list'] = (request.routeOptions.url ?? '')
        .split('/')
        .filter((part) => /^[a-z]/.test(part))
        .slice(-1)
      reply
        .type('text/csv; charset=utf-8')
        .header('Content-Disposition', `attachment; filename="${name}.csv"`)
        .serializer((list) => csvOfRows(row, Array.isArray(list) ? list : rowsOf(list)))
    }
    done(null, payload)
  }
}

/** The schema of one row, if that is what a route replies: `{rows: […]}` or a list, of objects. */
export function findRowSchema(response: unknown): JsonSchema | undefined {
  const reply = fieldOf(response, '200')
  const list = fieldOf(reply, 'type') === 'array' ? reply : fieldOf(fieldOf(reply, 'properties'), 'rows')
  const row = fieldOf(list, 'items')
  return fieldOf(row, 'properties') === undefined ? undefined : toJsonSchema(row) // of all routes, at each start: no copy of the others
}

function csvOfRows(row: JsonSchema, rows: readonly unknown[]): string {
  const columns = columnsOf(row)
  return csvDocument([columns.map((path) => path.join('.')), ...rows.map((one) => columns.map((path) => cellOf(one, path)))])
}

/** The path of each column: a field of an object in a row is a column of its own. */
function columnsOf(schema: JsonSchema): string[][] {
  return listProperties(schema).flatMap(({ name, schema: property }) => {
    const object = [property, ...(property.anyOf ?? [])].find(({ properties }) => properties !== undefined)
    return object ? columnsOf(object).map((path) => [name, ...path]) : [[name]]
  })
}

function cellOf(row: unknown, path: readonly string[]): string | number {
  const value = path.reduce<unknown>(fieldOf, row)
  if (value === null || value === undefined) return ''
  if (typeof value === 'number') return value
  if (Array.isArray(value) && value.every((one) => typeof one === 'string')) return value.join(' ')
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

function fieldOf(value: unknown, name: string): unknown {
  return isRecord(value) ? value[name] : undefined
}

function rowsOf(payload: unknown): readonly unknown[] {
  return isRecord(payload) && Array.isArray(payload.rows) ? payload.rows : []
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}
