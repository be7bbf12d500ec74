import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { planLadder } from '../../src/encode/ladder.ts'

// The tables of what a bucket costs, computed from the ladder and from the assumptions that the page names.

const LESSON_S = 30 * 60
const SEGMENT_S = 4
const SOUND_BPS = 128_000
const VIEWS = [1000, 100_000, 1_000_000]

const rungs = planLadder({ widthPx: 1920, heightPx: 1080 }, { rateNum: 25, rateDen: 1 }).toReversed()
const gbOf = (bitsPerS: number) => (bitsPerS * LESSON_S) / 8 / 1e9
const viewGb = rungs.map(({ maxBitrateBps }) => gbOf(maxBitrateBps + SOUND_BPS))
const viewRequests = (2 * LESSON_S) / SEGMENT_S
const spaced = (count: number) => String(count).replace(/(?<=\d)(?=(\d{3})+$)/g, ' ')
const short = (value: number) => (value < 10 ? value.toFixed(2) : value.toFixed(0))

test('docs/operations.md says what requests and bytes a lesson of 30 minutes takes from a bucket, and what that costs', async () => {
  const page = await readFile(join(import.meta.dirname, '../../docs/operations.md'), 'utf8')
  const objects = (rungs.length + 1) * (LESSON_S / SEGMENT_S)
  const storedGb = gbOf(rungs.reduce((bps, { maxBitrateBps }) => bps + maxBitrateBps, SOUND_BPS))
  expect(page).toContain(`${spaced(objects)} objects, and at most ${storedGb.toFixed(2)} GB`)
  for (const views of VIEWS) {
    const requests = (views * viewRequests) / 1e6
    const taken = viewGb.map((gb) => `${short((views * gb) / 1000)} TB`)
    expect(page).toContain(`| ${spaced(views)} | ${requests} million | ${taken.join(' | ')} |`)
    const costs = [requests * 0.36, ...viewGb.slice(1).map((gb) => requests * 0.4 + views * gb * 0.09)]
    expect(page).toContain(`| ${spaced(views)} | ${costs.map(short).join(' | ')} |`)
  }
})
