import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { readRange } from '../../src/http/media/range.ts'

describe('P11: ranges of a file of 1000 bytes', () => {
  test.each([
    ['bytes=0-0', { first: 0, last: 0 }],
    ['bytes=100-199', { first: 100, last: 199 }],
    ['bytes=100-', { first: 100, last: 999 }],
    ['bytes=-1', { first: 999, last: 999 }],
    ['bytes=-5000', { first: 0, last: 999 }],
    ['bytes=990-5000', { first: 990, last: 999 }],
    ['bytes=1000-', 'unsatisfiable'],
    ['bytes=999999999999-', 'unsatisfiable'],
    ['bytes=-0', 'unsatisfiable'],
    // Not a range, or more than one: the whole file, as RFC 9110 allows.
    ['bytes=5-2', undefined],
    ['bytes=0-1,5-6', undefined],
    ['bytes=', undefined],
    ['bytes=-', undefined],
    ['items=0-1', undefined],
    ['bytes=a-b', undefined],
    [undefined, undefined],
  ])('%s', (header, range) => {
    expect(readRange(header, 1000)).toEqual(range)
  })

  test('whatever the header says, a range is within the file', () => {
    fc.assert(
      fc.property(fc.string(), fc.nat(10_000), fc.integer({ min: 1, max: 9_000 }), (noise, from, sizeBytes) => {
        for (const header of [noise, `bytes=${from}-`, `bytes=-${from}`, `bytes=${noise}`]) {
          const range = readRange(header, sizeBytes)
          if (range === undefined || range === 'unsatisfiable') continue
          expect(range.first).toBeGreaterThanOrEqual(0)
          expect(range.last).toBeLessThan(sizeBytes)
          expect(range.first).toBeLessThanOrEqual(range.last)
        }
      }),
    )
  })
})
