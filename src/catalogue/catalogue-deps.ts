import type { Db } from '../db/database.ts'
import type { Write } from '../db/write.ts'
import type { TitleSearch } from './title-search.ts'

export type CatalogueDeps = {
  db: Db
  write: Write
  /** The wall clock, for the times that owners see. */
  wallNowS: () => number
}

/** `slowQueryDb`: slow reads, in their own thread. */
export type ListDeps = { db: Db; slowQueryDb: Db }

export type SearchDeps = ListDeps & { titleSearch: TitleSearch }
