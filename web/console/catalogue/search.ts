/** States of videos as the library filters them. */
export const STATE_FILTERS = ['ready', 'processing', 'failed', 'waiting'] as const
export type StateFilter = (typeof STATE_FILTERS)[number]

/** Orders of the list, as the API names them, besides the newest first. */
const ORDERS = ['upload_time', 'title', '-title', '-length', 'length', '-size', 'size', '-views', 'views'] as const
export type Order = (typeof ORDERS)[number]

const VIEWS = ['table', 'cards'] as const
type View = (typeof VIEWS)[number]

/** What the library shows, as its address says it: everything that a colleague must see when they open the same link. */
export type LibrarySearch = {
  q?: string
  /** The id of a folder; absent: the videos of all folders. */
  folder?: string
  /** Names, separated by commas. */
  tags?: string
  state?: StateFilter
  /** Absent: the newest first. */
  sort?: Order
  view?: View
}

/**
 * Reads the query of an address, which may be anything. What is not known is undefined, not left out: the router would pass on what the
 * address says.
 */
export function parseLibrarySearch({ q, folder, tags, state, sort, view }: Record<string, unknown>): LibrarySearch {
  return {
    q: readText(q)?.slice(0, 500),
    folder: readText(folder),
    tags: readText(tags),
    state: STATE_FILTERS.find((known) => known === state),
    sort: ORDERS.find((known) => known === sort),
    view: VIEWS.find((known) => known === view),
  }
}

/** For links: the current one is the one whose whole query is that of the address. */
export const EXACTLY = { exact: true, includeSearch: true } as const

export function tagsOf({ tags }: LibrarySearch): string[] {
  return tags === undefined ? [] : tags.split(',')
}

export function isFiltered({ q, tags, state }: LibrarySearch): boolean {
  return q !== undefined || tags !== undefined || state !== undefined
}

function readText(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}
