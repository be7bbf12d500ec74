import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import { sendRaw } from '../raw-http.ts'
import { makeVideo } from '../videos.ts'
import { answerOf, newPageId, type Viewer } from '../viewer.ts'

// The proof that every playback request carries: playback-protocol.md, sections 3, 4 and 9.

let reelgate: Reelgate & { remove(): Promise<void> }
let videoId: string
let otherVideo: string
let viewer: Viewer
let stranger: Viewer
beforeAll(async () => {
  reelgate = await startSharedReelgate({ video: await makeVideo({ seconds: 15, rate: 10 }) })
  videoId = reelgate.videoId
  otherVideo = await reelgate.owner.readyVideo(await makeVideo(), 'Another video')
  stranger = await playing(otherVideo)
})
afterAll(() => reelgate.remove())
beforeEach(async () => {
  viewer = await playing(videoId)
})

async function playing(video: string): Promise<Viewer> {
  const redeemer = reelgate.newViewer()
  expect((await redeemer.redeem(await reelgate.owner.issueOtp(video))).playing).toBe(true)
  return redeemer
}

const path = (rest: string) => `/play/${viewer.state.session}/${rest}`
const proofOfKey = (more: Partial<Parameters<Viewer['proof']>[0]> = {}) =>
  viewer.proof({ operation: 'key', session: viewer.state.session, argument: '0', ...more })
const askKey = (header: string | undefined, window: string | number = 0) => viewer.send('GET', path(`key/${window}`), header)

describe('P01, P04: whatever is wrong up to the tag is answered by the same bytes, and does the viewer no harm', () => {
  const NOT_ALLOWED = '{"code":"not-allowed","message":"This was opened in another browser, or not by the player."}'

  const split = () => proofOfKey().split('.')
  const joined = (parts: string[], at: number, part: string) => parts.with(at, part).join('.')
  /** The tag with one of its bits turned over. */
  const flipped = (header: string, bit: number) => {
    const [version, pageId, seq, nonce, text = ''] = header.split('.')
    const bytes = Buffer.from(text, 'base64url')
    bytes[bit >> 3] = (bytes[bit >> 3] ?? 0) ^ (1 << (bit & 7))
    return [version, pageId, seq, nonce, bytes.toString('base64url')].join('.')
  }

  const WRONG: Record<string, () => Promise<Response>> = {
    'no header': () => askKey(undefined),
    'an empty header': () => askKey(''),
    words: () => askKey('let me in'),
    'version 1': () => askKey(joined(split(), 0, '1')),
    'version 3': () => askKey(joined(split(), 0, '3')),
    'no version': () => askKey(split().slice(1).join('.')),
    'a field more': () => askKey(`${proofOfKey()}.x`),
    'another page': () => askKey(joined(split(), 1, newPageId())),
    'a page cut short': () => askKey(joined(split(), 1, 'short')),
    'the next number': () => askKey(joined(split(), 2, String(viewer.state.seq + 1))),
    'number 0': () => askKey(proofOfKey({ seq: 0 })),
    'a number with a zero in front': () => askKey(joined(split(), 2, '02')),
    'a number with a sign': () => askKey(joined(split(), 2, '+2')),
    'a number of 11 digits': () => askKey(proofOfKey({ seq: 10_000_000_000 })),
    'a huge number without a signature': () => askKey(joined(split(), 2, '9999999999')),
    'a tag of zeros': () => askKey(joined(split(), 4, 'A'.repeat(43))),
    'a signature of version 1': () => askKey(`1.${split().slice(1, 4).join('.')}.${'A'.repeat(86)}`),
    'a tag cut short': () => askKey(proofOfKey().slice(0, -1)),
    ...Object.fromEntries(
      [0, 7, 128, 248, 255].map((bit) => [`bit ${bit} of the tag`, () => askKey(flipped(proofOfKey(), bit))]),
    ),
    'a proof of another operation': () => askKey(proofOfKey({ operation: 'playlist' })),
    'a proof of the playlist': () => askKey(proofOfKey({ operation: 'playlist', argument: 'main' })),
    'a proof of another window': () => askKey(proofOfKey({ argument: '1' })),
    'a proof of no window': () => askKey(proofOfKey({ argument: '-' })),
    'a proof of the window written otherwise': () => askKey(proofOfKey({ argument: '00' })),
    'a proof of another session': () => askKey(proofOfKey({ session: stranger.state.session })),
    'a proof of no session': () => askKey(proofOfKey({ session: '-' })),
    'a proof over a body that was not sent': () => askKey(proofOfKey({ body: '{}' })),
    'a key for the playlist’s proof, the other way round': () => viewer.send('GET', path('playlist/main'), proofOfKey()),
    'a beat whose body was changed': () =>
      viewer.send(
        'POST',
        path('beat'),
        viewer.proof({ operation: 'beat', session: viewer.state.session, body: beat(1) }),
        beat(2),
      ),
    'a beat whose body was left out of the proof': () =>
      viewer.send('POST', path('beat'), viewer.proof({ operation: 'beat', session: viewer.state.session }), beat(1)),
    'a beat’s proof to leave': () =>
      viewer.send('POST', path('leave'), viewer.proof({ operation: 'beat', session: viewer.state.session, body: '{}' }), '{}'),
    'another browser’s proof for this session': () =>
      askKey(stranger.proof({ operation: 'key', session: viewer.state.session, argument: '0' })),
    'another browser’s proof with this one’s page': () =>
      askKey(
        stranger.proof({ operation: 'key', session: viewer.state.session, argument: '0', pageId: viewer.state.pageId, seq: 2 }),
      ),
    'another browser’s proof of its own session': () =>
      askKey(stranger.proof({ operation: 'key', session: stranger.state.session, argument: '0' })),
    'P02: one’s own key for another’s session': () =>
      viewer.send(
        'GET',
        `/play/${stranger.state.session}/key/0`,
        viewer.proof({ operation: 'key', session: stranger.state.session, argument: '0' }),
      ),
    'a session that never was': () => {
      const session = newPageId()
      return viewer.send('GET', `/play/${session}/key/0`, viewer.proof({ operation: 'key', session, argument: '0' }))
    },
    'the session with one letter changed': () => {
      const { session } = viewer.state
      const other = (session.startsWith('A') ? 'B' : 'A') + session.slice(1)
      return viewer.send('GET', `/play/${other}/key/0`, viewer.proof({ operation: 'key', session: other, argument: '0' }))
    },
    'the page of a session opened by another browser': () =>
      stranger.send('POST', path('page'), stranger.proof({ operation: 'page', session: viewer.state.session, body: '{}' }), '{}'),
  }
  const beat = (positionS: number) => JSON.stringify({ state: 'playing', positionS, rate: 1, bufferS: 5 })

  test.each(Object.entries(WRONG))('%s', async (_, ask) => {
    const response = await ask()
    expect({ status: response.status, text: await response.text() }).toEqual({ status: 403, text: NOT_ALLOWED })
    expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8')
    expect((await askKey(proofOfKey())).status).toBe(200)
  })

  test('two headers, even the same one twice', async () => {
    const [one, two] = [proofOfKey(), proofOfKey()]
    for (const headers of [
      [one, one],
      [one, two],
    ]) {
      const { status, text } = await sendRaw(
        reelgate.url,
        `GET ${path('key/0')}`,
        headers.map((header) => `Reelgate-Proof: ${header}`),
      )
      expect({ status, text }).toEqual({ status: 403, text: NOT_ALLOWED })
    }
    expect((await askKey(one)).status).toBe(200)
  })

  test.each(['cross-site', 'same-site', 'none', 'Same-Origin', ''])(
    'a true proof sent by a page of another site (Sec-Fetch-Site: %s)',
    async (site) => {
      const { status, text } = await sendRaw(reelgate.url, `GET ${path('key/0')}`, [
        `Reelgate-Proof: ${proofOfKey()}`,
        `Sec-Fetch-Site: ${site}`,
      ])
      expect({ status, text }).toEqual({ status: 403, text: NOT_ALLOWED })
    },
  )

  test('from the player’s own page the same is answered', async () => {
    const { status } = await sendRaw(reelgate.url, `GET ${path('key/0')}`, [
      `Reelgate-Proof: ${proofOfKey()}`,
      'Sec-Fetch-Site: same-origin',
    ])
    expect(status).toBe(200)
  })
})

describe('a proof works once', () => {
  test('P01: the same header a second time is refused as used, also with everything else copied', async () => {
    const header = proofOfKey()
    expect(await answerOf(askKey(header))).toEqual([200])
    const copy = ['Cookie: all=of-them', 'User-Agent: the same', `Reelgate-Proof: ${header}`]
    for (let i = 0; i < 3; i++) {
      const { status, text } = await sendRaw(reelgate.url, `GET ${path('key/0')}`, copy)
      expect([status, JSON.parse(text).code]).toEqual([401, 'proof-replayed'])
    }
    expect(await answerOf(askKey(proofOfKey()))).toEqual([200])
  })

  test('of fifty concurrent requests with it, one is answered', async () => {
    const header = proofOfKey()
    const answers = await Promise.all(Array.from({ length: 50 }, () => answerOf(askKey(header))))
    expect(answers.filter(([status]) => status === 200)).toHaveLength(1)
    expect(answers.filter(([, code]) => code === 'proof-replayed')).toHaveLength(49)
  })

  test('numbers may overtake each other by 32, each once; what is further behind was used or never', async () => {
    expect(await answerOf(askKey(proofOfKey({ seq: 100 })))).toEqual([200])
    for (const seq of [68, 99, 70, 98, 69]) expect([seq, ...(await answerOf(askKey(proofOfKey({ seq }))))]).toEqual([seq, 200])
    for (const seq of [68, 99, 70, 100, 67, 66, 1])
      expect([seq, ...(await answerOf(askKey(proofOfKey({ seq }))))]).toEqual([seq, 401, 'proof-replayed'])
    expect(await answerOf(askKey(proofOfKey({ seq: 9_999_999_999 })))).toEqual([200])
    expect(await answerOf(askKey(proofOfKey({ seq: 101 })))).toEqual([401, 'proof-replayed'])
  })

  test('a proof that was refused for its tag uses up no number', async () => {
    const seq = viewer.state.seq + 10
    const forged = stranger.proof({
      operation: 'key',
      session: viewer.state.session,
      argument: '0',
      pageId: viewer.state.pageId,
      seq,
    })
    expect(await answerOf(askKey(forged))).toEqual([403, 'not-allowed'])
    expect(await answerOf(askKey(proofOfKey({ seq })))).toEqual([200])
  })
})

describe('a nonce', () => {
  test.each([
    ['that was never given', () => 'A'.repeat(24)],
    ['with its last letter changed', () => viewer.state.nonce.replace(/.$/, (last) => (last === 'A' ? 'B' : 'A'))],
    [
      'of a slot to come',
      () => {
        const bytes = Buffer.from(viewer.state.nonce, 'base64url')
        bytes.writeUInt32BE(bytes.readUInt32BE(0) + 1)
        return bytes.toString('base64url')
      },
    ],
  ])('%s is stale for every client; the answer brings a fresh one', async (_, nonce) => {
    const before = viewer.state.nonce
    expect(await answerOf(askKey(proofOfKey({ nonce: nonce() })))).toEqual([401, 'proof-stale'])
    const session = newPageId()
    const unknown = viewer.proof({ operation: 'key', session, argument: '0', nonce: before.replace(/./, 'z') })
    expect(await answerOf(viewer.send('GET', `/play/${session}/key/0`, unknown))).toEqual([401, 'proof-stale'])
    expect(await answerOf(askKey(proofOfKey()))).toEqual([200])
  })

  test('comes with every answer', async () => {
    const answers = [
      await askKey(proofOfKey()),
      await askKey(undefined),
      await viewer.call('playlist', 'main'),
      await viewer.call('key', '99'),
    ]
    for (const { headers } of answers) expect(headers.get('reelgate-nonce')).toMatch(/^[\w-]{24}$/)
  })
})

describe('the form of a request', () => {
  test.each([
    ['a query string', () => askKey(proofOfKey(), '0?x=1')],
    ['an empty query string', () => askKey(proofOfKey(), '0?')],
    ['a window with a zero in front', () => askKey(proofOfKey({ argument: '00' }), '00')],
    ['a window with a sign', () => askKey(proofOfKey({ argument: '-1' }), '-1')],
    ['a window that is no number', () => askKey(proofOfKey({ argument: 'x' }), 'x')],
    ['the first window after the end', () => askKey(proofOfKey({ argument: '2' }), 2)],
    ['a window far after the end', () => askKey(proofOfKey({ argument: '999999999' }), 999_999_999)],
    ['a window of ten digits', () => askKey(proofOfKey({ argument: '4294967296' }), 4_294_967_296)],
    ['a playlist of another name', () => viewer.call('playlist', 'other')],
    ['a session id cut short', () => viewer.send('GET', `/play/${viewer.state.session.slice(1)}/key/0`, proofOfKey())],
    ['a beat that is no JSON', () => viewer.call('beat', undefined, 'now')],
    ['a beat with another state', () => viewer.call('beat', undefined, '{"state":"dancing","positionS":1,"rate":1,"bufferS":1}')],
    ['a beat before the video', () => viewer.call('beat', undefined, '{"state":"playing","positionS":-1,"rate":1,"bufferS":1}')],
    ['an operation that does not exist', () => viewer.call('watch')],
    ['a body of more than 8 KiB', () => viewer.call('beat', undefined, JSON.stringify({ padding: 'x'.repeat(8192) }))],
  ])('P02: %s is 400', async (_, ask) => {
    const response = await ask()
    expect(response.status).toBe(400)
    expect(await response.json()).toEqual({ code: 'bad-request', message: expect.any(String), requestId: expect.any(String) })
  })

  test('every window of the video is given, and the two differ', async () => {
    const keys = await Promise.all(
      [0, 1].map(async (window) => Buffer.from(await (await viewer.key(window)).arrayBuffer()).toString('hex')),
    )
    expect(keys).toEqual([expect.stringMatching(/^[0-9a-f]{32}$/), expect.stringMatching(/^[0-9a-f]{32}$/)])
    expect(new Set(keys).size).toBe(2)
  })

  test.each(['HEAD', 'POST'])('D13: %s is not answered like GET, and uses up no proof', async (method) => {
    const header = proofOfKey()
    const { status, headers } = await sendRaw(reelgate.url, `${method} ${path('key/0')}`, [`Reelgate-Proof: ${header}`])
    expect([status, headers.get('allow')]).toEqual([405, 'GET'])
    expect(headers.get('content-type')).not.toBe('application/octet-stream')
    expect(await answerOf(askKey(header))).toEqual([200])
  })

  test('a trailing slash or percent-encoding changes nothing: what is signed is the operation, not the address', async () => {
    const { session } = viewer.state
    const encoded = session.replace(/^./, (first) => `%${first.charCodeAt(0).toString(16)}`)
    for (const target of [`/play/${session}/key/0/`, `/play/${encoded}/key/%30`]) {
      const { status } = await sendRaw(reelgate.url, `GET ${target}`, [`Reelgate-Proof: ${proofOfKey()}`])
      expect([target, status]).toEqual([target, 200])
    }
  })
})

test('P06: no playback answer may be kept, guessed at or read by another site', async () => {
  const body = JSON.stringify({ state: 'playing', positionS: 1, rate: 1, bufferS: 5 })
  const answers = [
    await viewer.call('playlist', 'main'),
    await viewer.call('playlist', '1'),
    await viewer.key(0),
    await viewer.call('beat', undefined, body),
    await viewer.call('page', undefined, '{}'),
    await viewer.call('leave', undefined, '{}'),
    await viewer.key(77),
    await askKey(undefined),
    await askKey(proofOfKey({ nonce: 'A'.repeat(24) })),
    await viewer.send('GET', '/play/nothing', undefined),
  ]
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 200, 400, 403, 401, 400])
  for (const { headers } of answers) {
    expect(headers.get('cache-control')).toBe('no-store')
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    expect(headers.get('cross-origin-resource-policy')).toBe('same-origin')
    for (const name of ['set-cookie', 'access-control-allow-origin', 'etag', 'last-modified'])
      expect(headers.get(name)).toBeNull()
  }
})

describe('pages', () => {
  test('the newer page plays, the older gets page-replaced from then on', async () => {
    const older = viewer.state.pageId
    viewer.newPage()
    expect((await viewer.reopen()).body).toMatchObject({ pageId: viewer.state.pageId, session: viewer.state.session })
    expect((await viewer.key(0)).status).toBe(200)
    expect(await answerOf(askKey(proofOfKey({ pageId: older, seq: 500 })))).toEqual([409, 'page-replaced'])
    const back = viewer.proof({ operation: 'page', session: viewer.state.session, body: '{}', pageId: older, seq: 501 })
    expect(await answerOf(viewer.send('POST', path('page'), back, '{}'))).toEqual([409, 'page-replaced'])
    expect((await viewer.key(0)).status).toBe(200)
  })

  test('a page starts its own sequence numbers, and proofs of the page before are not valid for it', async () => {
    expect((await askKey(proofOfKey({ seq: 1000 }))).status).toBe(200)
    viewer.newPage()
    expect((await viewer.reopen()).playing).toBe(true)
    expect(viewer.state.seq).toBe(1)
    expect((await viewer.key(0)).status).toBe(200)
  })

  test('a page is opened by page alone: any other request of an unknown page is refused', async () => {
    viewer.newPage()
    expect(await answerOf(viewer.key(0))).toEqual([409, 'page-replaced'])
  })

  test('a reload continues at the position of the last beat', async () => {
    await viewer.call('beat', undefined, JSON.stringify({ state: 'playing', positionS: 7.25, rate: 1, bufferS: 5 }))
    viewer.newPage()
    expect((await viewer.reopen()).body.resumeAtS).toBe(7.25)
  })

  test('at most 32 in a session; the last one plays on', async () => {
    for (let page = 2; page <= 32; page++) {
      viewer.newPage()
      expect([page, (await viewer.reopen()).status]).toEqual([page, 200])
    }
    const last = { pageId: viewer.state.pageId, seq: viewer.state.seq }
    viewer.newPage()
    expect(await viewer.reopen()).toMatchObject({ status: 403, body: { code: 'session-ended' } })
    Object.assign(viewer.state, last)
    expect((await viewer.key(0)).status).toBe(200)
  })
})
