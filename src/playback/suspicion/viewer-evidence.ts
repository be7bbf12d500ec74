import type { Alert } from '../../alerts/alert.ts'
import type { AlertCause } from '../../alerts/cause.ts'
import { addressPrefix } from '../../net/ip.ts'
import type { Countries } from '../rules/countries.ts'

// What the sessions of one viewer add up to, and from when on it is suspicious. Times are on the playback clock.

export type ViewerEvidence = {
  beganAtS: number
  drawnS: number
  playedS: number
  earlyRequests: number
  locations: Locations
  /** What was raised since it began. */
  raised: Set<AlertCause>
}

/** Where a viewer was within an hour: by address prefix, an address there and when a request last came from it. */
type Locations = Map<string, { address: string; seenAtS: number }>

/** Counts are of an hour; then they begin again. */
export const PERIOD_S = 3600
const MIN_DRAWN_S = 15 * 60
const MAX_DRAWN_TO_PLAYED = 3
const MAX_EARLY_REQUESTS = 20
const MAX_COUNTRIES = 3
const MAX_PREFIXES = 5
/** Of one viewer: more make no difference to an alert. */
const MAX_LOCATIONS = 32

/** Locations are seen within the last hour, not counted by the hour. */
export function newViewerEvidence(beganAtS: number, locations: Locations = new Map()): ViewerEvidence {
  return { beganAtS, drawnS: 0, playedS: 0, earlyRequests: 0, locations, raised: new Set() }
}

/** Adds where a request came from. @returns whether the viewer was not there within the hour */
export function addLocation({ locations }: ViewerEvidence, address: string, atS: number): boolean {
  forgetLocations({ locations }, atS)
  const prefix = addressPrefix(address)
  const isNew = !locations.has(prefix)
  if (isNew && locations.size >= MAX_LOCATIONS) return false
  locations.set(prefix, { address, seenAtS: atS })
  return isNew
}

export function forgetLocations({ locations }: Pick<ViewerEvidence, 'locations'>, atS: number): void {
  for (const [prefix, { seenAtS }] of locations) if (seenAtS <= atS - PERIOD_S) locations.delete(prefix)
}

/** The numbers of an alert; undefined: nothing is suspicious. */
type Numbers = Alert['numbers'] | undefined

/** Keys for much more than is played. */
export function findDrawnTooMuch({ drawnS, playedS }: ViewerEvidence): Numbers {
  const isSuspicious = drawnS > MIN_DRAWN_S && drawnS > MAX_DRAWN_TO_PLAYED * playedS
  return isSuspicious ? { drawnS: Math.round(drawnS), playedS: Math.round(playedS) } : undefined
}

/** Requests that do not wait as they are asked to. */
export function findIgnoredPace({ earlyRequests }: ViewerEvidence): Numbers {
  return earlyRequests >= MAX_EARLY_REQUESTS ? { earlyRequests } : undefined
}

/** Too many networks or countries. */
export async function findManyLocations({ locations }: ViewerEvidence, countries: Countries): Promise<Numbers> {
  const prefixes = locations.size
  if (prefixes < MAX_COUNTRIES) return undefined // nor can there be as many countries
  const count = await countCountries(locations, countries)
  return prefixes >= MAX_PREFIXES || count >= MAX_COUNTRIES ? { prefixes, countries: count } : undefined
}

/** A country that cannot be looked up is not a reason for an alert, nor to refuse a viewer. */
async function countCountries(locations: Locations, countries: Countries): Promise<number> {
  const found = await Promise.all([...locations.values()].map(({ address }) => countries.find(address).catch(() => undefined)))
  return new Set(found.filter((country) => country !== undefined)).size
}
