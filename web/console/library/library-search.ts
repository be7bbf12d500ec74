/** States of videos as the library filters them. */
export const STATE_FILTERS = ['ready', 'processing', 'failed', 'waiting'] as const
export type StateFilter = (typeof STATE_FILTERS)[number]

/** What the library shows, as its address says it: everything that a colleague must see when they open the same link. */
export type LibrarySearch = {
  q?: string
  /** The id of a folder; absent: the videos of all folders. */
  folder?: string
  /** Names, separated by commas. */
  tags?: string
  state?: StateFilter
  view?: 'cards' | 'table'
}

/** Reads the query of an address, which may be anything: what is not known is left out. */
export function parseLibrarySearch(query: Record<string, unknown>): LibrarySearch {
  const { q, folder, tags, state, view } = query
  return {
    ...(isText(q) ? { q: q.slice(0, 500) } : {}),
    ...(isText(folder) ? { folder } : {}),
    ...(isText(tags) ? { tags } : {}),
    ...pick('state', STATE_FILTERS, state),
    ...pick('view', ['cards', 'table'] as const, view),
  }
}

export function tagsOf({ tags }: LibrarySearch): string[] {
  return tags === undefined ? [] : tags.split(',')
}

export function isFiltered({ q, tags, state }: LibrarySearch): boolean {
  return q !== undefined || tags !== undefined || state !== undefined
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

function pick<Name extends string, Word extends string>(
  name: Name,
  words: readonly Word[],
  value: unknown,
): { [_ in Name]?: Word } {
  const word = words.find((known) => known === value)
  return word === undefined ? {} : ({ [name]: word } as { [_ in Name]?: Word })
}
