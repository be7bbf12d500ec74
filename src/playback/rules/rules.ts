import { isIP } from 'node:net'
import { Failure } from '../../errors.ts'
import { parseJson } from '../../json.ts'
import { parseIpAddress, parseIpGroups } from '../../net/ip.ts'
import { type Countries, isCountry } from './countries.ts'
import { readWhitelist, type Whitelist } from './whitelist.ts'

/** The owner's rules for playback with an OTP: JSON in its row, and in the session's. */
export type Rules = { whitelist?: Whitelist; ipGeo?: IpGeo; ipGeoRules?: readonly LocationRule[] }

/** A country (`DE`), or a range of addresses (`192.0.2.0/24`). */
type Location = string
/** A nested list matches what all of its members match. */
type IpGeo = Readonly<Partial<Record<(typeof LISTS)[number], readonly (Location | readonly Location[])[]>>>
/** An empty set holds everyone. */
type LocationRule = Readonly<{ action: boolean; ipSet: readonly Location[]; countrySet: readonly Location[] }>

/** Where a viewer is. The country is undefined when it is not known; then none matches. */
type ViewerLocation = { address: string; country: string | undefined }

const LISTS = ['allow', 'block', 'except'] as const
const MAX_BYTES = 16 * 1024

/** The rule that refuses a viewer at an address, by its name, such as `ipGeo.block`. */
export async function findRefusingRule(countries: Countries, rules: Rules, address: string): Promise<string | undefined> {
  const country = needsCountry(rules) ? await countries.find(address) : undefined
  return findRefusingLocationRule(rules, { address, country })
}

/**
 * The rule that refuses a viewer, by its name in the OTP's options, such as `ipGeo.block` or `ipGeoRules[2]`.
 * Undefined: none does.
 */
export function findRefusingLocationRule({ ipGeo, ipGeoRules }: Rules, { address, country }: ViewerLocation): string | undefined {
  const viewer = { groups: parseIpGroups(address), country }
  return (ipGeo && findRefusingList(ipGeo, viewer)) ?? (ipGeoRules && findRefusingOrderedRule(ipGeoRules, viewer))
}

/** Each list makes exceptions to the one before it; without `block`, `except` makes them to `allow`. */
function findRefusingList({ allow, block, except }: IpGeo, viewer: Viewer): string | undefined {
  const isIn = (list: NonNullable<typeof allow>) =>
    list.some((entry) => (typeof entry === 'string' ? isAt(viewer, entry) : entry.every((location) => isAt(viewer, location))))
  if (allow && !isIn(allow)) return 'ipGeo.allow'
  const isExcepted = except !== undefined && isIn(except)
  if (block) return isIn(block) && !isExcepted ? 'ipGeo.block' : undefined
  return isExcepted ? 'ipGeo.except' : undefined
}

/** The last rule that matches decides. Where none does, the opposite of what the first one says: a list that begins by allowing allows no others. */
function findRefusingOrderedRule(rules: readonly LocationRule[], viewer: Viewer): string | undefined {
  const holds = (set: readonly Location[]) => set.length === 0 || set.some((location) => isAt(viewer, location))
  const last = rules.findLastIndex(({ ipSet, countrySet }) => holds(ipSet) && holds(countrySet))
  const isAllowed = last === -1 ? rules[0]?.action === false : rules[last]?.action === true
  if (isAllowed) return undefined
  return last === -1 ? 'ipGeoRules' : `ipGeoRules[${last}]`
}

/** Whereabouts with the address read once: it may be compared with hundreds of locations. */
type Viewer = { groups: readonly number[]; country: string | undefined }

/** Compares numbers: a `BlockList` for each location took 20 µs. */
function isAt({ groups, country }: Viewer, location: Location): boolean {
  if (isCountry(location)) return location === country
  const [network = '', bits] = location.split('/')
  const first = parseIpGroups(network)
  return first.length === groups.length && first.every((group, n) => isSameBefore(Number(bits) - 16 * n, group, groups[n] ?? 0))
}

/** Whether the first so many bits of two numbers of 16 are the same. */
function isSameBefore(bits: number, one: number, other: number): boolean {
  return (one ^ other) >> Math.max(0, 16 - Math.max(0, bits)) === 0
}

/** Whether a country decides anything. */
function needsCountry({ ipGeo = {}, ipGeoRules = [] }: Rules): boolean {
  const locations = [...Object.values(ipGeo).flat(2), ...ipGeoRules.flatMap(({ countrySet }) => countrySet)]
  return locations.some(isCountry)
}

type GivenRules = Readonly<Record<string, unknown>>

/**
 * Reads the rules among the options of an OTP (wire-contract.md, section 5). Undefined: there are none.
 * @throws Failure `invalid` that names the option
 */
export function readRules({ whitelisthref, ipGeo, ipGeoRules }: GivenRules): Rules | undefined {
  const rules = {
    ...(isGiven(whitelisthref) && { whitelist: readWhitelist(whitelisthref) }),
    ...(isGiven(ipGeo) && readIpGeo(parsed(ipGeo))),
    ...(isGiven(ipGeoRules) && readIpGeoRules(parsed(ipGeoRules))),
  }
  return checkSize(rules)
}

/** Each rule that an OTP sets goes before the default of its video, and that before the one of the account. @throws Failure `invalid` when they are too long together */
export function mergeRules(own: Rules = {}, ofVideo: Rules = {}, ofAccount: Rules = {}): Rules | undefined {
  return checkSize({ ...ofAccount, ...ofVideo, ...own })
}

function checkSize(rules: Rules): Rules | undefined {
  if (Object.keys(rules).length === 0) return undefined
  if (Buffer.byteLength(JSON.stringify(rules)) > MAX_BYTES)
    throw new Failure('invalid', `whitelisthref, ipGeo and ipGeoRules together are longer than ${MAX_BYTES} bytes.`)
  return rules
}

/** Clients also send null or an empty text for an option that is not set. */
export function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null && value !== ''
}

/** Forms, and some clients in JSON, send the value as JSON text. Other text stays text, and is rejected as such. */
function parsed(given: unknown): unknown {
  if (typeof given !== 'string') return given
  const value = parseJson(given)
  return value === undefined ? given : value
}

function readIpGeo(given: unknown): Pick<Rules, 'ipGeo'> {
  if (!hasOnlyKeys(given, LISTS))
    throw new Failure(
      'invalid',
      'ipGeo is an object with the lists allow, block and except, such as {"allow":["DE","192.0.2.7"]}.',
    )
  const lists = LISTS.flatMap((name) => {
    const list = given[name] ?? []
    if (!Array.isArray(list)) throw new Failure('invalid', `ipGeo.${name} is a list, such as ["DE","192.0.2.7"].`)
    return list.length === 0 ? [] : [[name, list.map((entry) => readEntry(`ipGeo.${name}`, entry))] as const]
  })
  const ipGeo: IpGeo = Object.fromEntries(lists)
  if (ipGeo.except && !ipGeo.allow && !ipGeo.block)
    throw new Failure('invalid', 'ipGeo.except makes exceptions to allow or block: give one of them with it.')
  return lists.length === 0 ? {} : { ipGeo }
}

function readEntry(name: string, entry: unknown): Location | Location[] {
  if (!Array.isArray(entry)) return readLocation(name, entry)
  if (entry.length === 0) throw new Failure('invalid', `${name}: a list in the list has at least one member.`)
  return entry.map((location) => readLocation(name, location))
}

/** `actions` is what many sites send for `action`. */
const RULE_KEYS = ['action', 'actions', 'ipSet', 'countrySet'] as const
const ACTIONS: readonly (readonly [unknown, boolean])[] = [
  [true, true],
  [false, false],
  ['true', true],
  ['false', false],
]

function readIpGeoRules(given: unknown): Pick<Rules, 'ipGeoRules'> {
  if (!Array.isArray(given))
    throw new Failure('invalid', 'ipGeoRules is a list, such as [{"action":true,"ipSet":[],"countrySet":["DE"]}].')
  return given.length === 0 ? {} : { ipGeoRules: given.map((rule, index) => readLocationRule(`ipGeoRules[${index}]`, rule)) }
}

function readLocationRule(name: string, given: unknown): LocationRule {
  // A misspelt set would be an empty one, which holds everyone.
  if (!hasOnlyKeys(given, RULE_KEYS)) throw new Failure('invalid', `${name} is an object with action, ipSet and countrySet.`)
  if (given.action !== undefined && given.actions !== undefined)
    throw new Failure('invalid', `${name} has both action and actions: send action alone.`)
  const written = given.action ?? given.actions
  const [, action] = ACTIONS.find(([form]) => form === written) ?? []
  if (action === undefined) throw new Failure('invalid', `${name}.action is true or false.`)
  const ipSet = readSet(`${name}.ipSet`, given.ipSet)
  const countrySet = readSet(`${name}.countrySet`, given.countrySet)
  const country = ipSet.find(isCountry)
  if (country) throw new Failure('invalid', `${name}.ipSet has the country ${country}, which belongs into countrySet.`)
  const address = countrySet.find((location) => !isCountry(location))
  if (address) throw new Failure('invalid', `${name}.countrySet has the address ${address}, which belongs into ipSet.`)
  return { action, ipSet, countrySet }
}

function readSet(name: string, given: unknown): Location[] {
  const set = given ?? []
  if (!Array.isArray(set)) throw new Failure('invalid', `${name} is a list.`)
  return set.map((location) => readLocation(name, location))
}

/** @returns a country, or a range of addresses in CIDR form */
function readLocation(name: string, given: unknown): Location {
  const text = typeof given === 'string' ? given.trim() : ''
  if (isCountry(text.toUpperCase())) return text.toUpperCase()
  const range = readRange(text)
  if (range) return range
  const shown = JSON.stringify(given).slice(0, 60)
  throw new Failure('invalid', `${name} has ${shown}, which is neither a country of ISO 3166-1 alpha-2 nor an address.`)
}

/** IPv4 that comes mapped into IPv6 is IPv4, as the address of a viewer is. */
function readRange(text: string): string | undefined {
  const [, network = '', bits] = /^([^/%]+)(?:\/(\d{1,3}))?$/.exec(text) ?? []
  const family = isIP(network)
  const most = family === 4 ? 32 : 128
  const length = Number(bits ?? most)
  if (family === 0 || length > most) return undefined
  const folded = parseIpAddress(network) ?? network
  return family === 6 && isIP(folded) === 4 && length >= 96 ? `${folded}/${length - 96}` : `${network}/${length}`
}

function hasOnlyKeys<Key extends string>(value: unknown, keys: readonly Key[]): value is Partial<Record<Key, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  return Object.keys(value).every((key) => keys.some((known) => known === key))
}
