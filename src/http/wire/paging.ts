import { Type } from 'typebox'
import { Failure } from '../../errors.ts'

/** Rows of a page: the default, and the most. */
type PageLimits = { usual: number; largest: number }

/** The parameters that `readPaging` reads, for the schema of a route. */
export function pagingQuery({ usual, largest }: PageLimits) {
  return {
    page: Type.Optional(Type.String({ description: 'from 1' })),
    limit: Type.Optional(Type.String({ description: `default ${usual}; clamped to ${largest}` })),
  }
}

/**
 * The page that a list call requests. An empty value and 0 count as absent, and a limit above the largest is clamped.
 * @throws Failure `invalid`
 */
export function readPaging(query: { page?: unknown; limit?: unknown }, limits: PageLimits): { page: number; limit: number } {
  const page = readCount('page', query.page) ?? 1
  const limit = Math.min(readCount('limit', query.limit) ?? limits.usual, limits.largest)
  return { page, limit }
}

function readCount(name: string, given: unknown): number | undefined {
  if (given === undefined || given === '') return undefined
  if (typeof given !== 'string' || !/^[0-9]{1,40}$/.test(given))
    throw new Failure('invalid', `${name} must be one whole number from 1, in digits, such as ${name}=2.`)
  return Number(given) || undefined
}
