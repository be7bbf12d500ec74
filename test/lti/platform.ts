import { createHmac, generateKeyPairSync, type KeyObject, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createLocalJWKSet, jwtVerify, SignJWT } from 'jose'

// A learning platform, written from the standard: LTI 1.3 core (its messages are those of section 5.3 and of appendix B), deep linking 2.0,
// assignment and grade services 2.0, dynamic registration 1.0, client side postMessages 1.0. Over HTTP, with real signatures.

export const LTI = 'https://purl.imsglobal.org/spec/lti/claim'
export const DEEP_LINKING = 'https://purl.imsglobal.org/spec/lti-dl/claim'
const GRADES = 'https://purl.imsglobal.org/spec/lti-ags/claim/endpoint'
export const LEARNER = 'http://purl.imsglobal.org/vocab/lis/v2/membership#Learner'
export const TEACHER = 'http://purl.imsglobal.org/vocab/lis/v2/membership#Instructor'

export type Claims = Record<string, unknown>
export type Score = {
  path: string
  userId: string
  scoreGiven: number
  activityProgress: string
  timestamp: string
  gradingProgress: string
}
type Answer = { status: number; body?: unknown }
type SigningKey = { kid: string; privateKey: KeyObject; jwk: object }

export function newKey(kid: string = randomUUID()): SigningKey {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  return { kid, privateKey, jwk: { ...publicKey.export({ format: 'jwk' }), kid, alg: 'RS256', use: 'sig' } }
}

export type TestPlatform = Awaited<ReturnType<typeof startPlatform>>

export async function startPlatform() {
  const state = {
    /** The keys that it publishes; the first one signs. */
    keys: [newKey()],
    clientId: `client-${randomUUID()}`,
    deploymentId: '07940580-b309-415e-a37c-914d387c1150',
    /** What its tool has registered. */
    tool: undefined as Record<string, unknown> | undefined,
    configuration: {} as Record<string, unknown>,
    /** What it answers to a score before it takes it. */
    scoreAnswers: [] as number[],
    tokenAnswers: [] as number[],
    scores: [] as Score[],
    tokens: [] as string[],
    /** Paths that were asked, in order. */
    asked: [] as string[],
    /** The claims of the next launch in a browser. */
    next: {} as Claims,
    /** What a deep linking answer brought. */
    answers: [] as Claims[],
  }
  const server = createServer((request, response) => {
    answer(request).then(
      ({ status, body }) => send(response, status, body),
      (error) => send(response, 500, { error: String(error) }),
    )
  })
  server.listen(0, 'localhost')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const host = `localhost:${port}`
  const issuer = `http://${host}`

  async function answer(request: IncomingMessage): Promise<Answer> {
    const url = new URL(request.url ?? '/', issuer)
    state.asked.push(`${request.method} ${url.pathname}`)
    const body = await readBody(request)
    switch (url.pathname) {
      case '/.well-known/openid-configuration':
        return { status: 200, body: configuration() }
      case '/register':
        state.tool = JSON.parse(body)
        return { status: 200, body: { client_id: state.clientId, [TOOL]: { deployment_id: state.deploymentId } } }
      case '/keys':
        return { status: 200, body: { keys: state.keys.map(({ jwk }) => jwk) } }
      case '/authorize':
        return { status: 200, body: await launchPage(url) }
      case '/course':
        return { status: 200, body: coursePage(url.searchParams) }
      case '/token':
        return giveToken(new URLSearchParams(body))
      case '/return':
        state.answers.push(await readToolToken(new URLSearchParams(body).get('JWT') ?? '', issuer))
        return { status: 200, body: '<!doctype html><title>Course</title><p id="added">The video was added.</p>' }
      default:
        if (url.pathname.endsWith('/scores')) return takeScore(url, request.headers, JSON.parse(body))
        return { status: 404 }
    }
  }

  const TOOL = 'https://purl.imsglobal.org/spec/lti-tool-configuration'
  const configuration = () => ({
    issuer,
    authorization_endpoint: `${issuer}/authorize`,
    token_endpoint: `${issuer}/token`,
    jwks_uri: `${issuer}/keys`,
    registration_endpoint: `${issuer}/register`,
    'https://purl.imsglobal.org/spec/lti-platform-configuration': { product_family_code: 'testlms' },
    ...state.configuration,
  })

  /** What this server signs is verified with the keys that it publishes, as a platform does. */
  async function readToolToken(token: string, audience: string): Promise<Claims> {
    const published = await (await fetch(String(state.tool?.jwks_uri))).json()
    const verified = await jwtVerify(token, createLocalJWKSet(published as Parameters<typeof createLocalJWKSet>[0]), {
      algorithms: ['RS256'],
      issuer: state.clientId,
      audience,
    })
    return verified.payload
  }

  async function giveToken(form: URLSearchParams): Promise<Answer> {
    const refused = state.tokenAnswers.shift()
    if (refused !== undefined) return { status: refused, body: { error: 'later' } }
    const { sub } = await readToolToken(form.get('client_assertion') ?? '', `${issuer}/token`)
    const isComplete =
      form.get('grant_type') === 'client_credentials' &&
      form.get('client_assertion_type') === 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer' &&
      form.get('scope') === 'https://purl.imsglobal.org/spec/lti-ags/scope/score'
    if (sub !== state.clientId || !isComplete) return { status: 400, body: { error: 'invalid_request' } }
    const token = randomUUID()
    state.tokens.push(token)
    return { status: 200, body: { access_token: token, token_type: 'bearer', expires_in: 3600, scope: form.get('scope') } }
  }

  function takeScore(url: URL, headers: IncomingMessage['headers'], score: Omit<Score, 'path'>): Answer {
    const refused = state.scoreAnswers.shift()
    if (refused !== undefined) return { status: refused }
    const isAuthorized = state.tokens.some((token) => headers.authorization === `Bearer ${token}`)
    if (!isAuthorized || headers['content-type'] !== 'application/vnd.ims.lis.v1.score+json') return { status: 401 }
    const last = state.scores.at(-1)
    if (last && last.userId === score.userId && Date.parse(score.timestamp) <= Date.parse(last.timestamp)) return { status: 409 }
    state.scores.push({ ...score, path: `${url.pathname}${url.search}` })
    return { status: 204 }
  }

  /** The claims of a launch, with those of the standard's example. */
  function claimsOf(authorization: URL, more: Claims): Claims {
    const nowS = Math.floor(Date.now() / 1000)
    return {
      iss: issuer,
      aud: [state.clientId],
      azp: state.clientId,
      sub: 'a6d5c443-1f51-4783-ba1a-7686ffe3b54a',
      nonce: authorization.searchParams.get('nonce'),
      iat: nowS,
      exp: nowS + 300,
      name: 'Ms Jane Marie Doe',
      given_name: 'Jane',
      family_name: 'Doe',
      [`${LTI}/message_type`]: 'LtiResourceLinkRequest',
      [`${LTI}/version`]: '1.3.0',
      [`${LTI}/deployment_id`]: state.deploymentId,
      [`${LTI}/roles`]: [LEARNER],
      [`${LTI}/context`]: {
        id: 'c1d887f0-a1a3-4bca-ae25-c375edcc131a',
        label: 'ECON 1010',
        title: 'Economics as a Social Science',
      },
      [`${LTI}/resource_link`]: { id: '200d101f-2c14-434a-a0f3-57c2a42369fd', title: 'Introduction' },
      ...more,
    }
  }

  async function sign(claims: Claims, key = state.keys[0] as SigningKey): Promise<string> {
    return new SignJWT(claims).setProtectedHeader({ alg: 'RS256', kid: key.kid }).sign(key.privateKey)
  }

  /** What its authorization address answers a browser: the launch as a form that sends itself. */
  async function launchPage(url: URL): Promise<string> {
    const fields = { state: url.searchParams.get('state') ?? '', id_token: await sign(claimsOf(url, state.next)) }
    const inputs = Object.entries(fields).map(([name, value]) => `<input name="${name}" value="${value}">`)
    return `<!doctype html><form method="post" action="${url.searchParams.get('redirect_uri')}">${inputs.join('')}</form>
<script>document.forms[0].submit()</script>`
  }

  return {
    state,
    host,
    issuer,
    newKey,
    sign,
    claimsOf,
    readToolToken,
    configurationUrl: `${issuer}/.well-known/openid-configuration`,
    close: () => new Promise<void>((closed) => server.close(() => closed())),
  }
}

/** A page of a course with a frame in which an activity is launched; with `stores` it keeps what tools ask it to. */
function coursePage(query: URLSearchParams): string {
  const address = (query.get('login') ?? '').replace(/[&"<]/g, (char) => `&#${char.charCodeAt(0)};`)
  return `<!doctype html><html lang="en"><meta name="viewport" content="width=device-width"><title>Course</title>
<style>html, body, main { margin: 0; height: 100% } h1 { margin: 0; font: 16px sans-serif } iframe { width: 100%; height: calc(100% - 24px); border: 0 }</style>
<main><h1>Economics as a Social Science</h1>
<iframe src="${address}" title="Activity" allow="autoplay; fullscreen; encrypted-media"></iframe></main>
${query.has('stores') ? `<script>${STORE}</script>` : ''}`
}

/** Client side postMessages 1.0, section 3: what a platform does that stores for tools, each apart. */
const STORE = `
const stores = new Map()
addEventListener('message', ({ data, origin, source }) => {
  const { subject, message_id, key, value } = data
  const store = stores.get(origin) ?? new Map()
  stores.set(origin, store)
  if (subject === 'lti.put_data') store.set(key, value)
  if (subject === 'lti.put_data' || subject === 'lti.get_data')
    source.postMessage({ subject: subject + '.response', message_id, key, value: store.get(key) }, origin)
})`

/** A token without a signature, or with one that is none. */
export function forgeToken(header: object, claims: Claims, secret?: string): string {
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const text = `${encode(header)}.${encode(claims)}`
  return `${text}.${secret === undefined ? '' : createHmac('sha256', secret).update(text).digest('base64url')}`
}

/** Claims of a learner whose course grades the video. */
export function graded(issuer: string, lineItem = `${issuer}/2344/lineitems/1234/lineitem`, completedAt?: string): Claims {
  return {
    [GRADES]: { scope: ['https://purl.imsglobal.org/spec/lti-ags/scope/score'], lineitem: lineItem },
    ...(completedAt && { [`${LTI}/custom`]: { completion_percent: completedAt } }),
  }
}

/** Claims of a teacher who chooses a video. */
export function choosing(issuer: string, more: Claims = {}): Claims {
  return {
    [`${LTI}/message_type`]: 'LtiDeepLinkingRequest',
    [`${LTI}/roles`]: [TEACHER],
    [`${DEEP_LINKING}/deep_linking_settings`]: {
      deep_link_return_url: `${issuer}/return`,
      accept_types: ['link', 'file', 'html', 'ltiResourceLink', 'image'],
      accept_presentation_document_targets: ['iframe', 'window', 'embed'],
      accept_multiple: true,
      data: 'Some random opaque data that MUST be sent back',
      ...more,
    },
  }
}

async function readBody(request: IncomingMessage): Promise<string> {
  let text = ''
  for await (const piece of request) text += piece
  return text
}

function send(response: ServerResponse, status: number, body: unknown): void {
  if (typeof body === 'string') response.writeHead(status, { 'Content-Type': 'text/html; charset=utf-8' }).end(body)
  else response.writeHead(status, { 'Content-Type': 'application/json' }).end(body === undefined ? '' : JSON.stringify(body))
}
