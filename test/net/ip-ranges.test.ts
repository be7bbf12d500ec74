import fc from 'fast-check'
import { expect, test } from 'vitest'
import { isPublicAddress } from '../../src/net/ip-ranges.ts'
import { createOutboundPolicy, parseOutboundUrl } from '../../src/outbound/policy.ts'

// The oracle below knows no ranges and no parser of the service: it decides by the numbers of the address, in the order of IANA's registries.

function isPublicV4([a = 0, b = 0, c = 0]: readonly number[]): boolean {
  if (a === 0 || a === 10 || a === 127 || a >= 224) return false
  if (a === 100) return b < 64 || b > 127
  if (a === 169) return b !== 254
  if (a === 172) return b < 16 || b > 31
  if (a === 192) return !(b === 168 || (b === 0 && (c === 0 || c === 2)) || (b === 88 && c === 99))
  if (a === 198) return !(b === 18 || b === 19 || (b === 51 && c === 100))
  return !(a === 203 && b === 0 && c === 113)
}

function isPublicV6([a = 0, b = 0]: readonly number[]): boolean {
  if (a < 0x2000 || a > 0x3fff) return false
  if (a === 0x2001) return b > 0x1ff && b !== 0xdb8
  return a !== 0x2002 && !(a === 0x3fff && b < 0x1000)
}

const octet = fc.oneof(
  fc.nat(255),
  fc.constantFrom(
    0,
    2,
    10,
    15,
    16,
    18,
    19,
    31,
    32,
    51,
    63,
    64,
    88,
    99,
    100,
    113,
    127,
    128,
    168,
    169,
    172,
    192,
    198,
    203,
    223,
    224,
    254,
  ),
)
const v4 = fc.tuple(octet, octet, octet, octet)
const group = fc.oneof(
  fc.nat(0xffff),
  fc.constantFrom(
    0,
    1,
    0x64,
    0x1ff,
    0x200,
    0xdb8,
    0x0fff,
    0x1000,
    0x2000,
    0x2001,
    0x2002,
    0x3fff,
    0x4000,
    0xff9b,
    0xfc00,
    0xfe80,
    0xffff,
  ),
)
const v6 = fc.array(group, { minLength: 8, maxLength: 8 })
const hex = (groups: readonly number[]) => groups.map((value) => value.toString(16)).join(':')

test('S06: an IPv4 address is public exactly where the registry of special addresses says nothing else', () => {
  fc.assert(
    fc.property(v4, (parts) => {
      expect(isPublicAddress(parts.join('.')), parts.join('.')).toBe(isPublicV4(parts))
    }),
    { numRuns: 5_000 },
  )
})

test('S02: an IPv4 address in a URL is judged the same, whether its parts are decimal, octal or hexadecimal, joined or apart', () => {
  const spelled = fc.constantFrom(
    (part: number) => String(part),
    (part: number) => `0${part.toString(8)}`,
    (part: number) => `0x${part.toString(16)}`,
  )
  const outbound = createOutboundPolicy([])
  fc.assert(
    fc.property(v4, fc.integer({ min: 1, max: 4 }), fc.array(spelled, { minLength: 4, maxLength: 4 }), (parts, apart, spell) => {
      // The last written part is all bytes that are left.
      const joined = parts.slice(apart - 1).reduce((value, part) => value * 256 + part, 0)
      const host = [...parts.slice(0, apart - 1), joined].map((part, i) => spell[i]?.(part)).join('.')
      const read = () => parseOutboundUrl(outbound, `http://${host}/`)
      if (isPublicV4(parts)) expect(read().hostname, host).toBe(parts.join('.'))
      else expect(read, host).toThrow(/not on the public internet/)
    }),
    { numRuns: 5_000 },
  )
})

test('S03: an IPv6 address is public only inside the public block and outside its special parts, however it is written', () => {
  fc.assert(
    fc.property(v6, (groups) => {
      const written = hex(groups)
      const short = new URL(`http://[${written}]`).hostname.slice(1, -1)
      expect([isPublicAddress(written), isPublicAddress(short)], written).toEqual([isPublicV6(groups), isPublicV6(groups)])
    }),
    { numRuns: 5_000 },
  )
})

test('S03: no IPv6 address that carries an IPv4 address is public, whatever it carries', () => {
  const wrapped = (parts: readonly number[]) => {
    const [a = 0, b = 0, c = 0, d = 0] = parts
    const [high, low] = [a * 256 + b, c * 256 + d]
    return [
      ...[`::ffff:${parts.join('.')}`, `::${parts.join('.')}`, `64:ff9b::${parts.join('.')}`, `64:ff9b:1::${parts.join('.')}`],
      ...[`${hex([0x2002, high, low])}::1`, `${hex([0x2001, 0, high, low])}::1`, `2001::${hex([0xffff - high, 0xffff - low])}`],
    ]
  }
  fc.assert(
    fc.property(v4, (parts) => {
      expect(wrapped(parts).filter(isPublicAddress)).toEqual([])
    }),
  )
})

test('S05: addresses of this machine, its network and its cloud are not public', () => {
  const refused = [
    ...['127.0.0.1', '127.255.255.254', '0.0.0.0', '10.0.0.1', '172.16.0.1', '172.31.255.255', '192.168.0.1', '100.64.0.1'],
    ...['100.100.100.200', '169.254.169.254', '192.0.0.192', '198.18.0.1', '198.19.255.255', '224.0.0.1', '240.0.0.1'],
    ...['255.255.255.255', '::', '::1', 'fe80::1', 'fe80::1%lo', 'fd00::1', 'fc00::1', 'fd00:ec2::254', 'ff02::1', 'fec0::1'],
    ...['', 'localhost', '1.2.3', '1.2.3.4.5', '01.2.3.4', '0x7f.0.0.1', '::g', '[::1]'],
  ]
  expect(refused.filter(isPublicAddress)).toEqual([])
  const asked = [
    '1.1.1.1',
    '8.8.8.8',
    '172.15.255.255',
    '172.32.0.0',
    '2606:4700::1111',
    '2a00:1450:4001:81b::200e',
    '2001:200::1',
  ]
  expect(asked.filter(isPublicAddress)).toEqual(asked)
})
