import { expect, test } from 'vitest'
import { playerPage, playerPolicy } from '../../src/http/player/page.ts'
import { parseOptions, parsePageValues, searchOfSession } from '../../web/player/options.ts'

const VALUES = {
  cspNonce: 'Zm9vYmFy',
  proofNonce: 'n'.repeat(24),
  serverKey: 'K'.repeat(87),
  serverKeyId: 'I'.repeat(22),
  ticket: 'videos.example.59000000.c2ln',
  rootPath: '../',
  script: 'assets/main-1a2b.js',
  style: 'assets/main-3c4d.css',
}

test('X13: the player reads from the page what the server wrote, whatever it holds', () => {
  const ticket = '</script><script>alert(1)</script>\u2028\u2029<!-- & "\\'
  const page = playerPage({ ...VALUES, ticket })
  const json = /id="reelgate-page"[^>]*>([^<]*)<\/script>/.exec(page)?.[1] ?? ''
  expect(json).not.toMatch(/[<>\u2028\u2029]/)
  const { proofNonce, serverKey, serverKeyId, rootPath } = VALUES
  expect(parsePageValues(json)).toEqual({ proofNonce, serverKey, serverKeyId, ticket, rootPath })
})

test('every script of the page carries the nonce of its policy, and all addresses follow a proxy prefix', () => {
  const page = playerPage({ ...VALUES, rootPath: '../../' })
  for (const script of page.match(/<script[^>]*>/g) ?? []) expect(script).toContain('nonce="Zm9vYmFy"')
  expect(page).toContain('src="../../player/assets/main-1a2b.js"')
  expect(page).toContain('href="../../player/assets/main-3c4d.css"')
  expect(page).not.toMatch(/(?:src|href)="\//)
})

test('the page differs between two OTPs in nothing but nonces and ticket', () => {
  const others = { cspNonce: 'YmFyZm9v', proofNonce: 'm'.repeat(24), ticket: '-.59000001.bWlz' }
  let page = playerPage({ ...VALUES, ...others })
  page = page.replaceAll(others.cspNonce, VALUES.cspNonce).replace(others.proofNonce, VALUES.proofNonce)
  expect(page.replace(others.ticket, VALUES.ticket)).toBe(playerPage(VALUES))
})

test('the policy runs scripts by nonce only', () => {
  const policy = playerPolicy('abc')
  expect(policy).toContain("default-src 'none'; script-src 'nonce-abc';")
  expect(policy).not.toMatch(/unsafe-eval/)
  expect(policy).toContain("connect-src 'self';")
  expect(playerPolicy('abc', ['https://cdn.example'])).toContain("connect-src 'self' https://cdn.example;")
})

test('after redeem the address holds the session and the options, and no OTP', () => {
  const search = `?otp=${'A'.repeat(64)}&playbackInfo=eyJ9&primaryColor=%23ff0000&loop=true`
  expect(searchOfSession(search, 'S'.repeat(22))).toBe(`?session=${'S'.repeat(22)}&primaryColor=%23ff0000&loop=true`)
})

test('the address says what plays and how', () => {
  const videoId = '0123456789abcdef'.repeat(2)
  const playbackInfo = btoa(JSON.stringify({ videoId }))
  const otp = 'aZ09'.repeat(16)
  expect(
    parseOptions(`?otp=${otp}&playbackInfo=${playbackInfo}&primaryColor=F2a&ccLanguage=pt-BR&autoplay=true&controls=native`),
  ).toEqual({
    otp,
    videoId,
    session: undefined,
    theme: { primaryColor: '#ff22aa' },
    captionLanguage: 'pt-BR',
    litemode: false,
    autoplay: true,
    loop: false,
    controls: 'native',
    showsTitle: true,
    startAtS: undefined,
    transcript: false,
    lessons: [],
  })
})

test('what has not its form counts as absent', () => {
  const options = parseOptions('?otp=short&playbackInfo=%%%&primaryColor=red;}&session=../x&controls=maybe&loop=false')
  expect(options).toMatchObject({ otp: undefined, videoId: undefined, theme: {}, session: undefined })
  expect(options).toMatchObject({ controls: 'on', loop: false })
})
