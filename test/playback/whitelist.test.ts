import { domainToASCII } from 'node:url'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { checkWhitelist, findFraming, mayEmbed, mayRedeemHere, readWhitelist } from '../../src/playback/rules/whitelist.ts'
import { rounds } from '../seeded-random.ts'

const RUNS = { numRuns: rounds(300, 30_000), seed: process.env.REELGATE_SEED ? Number(process.env.REELGATE_SEED) : undefined }

/** Whether a page at this address may embed a video with this `whitelisthref`, as both are on the wire. */
const may = (whitelisthref: string, page: string) => mayEmbed(readWhitelist(whitelisthref), new URL(page).hostname)

const label = fc.constantFrom('good', 'evil', 'www', 'evil-good', 'example', 'com', 'org', 'xn--mller-kva')
const someHost = fc.array(label, { minLength: 2, maxLength: 5 })

test('P14: a host matches itself and its subdomains, label by label, and nothing else', async () => {
  await fc.assert(
    fc.asyncProperty(someHost, someHost, async (own, other) => {
      for (const host of [other, [...other, ...own], [...own, ...other], [`x${own[0]}`, ...own.slice(1)]]) {
        const isWithin = own.every((part, index) => part === host[host.length - own.length + index])
        expect(await may(own.join('.'), `https://${host.join('.')}/lesson`), host.join('.')).toBe(isWithin)
      }
    }),
    RUNS,
  )
})

describe('P14: a host is the same in capitals, with a dot at its end or its front, with a port, in quotes, in any script', () => {
  test.each([
    'good.example',
    'GOOD.Example',
    'good.example.',
    '.good.example',
    'good.example:8443',
    '"good.example"',
    ' good.example ',
  ])('%s', async (whitelisthref) => {
    for (const host of [
      'good.example',
      'GOOD.EXAMPLE',
      'good.example.',
      'good.example:444',
      'www.good.example',
      'a.b.good.example',
    ])
      expect(await may(whitelisthref, `https://${host}/`), host).toBe(true)
    for (const host of ['good.example.evil.org', 'evil-good.example', 'evilgood.example', 'example', 'good.examples', 'evil.org'])
      expect(await may(whitelisthref, `https://${host}/`), host).toBe(false)
  })

  test('a name in another script and its punycode are one', async () => {
    for (const whitelisthref of ['müller.example', 'MÜLLER.example', 'xn--mller-kva.example', '^(www\\.)?müller\\.example$']) {
      expect(await may(whitelisthref, 'https://müller.example/'), whitelisthref).toBe(true)
      expect(await may(whitelisthref, 'https://www.xn--mller-kva.example/'), whitelisthref).toBe(true)
      expect(await may(whitelisthref, 'https://muller.example/'), whitelisthref).toBe(false)
    }
    expect(await may('例え.テスト', 'https://xn--r8jz45g.xn--zckzah/')).toBe(true)
    expect(await may('例え.テスト', `https://x.${domainToASCII('例え.テスト')}/`)).toBe(true)
  })
})

test('an expression matches where JavaScript’s own would, anchored nowhere, in any case', async () => {
  const part = fc.constantFrom('good', 'www', '\\.', '^', '$', '[a-m]+', '(www|m)', 'x?', '.*', '\\w{2,4}', '(org|com)$', '-')
  await fc.assert(
    fc.asyncProperty(fc.array(part, { minLength: 1, maxLength: 5 }), someHost, async (parts, host) => {
      const expression = `(?:${parts.join('')})` // never a host
      const expected = new RegExp(expression, 'i').test(host.join('.'))
      expect(await mayEmbed({ expression }, host.join('.')), expression).toBe(expected)
    }),
    RUNS,
  )
  expect(await may('GOOD|^m\\.', 'https://m.example.org/')).toBe(true)
})

describe('Q03: an expression takes linear time, or is refused for its size', () => {
  test.each(['(a+)+$', '^(a|aa)+$', '(a*)*b', '([a-z]+)*[0-9]', '^(([a-z])+.)+[A-Z]([a-z])+$', '(.*)*(.*)*(.*)*x$'])(
    '%s',
    async (expression) => {
      for (const host of [`${'a'.repeat(249)}!`, `${'a'.repeat(60)}.`.repeat(4)]) await mayEmbed(readWhitelist(expression), host)
    },
  )

  test.each([
    ['x'.repeat(10_000), /at most 500 characters/],
    ['(a+)+'.repeat(2_000), /at most 500 characters/],
    ['a{1000}'.repeat(70), /too large an expression/],
    ['(a{100}){100}', /too large an expression/],
    ['(?:x{30}){40}', /too large an expression/],
    ['((a?){30}){30}', /too large an expression/],
    ['('.repeat(400), /linear time \(missing/],
  ])('%s', async (text, why) => {
    await expect((async () => checkWhitelist(readWhitelist(text)))()).rejects.toThrow(why)
  })
})

test.each([
  ['(?=good)', /Look-around and back-references cannot/],
  ['(?<!evil-)good', /Look-around/],
  ['(good)\\1', /invalid escape sequence/],
  ['*.good.example', /neither a host such as example\.org nor an expression/],
  ['good[', /missing closing/],
  ['https://good.example', /without “\/”/],
  ['good.example/lessons', /without “\/”/],
  ['[::1]', /IPv6/],
  ['[2001:db8::1]:8080', /IPv6/],
  ['good.256', /cannot be a host/],
  [7, /must be a text/],
  [['good.example'], /must be a text/],
])('%s is rejected with a reason', async (given, why) => {
  await expect((async () => checkWhitelist(readWhitelist(given)))()).rejects.toThrow(why)
})

describe('P13: who may frame the page', () => {
  const framing = (whitelisthref: string, referer?: string, isTop = false) =>
    findFraming(readWhitelist(whitelisthref), { referer, isTop })

  test('of a host: itself and its subdomains on any port, over TLS; without TLS on this machine only', async () => {
    const sources = ['https://good.example', 'https://good.example:*', 'https://*.good.example', 'https://*.good.example:*']
    expect(await framing('good.example')).toEqual(sources)
    expect(await framing('good.example', 'https://www.good.example:444/lesson')).toEqual(sources)
    expect(await framing('127.0.0.1')).toEqual([
      'https://127.0.0.1',
      'https://127.0.0.1:*',
      'http://127.0.0.1',
      'http://127.0.0.1:*',
    ])
    expect(await framing('school.localhost')).toContain('http://*.school.localhost:*')
  })

  test('no site without TLS, where the browser would show its own broken frame: the page says why', async () => {
    for (const referer of ['http://good.example/', 'http://www.good.example:8080/lesson'])
      expect(await framing('good.example', referer)).toBe('insecure')
    expect(await framing('good.example', 'http://evil.example/')).toBe('refused')
    expect(await framing('127.0.0.1', 'http://127.0.0.1:3000/')).toContain('http://127.0.0.1:*')
  })

  test('of an expression: the one page that matched', async () => {
    expect(await framing('^good', 'https://good.example:444/lesson?x=1')).toEqual(['https://good.example:444'])
    expect(await framing('localhost:3000', 'http://localhost:3000/')).toEqual(['http://localhost:3000'])
  })

  test('no site, when another site embeds it, when a pattern gets no host, or when it is opened by itself', async () => {
    for (const referer of ['https://evil.example/', 'https://good.example.evil.org/', 'null', 'about:blank', 'garbage'])
      for (const whitelisthref of ['good.example', '^good\\.example$'])
        expect(await framing(whitelisthref, referer)).toBe('refused')
    expect(await framing('^good')).toBe('refused')
    for (const whitelisthref of ['good.example', '^good']) {
      expect(await framing(whitelisthref, undefined, true)).toBe('refused')
      expect(await framing(whitelisthref, 'https://good.example/', true)).toBe('refused')
    }
  })
})

test('P14: a redeem is judged by the page that the server saw, else by every page around the player', async () => {
  const [host, expression] = ['good.example', '^good\\.'].map(readWhitelist)
  for (const whitelist of [host, expression]) {
    if (!whitelist) throw new Error('no whitelist')
    expect(await mayRedeemHere(whitelist, 'good.example:8443', ['https://evil.example'])).toBe(true)
    expect(await mayRedeemHere(whitelist, 'evil.example', ['https://good.example'])).toBe(false)
    expect(await mayRedeemHere(whitelist, '-', ['https://good.example', 'https://good.example:444'])).toBe(true)
    for (const origin of ['https://evil.example', 'null', 'https://good.example.evil.org', 'https://evil-good.example', ''])
      expect(await mayRedeemHere(whitelist, '-', ['https://good.example', origin]), origin).toBe(
        origin.includes('good.example.evil') && 'expression' in whitelist,
      )
    expect(await mayRedeemHere(whitelist, '-', [])).toBe('host' in whitelist)
  }
})
