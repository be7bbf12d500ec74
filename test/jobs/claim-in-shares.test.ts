import { expect, test } from 'vitest'
import { claimInShares } from '../../src/jobs/claim-in-shares.ts'

/** Kinds of work that wait as long as their number of jobs is not used up. */
function openKinds(waiting: Record<string, number>) {
  const left = new Map(Object.entries(waiting))
  const kinds = [...left.keys()].map((kind) => ({
    async claim() {
      const jobs = left.get(kind) ?? 0
      left.set(kind, jobs - 1)
      return jobs > 0 ? kind : undefined
    },
  }))
  return { kinds, left }
}

async function claimTimes(claim: (context: object) => Promise<string | undefined>, times: number) {
  const claimed: (string | undefined)[] = []
  for (let n = 0; n < times; n++) claimed.push(await claim({}))
  return claimed
}

test('the first kind that waits is claimed, and each other one after as many jobs as it may be passed over', async () => {
  const { kinds } = openKinds({ first: 100, second: 100, third: 100 })
  const claimed = await claimTimes(claimInShares(kinds, 2), 7)
  expect(claimed).toEqual(['first', 'first', 'second', 'third', 'first', 'second', 'third'])
})

test('a kind that does not wait delays none, and one that comes again waits its turn from then on', async () => {
  const { kinds, left } = openKinds({ first: 100, second: 1 })
  const claim = claimInShares(kinds, 2)
  expect(await claimTimes(claim, 6)).toEqual(['first', 'first', 'second', 'first', 'first', 'first'])
  left.set('second', 1)
  expect(await claimTimes(claim, 3)).toEqual(['first', 'first', 'second'])
})

test('when nothing waits, nothing is claimed', async () => {
  const { kinds } = openKinds({ first: 0, second: 0 })
  expect(await claimInShares(kinds, 2)({})).toBeUndefined()
})

test('a kind that is held back is claimed only when it has been passed over as often as it may', async () => {
  const { kinds } = openKinds({ first: 3, second: 100 })
  const claim = claimInShares(
    kinds.map((kind, index) => ({ ...kind, isHeldBack: () => index === 1 })),
    2,
  )
  expect(await claimTimes(claim, 6)).toEqual(['first', 'first', 'second', 'first', undefined, undefined])
})
