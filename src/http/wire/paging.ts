import { Type } from 'typebox'
import { Failure } from '../../errors.ts'

/** Rows of a page. */
type PageLimits = { default: number; max: number }

/** The parameters that `readPaging` reads, for the schema of a route. */
export function pagingQuery(limits: PageLimits) {
  return {
    page: Type.Optional(Type.String({ description: 'from 1' })),
    limit: Type.Optional(Type.String({ description: `default ${limits.default}; clamped to ${limits.max}` })),
  }
}

/**
 * The page that a list call requests. An empty value and 0 count as absent, and a limit above the maximum is clamped.
 * @throws Failure `invalid`
 */
export function readPaging(query: { page?: unknown; limit?: unknown }, limits: PageLimits): { page: number; limit: number } {
  const page = readCount('page', query.page) ?? 1
  const limit = Math.min(readCount('limit', query.limit) ?? limits.default, limits.max)
  return { page, limit }
}

/** @throws Failure `invalid` */
export function readCount(name: string, value: unknown): number | undefined {
  if (value === undefined || value === '') return undefined
  if (typeof value !== 'string' || !/^[0-9]{1,40}$/.test(value))
    throw new Failure('invalid', `${name} must be one whole number from 1, in digits, such as ${name}=2.`)
  return Number(value) || undefined
}
