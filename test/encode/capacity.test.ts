import { expect, test } from 'vitest'
import { findLeastBusy } from '../../src/encode/capacity.ts'

const OWN = 'ffmpeg 5'
const OTHER = 'ffmpeg 6'

test('J32: a new video begins with the encoders that finish it first, and with the server’s own where that is the same', () => {
  const choose = (slots: [number, number], pending: [number, number]) =>
    findLeastBusy(
      new Map([
        [OTHER, slots[1]],
        [OWN, slots[0]],
      ]),
      new Map([
        [OWN, pending[0]],
        [OTHER, pending[1]],
      ]),
      OWN,
    )
  expect(choose([2, 2], [0, 0])).toBe(OWN)
  expect(choose([2, 4], [0, 0])).toBe(OTHER)
  expect(choose([2, 4], [10, 30])).toBe(OWN)
  expect(choose([2, 2], [30, 10])).toBe(OTHER)
  expect(findLeastBusy(new Map([[OTHER, 1]]), new Map([[OTHER, 1_000]]), OWN)).toBe(OTHER)
  expect(findLeastBusy(new Map(), new Map(), OWN)).toBe(OWN)
})
