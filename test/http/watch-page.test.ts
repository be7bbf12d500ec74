import { XMLParser } from 'fast-xml-parser'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Owner } from '../client.ts'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import { makeVideo } from '../videos.ts'

// The page that anyone may see of a public video, and oEmbed of it.

const PUBLIC_URL = 'https://videos.example/school'
const HOSTILE = `</script><script>alert(1)</script>" onload='x' & <b>\u2028`

let reelgate: Reelgate & { remove(): Promise<void> }
let owner: Owner
let videoId: string

beforeAll(async () => {
  reelgate = await startSharedReelgate({
    video: await makeVideo({ size: '320x180' }),
    env: { REELGATE_PUBLIC_URL: PUBLIC_URL, REELGATE_TRUSTED_PROXIES: '127.0.0.9' },
  })
  ;({ owner, videoId } = reelgate)
  await change({ title: HOSTILE })
})
afterAll(() => reelgate?.remove())

const change = (body: object) => owner.call('POST', `/api/videos/${videoId}`, { body })
const setWatchUrl = (watchUrl: string | null) => owner.call('PUT', '/api/account', { body: { watchUrl } })
const page = (id = videoId) => fetch(`${reelgate.url}/watch/${id}`, { headers: { accept: 'text/html' } })
const oembed = (query: Record<string, string>) => fetch(`${reelgate.url}/oembed?${new URLSearchParams(query)}`)
const ownPage = (id = videoId) => `${PUBLIC_URL}/watch/${id}`

describe('the page of a public video', () => {
  test('V02: has title, length and poster, leads to oEmbed, and plays nothing', async () => {
    const response = await page()
    const html = await response.text()
    expect(response.status).toBe(200)
    expect(response.headers.get('content-security-policy')).toMatch(
      /^default-src 'none'; style-src 'sha256-[^']+'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors \*$/,
    )
    expect(response.headers.get('x-frame-options')).toBeNull()
    const [, poster = ''] = /<img src="\.\.\/(poster\/[\w-]+\.jpg)"/.exec(html) ?? []
    expect((await fetch(`${reelgate.url}/${poster}`)).headers.get('content-type')).toBe('image/jpeg')
    expect(html).toContain('0:03</time>')
    expect(html).toContain(`<link rel="canonical" href="${ownPage()}">`)
    for (const format of ['json', 'xml'])
      expect(html).toContain(`href="${PUBLIC_URL}/oembed?url=${encodeURIComponent(ownPage())}&#38;format=${format}"`)
    // One script element, which no browser runs: its type is no script's.
    expect(html.match(/<script[^>]*>/g)).toEqual(['<script type="application/ld+json">'])
    expect(html).not.toMatch(/<iframe|<video|<form|\/play\/|\/media\/|otp/i)
  })

  test('V03: a hostile title is text: in the page, its metadata, oEmbed as JSON, as XML, and in the frame’s HTML', async () => {
    const html = await (await page()).text()
    expect(html).not.toContain('<b>')
    const [, json = ''] = /<script type="application\/ld\+json">(.*?)<\/script>/s.exec(html) ?? []
    expect(JSON.parse(json)).toEqual({
      '@context': 'https://schema.org',
      ...{ '@type': 'VideoObject', name: HOSTILE, duration: 'PT3S', isAccessibleForFree: false, url: ownPage() },
      thumbnailUrl: expect.stringMatching(/^https:\/\/videos\.example\/school\/poster\/[\w-]+\.jpg$/),
      uploadDate: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
    })
    const body = await (await oembed({ url: ownPage() })).json()
    expect(body).toMatchObject({ title: HOSTILE })
    expect(JSON.stringify(body)).toContain('&#60;/script&#62;')
    expect((body as { html: string }).html.match(/</g)).toHaveLength(2)
    const xml = await (await oembed({ url: ownPage(), format: 'xml' })).text()
    expect(new XMLParser({ trimValues: false }).parse(xml)).toMatchObject({
      oembed: { version: 1, type: 'rich', title: HOSTILE },
    })
  })

  test('V01: a video that is not public, is deleted or never was has the same page and the same oEmbed: 404', async () => {
    const { videoId: gone } = await owner.credentials('Gone')
    await owner.delete([gone])
    await change({ public: 0 })
    const answers = []
    for (const id of [videoId, gone, '0'.repeat(32)])
      for (const response of [await page(id), await oembed({ url: ownPage(id) })])
        answers.push([response.status, (await response.text()).replaceAll(id, 'ID').replace(/"requestId":"[^"]*"/, '')])
    await change({ public: 1 })
    expect(new Set(answers.map(([status]) => status))).toEqual(new Set([404]))
    expect([...new Set(answers.map(([, text]) => text))]).toHaveLength(2) // a page, and JSON
    expect((await page()).status).toBe(200)
  })

  test('V06: leads to where the owner lets viewers watch, which is an address of the web and nothing else', async () => {
    expect(await (await page()).text()).toContain('on its owner’s site')
    expect((await setWatchUrl('https://school.example/lessons/{id}?from="reelgate')).status).toBe(200)
    const html = await (await page()).text()
    expect(html).toContain(`href="https://school.example/lessons/${videoId}?from=&#34;reelgate" target="_blank" rel="noopener"`)
    expect(html).toContain('Watch at school.example')
    for (const refused of [
      ...['javascript:alert(1)', 'data:text/html,x', ' https://school.example/', 'https://school.example/\n', 'school.example/'],
      ...['https://{id}.school.example/', 'https://a:b@school.example/', `https://school.example/${'x'.repeat(500)}`, 'https://'],
    ])
      expect([refused, (await setWatchUrl(refused)).status]).toEqual([refused, 400])
    expect((await setWatchUrl('')).status).toBe(200)
    expect(await (await page()).text()).toContain('on its owner’s site')
  })
})

describe('oEmbed', () => {
  test('V04: answers for pages of this server alone', async () => {
    for (const url of [`${ownPage()}/`, `${ownPage()}?utm=1#t`]) expect([url, (await oembed({ url })).status]).toEqual([url, 200])
    for (const url of [
      ...[
        `https://videos.example/watch/${videoId}`,
        `https://evil.example/school/watch/${videoId}`,
        `https://videos.example:444/school/watch/${videoId}`,
      ],
      ...[
        `http://videos.example/school/watch/${videoId}`,
        `${ownPage()}/x`,
        `${PUBLIC_URL}/watch/../watch2/${videoId}`,
        `${PUBLIC_URL}/player/`,
        'x',
        '',
      ],
      ...[`https://videos.example@evil.example/school/watch/${videoId}`, ownPage(videoId.toUpperCase())],
    ])
      expect([url, (await oembed({ url })).status]).toEqual([url, 404])
    expect((await fetch(`${reelgate.url}/oembed`)).status).toBe(400)
    expect((await oembed({ url: ownPage(), format: 'yaml' })).status).toBe(501)
  })

  test('V05: the frame and the image keep within the size that is asked for', async () => {
    const sized = async (size: object) => (await (await oembed({ url: ownPage(), ...size })).json()) as Record<string, unknown>
    expect(await sized({})).toMatchObject({ width: 640, height: 436, html: expect.stringContaining('width="640" height="436"') })
    expect(await sized({ maxwidth: '300', maxheight: '200' })).toMatchObject({ width: 300, height: 200 })
    expect(await sized({ maxwidth: '1' })).not.toHaveProperty('thumbnail_url')
    expect(await sized({ maxwidth: '5000' })).toMatchObject({ width: 640, thumbnail_url: expect.stringContaining('/poster/') })
    for (const maxwidth of ['0', '-1', 'NaN', '1e9', '']) expect((await oembed({ url: ownPage(), maxwidth })).status).toBe(400)
  })

  test('scripts of any page may read it, as its titles are public', async () => {
    expect((await oembed({ url: ownPage() })).headers.get('access-control-allow-origin')).toBe('*')
  })
})
