import type { Db } from '../../db/database.ts'
import type { KeyBudgetRow } from '../../db/tables.ts'
import type { Write } from '../../db/write.ts'
import { createWriteBehind } from '../../db/write-behind.ts'
import type { Balance } from './key-budget.ts'
import { type BudgetKey, findKeyBudget, saveKeyBudget } from './key-budget-store.ts'
import {
  type Budget,
  budgetKeysOf,
  budgetsOf,
  isAlwaysKept,
  newBudget,
  type Playing,
  releasedIn,
  type SessionBudgets,
  toRow,
} from './session-budgets.ts'
import { joinWindows } from './window-set.ts'

// Keys are released at the pace of watching: playback-protocol.md, section 6. Budgets are in memory and saved every few seconds.

export type KeyPacing = {
  budgetsOf(playing: Playing): Promise<SessionBudgets>
  /** Saves the budgets, and drops those from memory that were not used for a while. */
  save(): Promise<void>
  /** Drops all budgets from memory, after they were saved: from now on others write their rows. */
  forget(): void
}

type SavedBudget = Budget & {
  /** What its row has, and the version of that; 0: it has none. */
  saved: Balance | undefined
  version: number
  /** What its row has if the last write was committed, which is not known. */
  maybeSaved: BudgetChange | undefined
}

type BudgetChange = { row: KeyBudgetRow; paidS: number }

/** @param nowS the playback clock, with fractions of seconds */
export function createKeyPacing({ db, write, nowS }: { db: Db; write: Write; nowS(): number }): KeyPacing {
  const budgets = createWriteBehind<SavedBudget, BudgetChange>(
    { write, nowS },
    {
      toChange,
      async write(tx, { row }) {
        const { numAffectedRows } = await saveKeyBudget(tx, row)
        if (numAffectedRows) return undefined
        const found = await findKeyBudget(tx, row)
        return found && ((budget) => mergeRow(budget, found))
      },
      onWritten,
      onUnknown(budget, change) {
        budget.maybeSaved = change
      },
    },
  )

  const getBudget = ({ key, startS }: { key: BudgetKey; startS: number }) =>
    budgets.getOrLoad(nameOf(key), async () => {
      const row = await findKeyBudget(db, key)
      const budget = newBudget(key, startS, row, nowS())
      return { ...budget, saved: row && { ...budget.balance }, version: row?.version ?? 0, maybeSaved: undefined }
    })

  return {
    async budgetsOf(playing) {
      const keys = budgetKeysOf(playing)
      const [own, ofAllVideos, ofAddresses] = await Promise.all([
        getBudget(keys.own),
        keys.ofAllVideos && getBudget(keys.ofAllVideos),
        Promise.all(keys.ofAddresses.map(getBudget)),
      ])
      return budgetsOf(playing, { own, ofAllVideos, ofAddresses }, nowS)
    },
    save: budgets.save,
    forget: () => budgets.forget(() => true),
  }
}

/** What nothing was taken from need not be saved. */
function toChange(budget: SavedBudget): BudgetChange | undefined {
  const { key, balance, saved, version, unsavedS } = budget
  if (!saved && budget.released.size === 0 && !isAlwaysKept(key)) return undefined
  if (saved?.levelS === balance.levelS && saved.earnedAtS === balance.earnedAtS) return undefined
  return { row: { ...toRow(budget), version }, paidS: unsavedS }
}

function onWritten(budget: SavedBudget, { row, paidS }: BudgetChange): void {
  budget.saved = { levelS: row.levelS, earnedAtS: row.earnedAtS }
  budget.version = row.version + 1
  budget.unsavedS -= paidS
  budget.maybeSaved = undefined
}

/** Another server has released keys: they are paid for as well as those that were released here. What both have earned is earned once. */
function mergeRow(budget: SavedBudget, row: KeyBudgetRow): void {
  const { levelS, earnedAtS, releasedOf, version } = row
  const { maybeSaved } = budget
  if (maybeSaved?.row.levelS === levelS && maybeSaved.row.earnedAtS === earnedAtS) {
    onWritten(budget, maybeSaved)
    return
  }
  budget.balance = { levelS: levelS - budget.unsavedS, earnedAtS }
  budget.released.set(releasedOf, joinWindows(releasedIn(budget, releasedOf), row.released))
  budget.saved = { levelS, earnedAtS }
  budget.version = version
  budget.maybeSaved = undefined
}

function nameOf({ accountId, videoId, sourceNumber, viewer }: BudgetKey): string {
  return `${accountId} ${videoId} ${sourceNumber} ${viewer}`
}
