import { BlockList } from 'node:net'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ipRateLimitKey, parseIpAddress } from '../../src/net/ip.ts'

test('R05: all addresses of a /64 are one, and no other is', () => {
  fc.assert(
    fc.property(fc.ipV6(), fc.ipV6(), (one, other) => {
      const subject = ipRateLimitKey(one)
      fc.pre(subject.includes(':')) // an IPv4 address in IPv6 form has a test of its own
      const network = new BlockList()
      network.addSubnet(subject.replace('/64', ''), 64, 'ipv6')
      expect(network.check(one, 'ipv6')).toBe(true)
      expect(ipRateLimitKey(other) === subject).toBe(network.check(other, 'ipv6'))
    }),
  )
  const subjects = ['2001:db8:0:1::', '2001:DB8::1:ffff:ffff:ffff:ffff', '2001:db8:0:1:0:0:192.0.2.7', '2001:db8:0:1::9%eth0']
  expect(new Set(subjects.map(ipRateLimitKey))).toEqual(new Set(['2001:db8:0:1::/64']))
  expect(ipRateLimitKey('::1')).toBe('0:0:0:0::/64')
})

test('R06: an IPv4 address is one, plain or mapped into IPv6 in any spelling', () => {
  fc.assert(
    fc.property(fc.ipV4(), (address) => {
      const [a = 0, b = 0, c = 0, d = 0] = address.split('.').map(Number)
      const hex = `${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`
      for (const spelling of [`::ffff:${address}`, `::FFFF:${hex}`, `0:0:0:0:0:ffff:${hex}`, `0::ffff:${address}`]) {
        expect(ipRateLimitKey(spelling)).toBe(address)
        expect(parseIpAddress(spelling)).toBe(address)
      }
      expect(ipRateLimitKey(address)).toBe(address)
    }),
  )
})

test.each([
  ['192.0.2.1', '192.0.2.1'],
  ['192.0.2.1:443', '192.0.2.1'],
  ['[2001:db8::1]', '2001:db8::1'],
  ['[2001:db8::1]:443', '2001:db8::1'],
  ['2001:db8::1', '2001:db8::1'],
  ['', undefined],
  ['unknown', undefined],
  ['_hidden', undefined],
  ['192.0.2.1, 192.0.2.2', undefined],
  ['[2001:db8::1', undefined],
  ['192.0.2.256', undefined],
  ['\0', undefined],
])('R04: a proxy that writes "%s" means %s', (written, address) => {
  expect(parseIpAddress(written)).toBe(address)
})
