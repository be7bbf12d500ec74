import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  createPublicKey,
  diffieHellman,
  generateKeyPairSync,
  hkdfSync,
  type KeyObject,
  randomBytes,
} from 'node:crypto'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'

// A viewer's browser without a screen, written from playback-protocol.md and from nothing of the service's own code.

export type Outcome = { status: number; body: Record<string, unknown>; playing: boolean; headers: Headers }

type ProofParts = {
  operation: string
  session?: string
  argument?: string
  body?: string
  pageId?: string
  seq?: number
  nonce?: string
}

export function createViewer(url: string) {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const state = {
    pageId: newPageId(),
    seq: 0,
    nonce: '',
    ticket: '',
    serverKey: '',
    serverKeyId: '',
    session: '',
    headers: {} as Record<string, string>,
  }
  const proofKeys = new Map<KeyObject, { serverKey: string; proofKey: Buffer }>()

  function proofKeyOf(key: KeyObject): Buffer {
    const { serverKey } = state
    const known = proofKeys.get(key)
    if (known?.serverKey === serverKey) return known.proofKey
    const proofKey = agreeProofKey(key, serverKey)
    proofKeys.set(key, { serverKey, proofKey })
    return proofKey
  }

  /** Loads the player page, as an iframe would; spends nothing. */
  async function openPage(query = '', headers: Record<string, string> = {}): Promise<Response> {
    const response = await fetch(`${url}/player/${query}`, { headers })
    const html = await response.clone().text()
    const [, json] = /id="reelgate-page"[^>]*>([^<]*)</.exec(html) ?? []
    const page: PageValues = JSON.parse(json ?? '{}')
    state.nonce = page.proofNonce
    state.ticket = page.ticket
    state.serverKey = page.serverKey
    state.serverKeyId = page.serverKeyId
    return response
  }

  function proof(parts: ProofParts, key: KeyObject = privateKey): string {
    const { operation, session = '-', argument = '-', body = '', pageId = state.pageId, nonce = state.nonce } = parts
    const seq = parts.seq ?? ++state.seq
    const bodyHash = body === '' ? '-' : createHash('sha256').update(body).digest('base64url')
    const lines = ['reelgate-proof-2', operation, session, argument, pageId, String(seq), nonce, bodyHash]
    const tag = createHmac('sha256', proofKeyOf(key)).update(lines.join('\n')).digest('base64url')
    return `2.${pageId}.${seq}.${nonce}.${tag}`
  }

  async function send(method: string, path: string, header: string | undefined, body?: string): Promise<Response> {
    const headers: Record<string, string> = { ...state.headers }
    if (header !== undefined) headers['Reelgate-Proof'] = header
    if (body !== undefined) headers['Content-Type'] = 'application/json'
    const response = await fetch(`${url}${path}`, { method, headers, body })
    state.nonce = response.headers.get('Reelgate-Nonce') ?? state.nonce
    return response
  }

  async function redeem(otp: string, more: { videoId?: string; body?: Record<string, unknown> } = {}): Promise<Outcome> {
    if (!state.nonce) await openPage(`?otp=${otp}`)
    const body = JSON.stringify({ ...redeemBody(otp), videoId: more.videoId, ...more.body })
    const response = await send('POST', '/play/redeem', proof({ operation: 'redeem', body }), body)
    return outcomeOf(response)
  }

  async function outcomeOf(response: Response): Promise<Outcome> {
    const body = (await response.json()) as Record<string, unknown>
    if (response.status === 200) state.session = String(body.session)
    return { status: response.status, body, playing: response.status === 200, headers: response.headers }
  }

  async function call(operation: string, argument?: string, body?: string): Promise<Response> {
    const suffix = argument === undefined ? '' : `/${argument}`
    const header = proof({ operation, session: state.session, argument, body })
    return send(body === undefined ? 'GET' : 'POST', `/play/${state.session}/${operation}${suffix}`, header, body)
  }

  /** What a redeem of this OTP says. */
  function redeemBody(otp: string) {
    const { serverKeyId, ticket } = state
    return { otp, publicKey: publicKeyText(), serverKeyId, ticket }
  }

  const publicKeyText = () => publicKey.export({ format: 'der', type: 'spki' }).subarray(-65).toString('base64url')

  return {
    url,
    state,
    publicKeyText,
    redeemBody,
    openPage,
    proof,
    send,
    redeem,
    call,
    playlist: async (name: string) => (await call('playlist', name)).text(),
    key: (window: number) => call('key', String(window)),
    /** A page load of the same browser: a new page id, numbers from 1. */
    newPage() {
      state.pageId = newPageId()
      state.seq = 0
    },
    reopen: async () => outcomeOf(await call('page', undefined, '{}')),
    /** Downloads and decrypts a whole rendition, as a player that asks for every key would. */
    async download(name: string): Promise<{ init: Buffer; segments: Buffer[] }> {
      const playlist = readMediaPlaylist(await (await call('playlist', name)).text())
      const base = `${url}/play/${state.session}/playlist/`
      const keys = new Map<string, Buffer>()
      const init = await bytesOf(new URL(playlist.init, base).href)
      const segments: Buffer[] = []
      for (const segment of playlist.segments) {
        const window = segment.keyUri.split('/').at(-1) ?? ''
        const key = keys.get(window) ?? Buffer.from(await (await call('key', window)).arrayBuffer())
        keys.set(window, key)
        segments.push(decrypt(await bytesOf(new URL(segment.uri, base).href), key, segment.iv))
      }
      return { init, segments }
    },
  }
}

/** What the player's page holds for its script. */
export type PageValues = { proofNonce: string; serverKey: string; serverKeyId: string; ticket: string }

/** The key of the proofs, from the browser's private key and the server's public point. */
export function agreeProofKey(privateKey: KeyObject, serverKey: string): Buffer {
  const serverPoint = Buffer.from(serverKey, 'base64url')
  const header = Buffer.from('3059301306072a8648ce3d020106082a8648ce3d030107034200', 'hex') // P-256 in SPKI
  const publicServerKey = createPublicKey({ key: Buffer.concat([header, serverPoint]), format: 'der', type: 'spki' })
  const browserPoint = createPublicKey(privateKey).export({ format: 'der', type: 'spki' }).subarray(-65)
  const x = diffieHellman({ privateKey, publicKey: publicServerKey })
  const salt = createHash('sha256').update(browserPoint).update(serverPoint).digest()
  return Buffer.from(hkdfSync('sha256', x, salt, 'reelgate-proof-2', 32))
}

export type Viewer = ReturnType<typeof createViewer>

/** Asks from another address of this machine, such as 127.0.0.2: what a phone does that leaves home. */
export async function sendFrom(
  localAddress: string,
  url: string,
  headers: Record<string, string>,
  method = 'GET',
  body?: string,
) {
  const asked = request(url, { localAddress, method, headers }).end(body)
  const [answer]: IncomingMessage[] = await once(asked, 'response')
  if (!answer) throw new Error(`${url}: no answer`)
  return { status: answer.statusCode, headers: answer.headers, bytes: Buffer.concat(await answer.toArray()) }
}

/** What a playback answer says: its status, and of a refusal the code and, where there is one, the reason. */
export async function answerOf(response: Response | Promise<Response>): Promise<(number | string)[]> {
  const answer = await response
  if (answer.ok) return [answer.status]
  const { code, why }: { code: string; why?: string } = JSON.parse(await answer.text())
  return [answer.status, code, ...(why === undefined ? [] : [why])]
}

export function newPageId(): string {
  return randomBytes(16).toString('base64url')
}

/** Fetches, patiently where the server says to come again. */
export async function bytesOf(href: string): Promise<Buffer> {
  for (;;) {
    const response = await fetch(href)
    const bytes = Buffer.from(await response.arrayBuffer())
    if (response.status === 200) return bytes
    if (response.status !== 503) throw new Error(`${href}: ${response.status} ${bytes}`)
  }
}

export function decrypt(bytes: Buffer, key: Buffer, iv: Buffer): Buffer {
  const decipher = createDecipheriv('aes-128-cbc', key, iv)
  return Buffer.concat([decipher.update(bytes), decipher.final()])
}

export type MediaPlaylist = { init: string; segments: { uri: string; keyUri: string; iv: Buffer; durationS: number }[] }

export function readMediaPlaylist(text: string): MediaPlaylist {
  const init = /#EXT-X-MAP:URI="([^"]+)"/.exec(text)?.[1] ?? ''
  const [, ivKey = ''] = /\n#EXT-X-REELGATE-IV-KEY:([0-9a-f]{32})\n/.exec(text) ?? []
  let keyUri = ''
  const entries = text.matchAll(/(?:#EXT-X-KEY:METHOD=AES-128,URI="([^"]+)"\n)?#EXTINF:([\d.]+),\n(\S+)/g)
  return {
    init,
    segments: Array.from(entries, ([, nextKeyUri, durationS = '', uri = '']) => {
      keyUri = nextKeyUri ?? keyUri
      return { uri, keyUri, iv: ivOf(Buffer.from(ivKey, 'hex'), uri), durationS: Number(durationS) }
    }),
  }
}

/** Playback-protocol.md, section 5. */
function ivOf(ivKey: Buffer, uri: string): Buffer {
  const [, rendition, segment] = /(\d+)\/(\d+)(?:\.\w+)?\.m4s(?:\?|$)/.exec(uri) ?? []
  const block = Buffer.alloc(16)
  block.writeUInt32BE(Number(rendition), 0)
  block.writeUInt32BE(Number(segment), 4)
  return createCipheriv('aes-128-ecb', ivKey, null).setAutoPadding(false).update(block)
}

/** The names of all media playlists that a multivariant playlist lists, those of audio tracks first. */
export function readNames(text: string): string[] {
  return Array.from(
    text.matchAll(/TYPE=AUDIO.*URI="([^"]+)"|#EXT-X-STREAM-INF:.*\n(\S+)/g),
    ([, audio, rendition = '']) => audio ?? rendition,
  )
}

/** The renditions that a multivariant playlist lists. */
export function readRenditions(
  text: string,
): { uri: string; widthPx: number; heightPx: number; bandwidthBps: number; codecs: string }[] {
  return Array.from(text.matchAll(/#EXT-X-STREAM-INF:(.*)\n(\S+)/g), ([, attributes = '', uri = '']) => {
    const [, width = '0', height = '0'] = /RESOLUTION=(\d+)x(\d+)/.exec(attributes) ?? []
    const bandwidthBps = Number(/BANDWIDTH=(\d+)/.exec(attributes)?.[1] ?? 0)
    return {
      uri,
      widthPx: Number(width),
      heightPx: Number(height),
      bandwidthBps,
      codecs: /CODECS="([^"]*)"/.exec(attributes)?.[1] ?? '',
    }
  })
}
