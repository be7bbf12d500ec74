import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Failure } from '../../src/errors.ts'
import { openCountries } from '../../src/playback/rules/countries.ts'
import { findRefusingLocationRule, type Rules, readRules } from '../../src/playback/rules/rules.ts'
import { rounds } from '../seeded-random.ts'

// Who may watch from where: generated rules and viewers, against ranges counted in whole numbers.

const RUNS = { numRuns: rounds(300, 30_000), seed: process.env.REELGATE_SEED ? Number(process.env.REELGATE_SEED) : undefined }

type Family = 4 | 6
const BITS = { 4: 32, 6: 128 } as const
const someFamily = fc.constantFrom<Family>(4, 6)
const number = (family: Family) => fc.bigInt({ min: 0n, max: 2n ** BigInt(BITS[family]) - 1n })

function textOf(family: Family, value: bigint): string {
  if (family === 4) return [24n, 16n, 8n, 0n].map((shift) => (value >> shift) & 255n).join('.')
  return Array.from({ length: 8 }, (_, group) => ((value >> BigInt(112 - 16 * group)) & 0xffffn).toString(16)).join(':')
}

/** As short as it can be written, in capitals. */
const shortened = (address: string) => new URL(`http://[${address}]`).hostname.slice(1, -1).toUpperCase()

const someRange = someFamily.chain((family) =>
  fc.record({ family: fc.constant(family), value: number(family), length: fc.integer({ min: 0, max: BITS[family] }) }),
)
type Range = { family: Family; value: bigint; length: number }

function edgesOf({ family, value, length }: Range) {
  const size = 2n ** BigInt(BITS[family] - length)
  const first = (value / size) * size
  return { first, last: first + size - 1n, end: 2n ** BigInt(BITS[family]) }
}

const refuses = (rules: Rules | undefined, address: string, country?: string) =>
  findRefusingLocationRule(rules ?? {}, { address, country })

test('a range holds the addresses between its first and its last, of its own family alone', () => {
  fc.assert(
    fc.property(someRange, someRange, (range, other) => {
      const { first, last, end } = edgesOf(range)
      const rules = readRules({ ipGeo: { allow: [`${textOf(range.family, range.value)}/${range.length}`] } })
      for (const value of [first - 1n, first, last, last + 1n, other.value % end, range.value]) {
        if (value < 0n || value >= end) continue
        const isIn = first <= value && value <= last
        expect(refuses(rules, textOf(range.family, value))).toBe(isIn ? undefined : 'ipGeo.allow')
      }
      if (other.family !== range.family) expect(refuses(rules, textOf(other.family, other.value))).toBe('ipGeo.allow')
    }),
    RUNS,
  )
})

test('an address is the same however it is written: shortened, in capitals, or IPv4 mapped into IPv6', () => {
  fc.assert(
    fc.property(number(6), number(4), (six, four) => {
      const [long, dotted] = [textOf(6, six), textOf(4, four)]
      expect(refuses(readRules({ ipGeo: { block: [shortened(long)] } }), long)).toBe('ipGeo.block')
      const mapped = ['::ffff:', '0:0:0:0:0:FFFF:'].flatMap((prefix) => [prefix + dotted, `${prefix}${dotted}/128`])
      for (const entry of mapped) expect(refuses(readRules({ ipGeo: { block: [entry] } }), dotted)).toBe('ipGeo.block')
    }),
    RUNS,
  )
  expect(refuses(readRules({ ipGeo: { block: ['::ffff:10.0.0.0/104'] } }), '10.255.0.1')).toBe('ipGeo.block')
})

const LOCATIONS = ['DE', 'FR', 'US', '10.0.0.0/8', '10.1.0.0/16', '2001:db8::/32'] as const
type LocationName = (typeof LOCATIONS)[number]
const someLocation = fc.constantFrom(...LOCATIONS)
const someViewer = fc.record({
  address: fc.constantFrom('10.0.0.1', '10.1.0.1', '192.0.2.1', '2001:db8::1', '2001:db9::1'),
  country: fc.option(fc.constantFrom('DE', 'FR', 'US', 'CH'), { nil: undefined }),
})
type SomeViewer = { address: string; country: string | undefined }

/** What lies where, written down by hand. */
const INSIDE: Record<string, readonly string[]> = {
  '10.0.0.0/8': ['10.0.0.1', '10.1.0.1'],
  '10.1.0.0/16': ['10.1.0.1'],
  '2001:db8::/32': ['2001:db8::1'],
}
const isAt = (viewer: SomeViewer, location: LocationName) =>
  viewer.country === location || INSIDE[location]?.includes(viewer.address) === true

test('ipGeo: block takes from allow, except from block or, without one, from allow; a list in a list is all of it together', () => {
  const someEntry = fc.oneof(someLocation, fc.array(someLocation, { minLength: 1, maxLength: 3 }))
  const someList = fc.option(fc.array(someEntry, { maxLength: 4 }), { nil: undefined })
  fc.assert(
    fc.property(someList, someList, someList, someViewer, (allow = [], block = [], except = [], viewer) => {
      if (allow.length === 0 && block.length === 0) return
      const within = (list: typeof allow) => list.some((entry) => [entry].flat().every((location) => isAt(viewer, location)))
      const isBlocked = within(block) && !within(except)
      const isTakenOut = block.length === 0 && within(except)
      const may = (allow.length === 0 || within(allow)) && !isBlocked && !isTakenOut
      const refusedBy = refuses(readRules({ ipGeo: { allow, block, except } }), viewer.address, viewer.country)
      expect(refusedBy === undefined).toBe(may)
    }),
    RUNS,
  )
})

test('ipGeoRules: the last match decides; where none matches, the opposite of the first rule', () => {
  const countries = fc.subarray(['DE', 'FR', 'US'] as const)
  const ranges = fc.subarray(['10.0.0.0/8', '10.1.0.0/16', '2001:db8::/32'] as const)
  const someRules = fc.array(fc.record({ action: fc.boolean(), ipSet: ranges, countrySet: countries }), { minLength: 1 })
  fc.assert(
    fc.property(someRules, someViewer, (rules, viewer) => {
      let may = !rules[0]?.action
      for (const { action, ipSet, countrySet } of rules) {
        const matches = [ipSet, countrySet].every((set) => set.length === 0 || set.some((location) => isAt(viewer, location)))
        if (matches) may = action
      }
      const sent = rules.map((rule) => ({ ...rule, action: String(rule.action) }))
      for (const ipGeoRules of [rules, JSON.stringify(rules), sent]) {
        expect(refuses(readRules({ ipGeoRules }), viewer.address, viewer.country) === undefined).toBe(may)
      }
    }),
    RUNS,
  )
})

test('both kinds of rules must let a viewer in, and a refusal names the one that did not', () => {
  const rules = readRules({
    ipGeo: { allow: ['DE'], block: [['DE', '10.0.0.0/8']] },
    ipGeoRules: [
      { action: 'false', ipSet: [], countrySet: [] },
      { action: 'true', ipSet: ['192.0.2.0/24', '10.0.0.0/8'], countrySet: [] },
      { action: 'false', ipSet: ['192.0.2.9'] },
    ],
  })
  expect(refuses(rules, '192.0.2.1', 'DE')).toBe(undefined)
  expect(refuses(rules, '192.0.2.1', 'FR')).toBe('ipGeo.allow')
  expect(refuses(rules, '192.0.2.1')).toBe('ipGeo.allow')
  expect(refuses(rules, '10.0.0.1', 'DE')).toBe('ipGeo.block')
  expect(refuses(rules, '198.51.100.1', 'DE')).toBe('ipGeoRules[0]')
  expect(refuses(rules, '192.0.2.9', 'DE')).toBe('ipGeoRules[2]')
  expect(refuses(readRules({ ipGeoRules: [{ action: true, countrySet: ['de'] }] }), '192.0.2.1', 'FR')).toBe('ipGeoRules')
})

describe('what cannot be read is refused by name, whatever else is right', () => {
  test.each<[string, unknown, RegExp]>([
    ['ipGeo', 'DE', /^ipGeo is an object/],
    ['ipGeo', ['DE'], /^ipGeo is an object/],
    ['ipGeo', { deny: ['DE'] }, /^ipGeo is an object/],
    ['ipGeo', { allow: 'DE' }, /^ipGeo\.allow is a list/],
    ['ipGeo', { allow: ['UK'] }, /^ipGeo\.allow has "UK", which is neither/],
    ['ipGeo', { allow: ['DE', 'Germany'] }, /^ipGeo\.allow has "Germany"/],
    ['ipGeo', { block: [[]] }, /^ipGeo\.block: a list in the list/],
    ['ipGeo', { block: [['DE', 7]] }, /^ipGeo\.block has 7/],
    ['ipGeo', { block: [[['DE']]] }, /^ipGeo\.block has \["DE"\]/],
    ['ipGeo', { except: ['DE'] }, /^ipGeo\.except makes exceptions/],
    ...['1.2.3', '1.2.3.4/33', '::1/129', '1.2.3.4/', '256.1.1.1', '01.2.3.4', '[::1]', '::1%eth0', '1.2.3.4:80', ''].map(
      (entry): [string, unknown, RegExp] => ['ipGeo', { block: [entry] }, /^ipGeo\.block has ".*", which is neither/],
    ),
    ['ipGeoRules', { action: true }, /^ipGeoRules is a list/],
    ['ipGeoRules', '[{"action":true}', /^ipGeoRules is a list/],
    ['ipGeoRules', [true], /^ipGeoRules\[0\] is an object/],
    ['ipGeoRules', [{ action: true, countryset: ['DE'] }], /^ipGeoRules\[0\] is an object/],
    ['ipGeoRules', [{ ipSet: [] }], /^ipGeoRules\[0\]\.action is true or false/],
    ['ipGeoRules', [{ action: 1 }], /^ipGeoRules\[0\]\.action is true or false/],
    ['ipGeoRules', [{ action: true }, { action: false, ipSet: '10.0.0.1' }], /^ipGeoRules\[1\]\.ipSet is a list/],
    ['ipGeoRules', [{ action: true, ipSet: ['DE'] }], /^ipGeoRules\[0\]\.ipSet has the country DE/],
    ['ipGeoRules', [{ action: true, countrySet: ['10.0.0.1'] }], /^ipGeoRules\[0\]\.countrySet has the address 10\.0\.0\.1/],
    ['ipGeo', { allow: Array.from({ length: 2000 }, (_, n) => `10.0.${n % 250}.1`) }, /longer than 16384 bytes/],
  ])('%s: %j', (name, given, why) => {
    expect(() => readRules({ [name]: given })).toThrow(why)
    expect(() => readRules({ [name]: given })).toThrow(Failure)
  })

  test.each([{}, { allow: [] }, { allow: null, block: [] }, '{}', '', null])('ipGeo %j is no rule', (ipGeo) => {
    expect(readRules({ ipGeo, ipGeoRules: [] })).toBeUndefined()
  })
})

test('addresses are in the countries where they are known to be; private ones are in none', async () => {
  const countries = openCountries()
  const known = {
    '193.0.6.139': 'NL',
    '80.128.0.1': 'DE',
    '2003::1': 'DE',
    '133.11.0.1': 'JP',
    '200.160.2.3': 'BR',
    '2a01:e0a::1': 'FR',
  }
  for (const [address, country] of Object.entries(known)) expect(await countries.find(address), address).toBe(country)
  for (const address of ['127.0.0.1', '10.0.0.1', '192.168.1.1', '::1', 'fd00::1', '192.0.2.1'])
    expect(await countries.find(address), address).toBeUndefined()
})

test('a database of countries that is not one is refused, and read again when it has been put right', async () => {
  await expect(openCountries('/nowhere/countries.mmdb').find('80.128.0.1')).rejects.toThrow(/REELGATE_COUNTRIES/)
})
