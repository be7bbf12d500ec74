import { afterAll, beforeAll, expect, test } from 'vitest'
import { PAGE_LANGUAGES, pageLanguage } from '../../src/http/pages/languages.ts'
import { ENGLISH } from '../../web/languages/english.ts'
import { LANGUAGES } from '../../web/languages/languages.ts'
import { startChromium } from '../browser/chromium.ts'
import { keepPicture } from '../browser/pictures.ts'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import { makeVideo } from '../videos.ts'

// Pages that the server writes itself speak the viewer's language, as the player does.

let reelgate: Reelgate & { remove(): Promise<void> }
beforeAll(async () => {
  reelgate = await startSharedReelgate({ video: await makeVideo() })
})
afterAll(() => reelgate?.remove())

const languageOf = (accepted: string, query = '') =>
  pageLanguage({ url: `/player/${query}`, headers: { 'accept-language': accepted } }).lang

test('the address goes before the browser, whose most wanted known language counts', () => {
  expect(languageOf('de-CH, fr;q=0.9')).toBe('de')
  expect(languageOf('nl, fr;q=0.5, ja;q=0.8, en;q=0.1')).toBe('ja')
  expect(languageOf('de;q=0, fr;q=0.1')).toBe('fr')
  expect(languageOf('nl, *;q=0.5')).toBe('en')
  expect(languageOf('de', '?lang=pt-BR')).toBe('pt')
  expect(languageOf('de', '?lang=constructor')).toBe('de')
  expect(languageOf('')).toBe('en')
})

test('F-326: a list of languages of any length and shape takes no time', () => {
  expect(languageOf(`${','.repeat(50_000)}de`)).toBe('en')
  expect(languageOf(`de;${'q='.repeat(20_000)}`)).toBe('en')
  expect(languageOf('__proto__, toString;q=2, hi;q=NaN, tr;q=0.1')).toBe('tr')
})

test('the server has the languages of the player, and says what the player says', async () => {
  expect([...PAGE_LANGUAGES].sort()).toEqual(['en', ...Object.keys(LANGUAGES)].sort())
  for (const lang of PAGE_LANGUAGES) {
    const messages = lang === 'en' ? ENGLISH : (await LANGUAGES[lang]?.())?.LANGUAGE.messages
    const { sentence } = pageLanguage({ url: `/?lang=${lang}`, headers: {} })
    expect(sentence('site-not-allowed')).toBe(messages?.['refusal.site-not-allowed'])
    expect(sentence('insecure-page', '{page}')).toBe(messages?.['refusal.insecure-page'])
  }
})

test('a refusal and an error page are in the language of the viewer, Arabic from right to left', async () => {
  const otp = await reelgate.owner.issueOtp(reelgate.videoId, { whitelisthref: 'school.example' })
  const open = (path: string, headers: Record<string, string>) =>
    fetch(`${reelgate.url}${path}`, { headers: { Accept: 'text/html', ...headers } })
  const refused = await open(`/player/?otp=${otp}&lang=de`, { Referer: 'https://other.example/', 'Sec-Fetch-Dest': 'iframe' })
  expect(refused.status).toBe(403)
  const html = await refused.text()
  expect(html).toContain('<html lang="de" dir="ltr">')
  expect(html).toContain('Dieses Video darf auf dieser Website nicht gezeigt werden.')

  const missing = await open('/nothing', { 'Accept-Language': 'ar, en;q=0.5' })
  expect([missing.status, missing.headers.get('Vary')]).toEqual([404, 'Accept-Language'])
  const page = await missing.text()
  expect(page).toContain('<html lang="ar" dir="rtl">')
  expect(page).toContain('<h1>الصفحة غير موجودة</h1>')
  const watched = await open(`/watch/${reelgate.videoId}`, { 'Accept-Language': 'ja' })
  expect(watched.headers.get('Vary')).toBe('Accept-Language')
  expect(await watched.text()).toContain('この動画は所有者のサイトで視聴できます。')
  expect(await (await open('/nothing', {})).text()).toContain('<h1>Page not found</h1>')
})

if (process.env.REELGATE_TEST_PICTURES) {
  test('pictures of the error page in each language', async () => {
    const chromium = await startChromium()
    for (const lang of PAGE_LANGUAGES) {
      const page = await chromium.newPage({ locale: lang, viewport: { width: 320, height: 400 } })
      await page.goto(`${reelgate.url}/nothing`)
      await keepPicture(`error-page-${lang}`, () => page.screenshot())
      expect(await page.evaluate<boolean>('document.documentElement.scrollWidth <= 320')).toBe(true)
      await page.close()
    }
    await chromium.close()
  })
}
