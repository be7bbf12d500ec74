/** What the library shows, as its address says it: everything that a colleague must see when they open the same link. */
export type LibrarySearch = {
  q?: string
}

/** Reads the query of an address, which may be anything: what is not known is left out. */
export function parseLibrarySearch(query: Record<string, unknown>): LibrarySearch {
  return {
    ...(query.q === undefined || query.q === '' ? {} : { q: String(query.q).slice(0, 500) }),
  }
}
