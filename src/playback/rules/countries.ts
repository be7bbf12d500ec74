import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import type { CountryResponse, Reader } from 'mmdb-lib'
import { Failure } from '../../errors.ts'
import { isPublicAddress } from '../../net/ip-ranges.ts'

/** ISO 3166-1 alpha-2; and Kosovo, which has no code of it, under the one that is used. */
const CODES: ReadonlySet<string> = new Set(
  (
    'AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BV BW BY BZ CA CC CD CF CG CH CI ' +
    'CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ER ES ET FI FJ FK FM FO FR GA GB GD GE GF GG GH GI GL GM GN GP GQ ' +
    'GR GS GT GU GW GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE JM JO JP KE KG KH KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS ' +
    'LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO MP MQ MR MS MT MU MV MW MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG ' +
    'PH PK PL PM PN PR PS PT PW PY QA RE RO RS RU RW SA SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF TG TH TJ TK ' +
    'TL TM TN TO TR TT TV TW TZ UA UG UM US UY UZ VA VC VE VG VI VN VU WF WS YE YT ZA ZM ZW XK'
  ).split(' '),
)

export function isCountry(code: string): boolean {
  return CODES.has(code)
}

export type Countries = {
  /** The country of an address; undefined where it is not known, as of private ones. */
  find(address: string): Promise<string | undefined>
}

/** The two forms in which such databases name a country. */
type Found = { country_code?: unknown; country?: { iso_code?: unknown } } | null

/**
 * Countries by address, from a file in the MaxMind format, read at the first look-up: it takes 8 MB.
 * @param file undefined: the database that is a package of ours
 */
export function openCountries(file?: string): Countries {
  let opening: Promise<Reader<CountryResponse>> | undefined
  return {
    async find(address) {
      if (!isPublicAddress(address)) return undefined // such databases have some of them, in any country
      opening ??= openDatabase(file)
      const database = await opening.catch((cause: unknown) => {
        opening = undefined // the file may be repaired
        throw new Failure('unavailable', 'The database of countries (REELGATE_COUNTRIES) cannot be read.', { cause })
      })
      const found: Found = database.get(address)
      const code = found?.country_code ?? found?.country?.iso_code
      return typeof code === 'string' ? code : undefined
    },
  }
}

async function openDatabase(file = packagedDatabase()): Promise<Reader<CountryResponse>> {
  const [{ Reader }, bytes] = await Promise.all([import('mmdb-lib'), readFile(file)])
  return new Reader<CountryResponse>(bytes)
}

function packagedDatabase(): string {
  return fileURLToPath(import.meta.resolve('@ip-location-db/geo-whois-asn-country-mmdb/geo-whois-asn-country.mmdb'))
}
