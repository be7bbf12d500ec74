import type { Permission } from '../../src/accounts/permission.ts'

// Who opens each route of the running server, for the tests that ask all of them.

/** Who opens a route: a key with this permission; only a viewer's browser with its proof, a person with the console's cookie or a worker with its token; any client. */
export type Rule = {
  opens: Permission | 'proof' | 'cookie' | 'worker' | 'anybody'
  /** Whether the key may also come as Bearer, and an upload token. */
  acceptsBearer?: true
  /** Another permission that opens it. */
  alsoOpens?: Permission
  /** What the right key is answered, or, where no key is asked for, everybody. */
  status: number
  /** Where even the key of a banned account is answered so. */
  toBannedAccount?: number
  /** Where it differs from the route: VIDEO is replaced by the id of a video of the account. */
  path?: string
  body?: object
  /** Where only a cookie opens it: whose. Signing in itself needs none. */
  role?: 'anybody' | 'viewer' | 'uploader' | 'owner' | 'administrator'
}

const DOWNLOAD = `/download/9999999999/${'A'.repeat(43)}/${'0'.repeat(32)}/1`

const TASK = `/worker/tasks/${'0'.repeat(32)}`

const UPLOAD = `/api/uploads/${'0'.repeat(32)}`

export const RULES: Record<string, Rule> = {
  'GET /api/videos': { opens: 'viewer', status: 200 },
  'GET /api/videos/:id': { opens: 'viewer', status: 200 },
  'POST /api/videos/:id': { opens: 'editor', status: 200, body: { description: 'by its owner' } },
  // A video without a file is not replaced.
  'PUT /api/videos/:id': { opens: 'editor', status: 409 },
  'PUT /api/videos/:id/trim': { opens: 'editor', status: 409, body: { startS: 1 } },
  'DELETE /api/videos/:id/replacement': { opens: 'editor', status: 409 },
  'POST /api/videos/:id/undo': { opens: 'editor', status: 409 },
  'DELETE /api/videos/:id/kept': { opens: 'editor', status: 200 },
  'PUT /api/videos': { opens: 'uploader', status: 200, path: '/api/videos?title=x' },
  // Asked for an address that is refused as it stands, so that nothing is fetched.
  'PUT /api/videos/importUrl': { opens: 'uploader', status: 400, body: { url: 'http://127.0.0.1/' } },
  'POST /api/imports': { opens: 'uploader', status: 200, body: { imports: [{ url: 'http://127.0.0.1/' }] } },
  'POST /api/uploads': { opens: 'uploader', acceptsBearer: true, status: 412 }, // resumable: without the header of its protocol
  'HEAD /api/uploads/:uploadId': { opens: 'uploader', acceptsBearer: true, status: 412, path: UPLOAD },
  'PATCH /api/uploads/:uploadId': { opens: 'uploader', acceptsBearer: true, status: 412, path: UPLOAD },
  'DELETE /api/uploads/:uploadId': { opens: 'uploader', acceptsBearer: true, status: 412, path: UPLOAD },
  'POST /api/upload-tokens': { opens: 'uploader', status: 200, body: { origin: 'https://school.example' } },
  'GET /api/upload-tokens': { opens: 'uploader', status: 200 },
  'DELETE /api/upload-tokens/:tokenId': { opens: 'uploader', status: 404, path: `/api/upload-tokens/${'0'.repeat(32)}` },
  'DELETE /api/videos': { opens: 'editor', status: 200, path: '/api/videos?videos=none' },
  'GET /api/videos/tags': { opens: 'viewer', status: 200 },
  'POST /api/videos/tags': { opens: 'editor', status: 200, body: { videos: ['VIDEO'], tags: ['a'] } },
  'PUT /api/videos/tags': { opens: 'editor', status: 200, body: { videos: ['VIDEO'], tags: ['a'] } },
  'DELETE /api/videos/tags': { opens: 'editor', status: 200, body: { videos: ['VIDEO'], tags: ['a'] } },
  'GET /api/videos/folders/:id': { opens: 'viewer', status: 200, path: '/api/videos/folders/root' },
  'POST /api/videos/folders/search': { opens: 'viewer', status: 200, body: { name: 'x' } },
  'POST /api/videos/folders': { opens: 'editor', status: 200, body: { name: 'x' } },
  // No folder that each asker could rename and delete: whom it opens to, it tells that there is none.
  'PUT /api/videos/folders/:id': {
    opens: 'editor',
    status: 404,
    path: `/api/videos/folders/${'0'.repeat(32)}`,
    body: { name: 'x' },
  },
  'DELETE /api/videos/folders/:id': { opens: 'editor', status: 404, path: `/api/videos/folders/${'0'.repeat(32)}` },
  'POST /api/videos/:id/otp': { opens: 'otpCreator', status: 200, body: {} },
  'PUT /api/alerts/seen': { opens: 'editor', status: 200, body: { upTo: 1 } },
  'DELETE /api/viewers/:userId': { opens: 'editor', status: 200, path: '/api/viewers/no-one' },
  'GET /api/otp-defaults': { opens: 'viewer', status: 200 },
  'PUT /api/otp-defaults': { opens: 'editor', status: 200, body: {} },
  'GET /api/videos/:id/otp-defaults': { opens: 'viewer', status: 200 },
  'PUT /api/videos/:id/otp-defaults': { opens: 'editor', status: 200, body: {} },
  'POST /api/videos/otp-defaults': { opens: 'editor', status: 200, body: { videos: [], options: {} } },
  'GET /api/videos/:id/files': { opens: 'viewer', status: 200 },
  // No form: the file is asked for only of whom the route opens to.
  'POST /api/videos/:id/files': { opens: 'editor', status: 400 },
  'GET /api/videos/:id/files/:fileId': {
    opens: 'viewer',
    alsoOpens: 'downloader',
    status: 404,
    path: '/api/videos/VIDEO/files/1',
  },
  'PUT /api/videos/:id/files/:fileId': {
    opens: 'editor',
    status: 404,
    path: '/api/videos/VIDEO/files/1',
    body: { enabled: 1 },
  },
  'DELETE /api/videos/:id/files/:fileId': { opens: 'editor', status: 404, path: '/api/videos/VIDEO/files/1' },
  'GET /api/videos/:id/audio': { opens: 'viewer', status: 200 },
  'PUT /api/videos/:id/audio/:trackId': { opens: 'editor', status: 404, path: '/api/videos/VIDEO/audio/99', body: {} },
  // No form: the file is asked for only of whom the route opens to.
  'POST /api/videos/:id/audio': { opens: 'editor', status: 400, path: '/api/videos/VIDEO/audio?language=fr' },
  'DELETE /api/videos/:id/audio/:trackId': { opens: 'editor', status: 404, path: '/api/videos/VIDEO/audio/199' },
  'GET /api/videos/:id/chapters': { opens: 'viewer', status: 200 },
  'GET /api/videos/:id/storyboard': { opens: 'viewer', status: 200 },
  'GET /api/videos/:id/poster-candidates': { opens: 'viewer', status: 200 },
  'PUT /api/videos/:id/chapters': { opens: 'editor', status: 200, body: { chapters: [] } },
  'POST /api/account/video-usage': { opens: 'viewer', status: 200, body: { date: '2026-02-28' } },

  'GET /api/keys': { opens: 'editor', status: 200 },
  'POST /api/keys': { opens: 'editor', status: 200, body: { name: 'x', permissions: ['editor'] } },
  'POST /api/keys/:id/rotate': { opens: 'editor', status: 404, path: `/api/keys/${'0'.repeat(32)}/rotate` },
  'DELETE /api/keys/:id': { opens: 'editor', status: 404, path: `/api/keys/${'0'.repeat(32)}` },
  'GET /api/account': { opens: 'viewer', status: 200 },
  'PUT /api/account': { opens: 'editor', status: 200, body: { streamLimit: 0 } },
  'GET /api/events': { opens: 'viewer', status: 200 },
  'GET /api/refusals': { opens: 'viewer', status: 200 },
  'GET /api/queue': { opens: 'viewer', status: 200 },
  'POST /api/videos/:id/retry': { opens: 'editor', status: 409 },
  'POST /api/videos/:id/encode': { opens: 'editor', status: 404, path: `/api/videos/${'0'.repeat(32)}/encode` },
  'GET /api/videos/:id/history': { opens: 'viewer', status: 200 },
  'GET /api/videos/:id/retention': { opens: 'viewer', status: 200 },
  'GET /api/quality': { opens: 'viewer', status: 200, path: '/api/quality?from=2026-11-01&to=2026-11-21' },
  'GET /api/statistics': { opens: 'viewer', status: 200, path: '/api/statistics?from=2026-11-01&to=2026-11-02' },
  'GET /api/audit-log': { opens: 'editor', status: 200 },

  'GET /api/hooks': { opens: 'viewer', status: 200 },
  'POST /api/hooks': { opens: 'editor', status: 200, body: { value: 'https://1.1.1.1/', status: 0 } },
  'DELETE /api/hooks': { opens: 'editor', status: 404, body: { uuid: 'VIDEO' } },
  'PUT /api/hooks/:uuid': { opens: 'editor', status: 404, body: { status: 0 } },
  'POST /api/hooks/:uuid/secret': { opens: 'editor', status: 404 },
  'GET /api/lti/platforms': { opens: 'viewer', status: 200 },
  'POST /api/lti/links': { opens: 'editor', status: 200 },
  'POST /api/lti/platforms': { opens: 'editor', status: 200, body: { name: 'x', issuer: 'https://1.1.1.1' } },
  'PUT /api/lti/platforms/:platformId': { opens: 'editor', status: 404, body: {} },
  'DELETE /api/lti/platforms/:platformId': { opens: 'editor', status: 404 },
  'GET /api/lti/platforms/:platformId/courses': { opens: 'viewer', status: 404 },
  'PUT /api/lti/platforms/:platformId/courses': { opens: 'editor', status: 404, body: { courseId: '42', folderId: null } },
  'GET /api/viewers': { opens: 'viewer', status: 400 },
  'GET /api/viewers/:userId': { opens: 'viewer', status: 200 },
  'GET /api/videos/:id/viewers': { opens: 'viewer', status: 200 },
  'POST /api/hooks/:uuid/test': { opens: 'editor', status: 404 },
  'GET /api/hooks/:uuid/deliveries': { opens: 'viewer', status: 404 },
  'POST /api/hooks/:uuid/deliveries/replay': { opens: 'editor', status: 404 },
  'POST /api/hooks/:uuid/deliveries/:id/replay': { opens: 'editor', status: 404 },

  'GET /api/watched': { opens: 'viewer', status: 200, path: '/api/watched?from=2026-11-01&to=2026-11-21' },
  'GET /api/usage': { opens: 'viewer', status: 200, path: '/api/usage?from=2026-11-01&to=2026-11-21' },
  'GET /api/sessions': { opens: 'viewer', status: 200 },
  'DELETE /api/sessions': { opens: 'editor', status: 200, path: '/api/sessions?userId=nobody' },
  'GET /api/trash': { opens: 'viewer', status: 200 },
  'POST /api/trash/restore': { opens: 'editor', status: 200, body: { videos: [] } },
  'DELETE /api/trash': { opens: 'editor', status: 200, body: { videos: [] } },
  'POST /api/videos/move': { opens: 'editor', status: 200, body: { videos: [], folderId: 'root' } },
  'GET /api/alerts': { opens: 'viewer', status: 200 },
  'GET /api/bans': { opens: 'editor', status: 200, toBannedAccount: 200 },
  'DELETE /api/bans': { opens: 'editor', status: 404, toBannedAccount: 404, path: '/api/bans?subject=VIDEO' },

  'POST /v2/otp': { opens: 'otpCreator', status: 200, path: '/v2/otp?video=VIDEO' },
  'POST /v2/files': { opens: 'viewer', status: 200, path: '/v2/files?video=VIDEO' },
  'POST /v2/importUrl': { opens: 'uploader', status: 400, path: '/v2/importUrl?url=http://127.0.0.1/' },
  'POST /v2/videos': { opens: 'viewer', status: 200 },
  'POST /v2/tags/add': { opens: 'editor', status: 200, body: { videos: ['VIDEO'], tags: ['a'] } },
  'POST /v2/tags/remove': { opens: 'editor', status: 200, body: { videos: ['VIDEO'], tags: ['b'] } },
  'POST /v2/tags/search': { opens: 'viewer', status: 200, body: { tags: ['a'] } },
  'POST /v2/uploadPolicy': { opens: 'uploader', status: 200, body: { title: 'x' } },
  'POST /v2/video': { opens: 'viewer', status: 200, path: '/v2/video?id=VIDEO' },

  'POST /play/redeem': { opens: 'proof', status: 403 },
  'POST /play/:session/page': { opens: 'proof', status: 403 },
  'GET /play/:session/playlist/:name': { opens: 'proof', status: 403, path: `/play/${'A'.repeat(22)}/playlist/main` },
  'GET /play/:session/key/:window': { opens: 'proof', status: 403, path: `/play/${'A'.repeat(22)}/key/0` },
  'GET /play/:session/file/:name': { opens: 'proof', status: 403, path: `/play/${'A'.repeat(22)}/file/caption-1` },
  'POST /play/:session/beat': { opens: 'proof', status: 403, body: { state: 'playing', positionS: 0 } },
  'POST /play/:session/damage': { opens: 'proof', status: 403, body: { rendition: 1, segment: 0 } },
  'POST /play/:session/leave': { opens: 'proof', status: 403 },
  // Its address is signed for a session.
  'GET /media/:exp/:sig/:videoId/:generation/:rendition/:file': {
    opens: 'proof',
    status: 403,
    path: `/media/9999999999/${'A'.repeat(22)}/VIDEO/1/1/0.m4s`,
  },
  // Its address is signed for a key.
  'GET /download/:exp/:sig/:keyId/:fileId': { opens: 'proof', status: 403, path: DOWNLOAD },
  'HEAD /download/:exp/:sig/:keyId/:fileId': { opens: 'proof', status: 403, path: DOWNLOAD },
  // The form carries its own proof: the policy that an uploader's key was given.
  'POST /upload': { opens: 'proof', status: 415 },

  // Asked without the header of their protocol, which is looked at after the token.
  'POST /worker/claim': { opens: 'worker', status: 409 },
  'GET /worker/tasks/:task/source': { opens: 'worker', status: 409, path: `${TASK}/source` },
  'PUT /worker/tasks/:task/init/:rendition': { opens: 'worker', status: 409, path: `${TASK}/init/1` },
  'PUT /worker/tasks/:task/segments/:rendition/:number': { opens: 'worker', status: 409, path: `${TASK}/segments/1/0` },
  'POST /worker/tasks/:task/segments/:rendition/:number/address': {
    opens: 'worker',
    status: 409,
    path: `${TASK}/segments/1/0/address`,
  },
  'POST /worker/tasks/:task/segments/:rendition/:number/stored': {
    opens: 'worker',
    status: 409,
    path: `${TASK}/segments/1/0/stored`,
  },
  'POST /worker/tasks/:task/heartbeat': { opens: 'worker', status: 409, path: `${TASK}/heartbeat` },
  'POST /worker/tasks/:task/end': { opens: 'worker', status: 409, path: `${TASK}/end` },

  'GET /api/meta/:id': { opens: 'anybody', status: 200 },
  'GET /watch/:id': { opens: 'anybody', status: 200 },
  'GET /oembed': { opens: 'anybody', status: 404, path: '/oembed?url=https://video.example/watch/VIDEO' },
  'OPTIONS /api/uploads': { opens: 'anybody', status: 204 },
  'OPTIONS /api/uploads/:uploadId': { opens: 'anybody', status: 204, path: UPLOAD },
  'OPTIONS /upload': { opens: 'anybody', status: 204 },
  'GET /player': { opens: 'anybody', status: 200 },
  'GET /player/v2': { opens: 'anybody', status: 200 },
  'GET /playerAssets/*': { opens: 'anybody', status: 200, path: '/playerAssets/1.6.10/vdo.js' },
  'GET /v2': { opens: 'anybody', status: 200 },
  'GET /v2/api.js': { opens: 'anybody', status: 200 },
  'GET /v2/player.js': { opens: 'anybody', status: 200 },
  'GET /v2/uploader.js': { opens: 'anybody', status: 200 },
  'GET /v2/reelgate.d.ts': { opens: 'anybody', status: 200 },
  'GET /player/v2/reelgate.d.ts': { opens: 'anybody', status: 200 },
  'GET /player/v2/api.js': { opens: 'anybody', status: 200 },
  'GET /player/v2/player.js': { opens: 'anybody', status: 200 },
  'GET /vdo.js': { opens: 'anybody', status: 200 },
  'GET /player/assets/:file': { opens: 'anybody', status: 404, path: '/player/assets/none.js' },
  // Without what a platform or a page of this server sends; no key changes what they are answered.
  'GET /lti/register/:secret': { opens: 'anybody', status: 400 },
  'GET /lti/:platformId/login': { opens: 'anybody', status: 400 },
  'POST /lti/:platformId/login': { opens: 'anybody', status: 400 },
  'POST /lti/:platformId/launch': { opens: 'anybody', status: 400 },
  'GET /lti/:platformId/keys': { opens: 'anybody', status: 404 },
  'POST /lti/:platformId/choose': { opens: 'anybody', status: 400 },
  'POST /lti/:platformId/answer': { opens: 'anybody', status: 400 },
  'POST /lti/:platformId/upload': { opens: 'anybody', status: 400 },
  'GET /lti/videos/:videoId': { opens: 'anybody', status: 200 },
  'GET /poster/:file': { opens: 'anybody', status: 404, path: `/poster/${'A'.repeat(22)}.jpg` },
  'GET /console': { opens: 'anybody', status: 302 },
  'GET /console/assets/:file': { opens: 'anybody', status: 404, path: '/console/assets/none.js' },
  'GET /console/api/sign-in': { opens: 'anybody', status: 200 },
  'POST /console/api/sign-in': { opens: 'cookie', status: 0, role: 'anybody' },
  'POST /console/api/sign-in/link': { opens: 'cookie', status: 0, role: 'anybody' },
  'DELETE /console/api/sign-in': { opens: 'cookie', status: 0, role: 'anybody' },
  'PUT /console/api/sign-in/password': { opens: 'cookie', status: 0, role: 'viewer' },
  'PUT /console/api/sign-in/email': { opens: 'cookie', status: 0, role: 'viewer', body: { email: null } },
  'POST /console/api/sign-in/passkey/options': { opens: 'cookie', status: 0, role: 'anybody' },
  'POST /console/api/sign-in/passkey': { opens: 'cookie', status: 0, role: 'anybody' },
  'PUT /console/api/sign-in/account': { opens: 'cookie', status: 0, role: 'administrator', body: { account: '0'.repeat(32) } },
  'GET /console/api/sign-ins': { opens: 'cookie', status: 0, role: 'viewer' },
  'DELETE /console/api/sign-ins': { opens: 'cookie', status: 0, role: 'viewer' },
  'DELETE /console/api/sign-ins/:id': { opens: 'cookie', status: 0, role: 'viewer' },
  'POST /console/api/videos/:id/preview': {
    ...{ opens: 'cookie', status: 0, role: 'viewer', path: '/console/api/videos/VIDEO/preview' },
    body: {},
  },
  'GET /console/api/videos/views': { opens: 'cookie', status: 0, role: 'viewer', path: '/console/api/videos/views?ids=VIDEO' },
  'GET /console/api/videos/:id/access': { opens: 'cookie', status: 0, role: 'viewer' },
  'GET /console/api/users': { opens: 'cookie', status: 0, role: 'owner' },
  'POST /console/api/users': { opens: 'cookie', status: 0, role: 'owner', body: { name: 'x', role: 'viewer' } },
  'PUT /console/api/users/:id': { opens: 'cookie', status: 0, role: 'owner', body: { role: 'viewer' } },
  'DELETE /console/api/users/:id': { opens: 'cookie', status: 0, role: 'owner' },
  'POST /console/api/users/:id/link': { opens: 'cookie', status: 0, role: 'owner' },
  'GET /console/api/accounts': { opens: 'cookie', status: 0, role: 'administrator' },
  'POST /console/api/accounts': { opens: 'cookie', status: 0, role: 'administrator', body: { name: 'x' } },
  'PUT /console/api/accounts/:id': { opens: 'cookie', status: 0, role: 'administrator', body: { pageMax: 40 } },
  'GET /console/api/system/checks': { opens: 'cookie', status: 0, role: 'administrator' },
  'GET /console/api/system/servers': { opens: 'cookie', status: 0, role: 'administrator' },
  'PUT /console/api/system/servers/:id': { opens: 'cookie', status: 0, role: 'administrator', body: { drained: 1 } },
  'GET /console/api/system/status': { opens: 'cookie', status: 0, role: 'administrator' },
  'GET /console/api/system/workers': { opens: 'cookie', status: 0, role: 'administrator' },
  'PUT /console/api/system/workers/:name': { opens: 'cookie', status: 0, role: 'administrator', body: { drained: 1 } },
  'DELETE /console/api/system/workers/:name': { opens: 'cookie', status: 0, role: 'administrator' },
  'GET /console/api/passkeys': { opens: 'cookie', status: 0, role: 'viewer' },
  'POST /console/api/passkeys/options': { opens: 'cookie', status: 0, role: 'viewer' },
  'POST /console/api/passkeys': { opens: 'cookie', status: 0, role: 'viewer' },
  'DELETE /console/api/passkeys/:id': { opens: 'cookie', status: 0, role: 'viewer' },

  'GET /': { opens: 'anybody', status: 302 },
  'GET /docs': { opens: 'anybody', status: 302 },
  'GET /docs/api': { opens: 'anybody', status: 200 },
  'GET /docs/api/openapi.json': { opens: 'anybody', status: 200 },
  'GET /healthz': { opens: 'anybody', status: 200 },
  'GET /readyz': { opens: 'anybody', status: 200 },
  // Here without a demo video; with one they answer this machine alone: see test/start/demo.test.ts.
  'GET /demo': { opens: 'anybody', status: 404 },
  'GET /api/site/homepage_video': { opens: 'anybody', status: 404 },
}

/** A HEAD is answered as its GET is. The console has every operation of `/api` once more, for its cookie alone. */
export function ruleOf(route: string): Rule | undefined {
  const asGet = route.replace(/^HEAD /, 'GET ')
  const asOwner = (one: string) => RULES[one.replace(' /console/api/', ' /api/')]
  const original = asOwner(route) ?? asOwner(asGet)
  return RULES[route] ?? RULES[asGet] ?? (original && { ...original, opens: 'cookie' })
}

/** What is asked for at a route: its path, with VIDEO for the id of a video. */
export function pathOf(route: string): string {
  const [, pattern = ''] = route.split(' ')
  const path = ruleOf(route.replace(' /console/api/', ' /api/'))?.path
  if (route.includes(' /console/api/') && path) return `/console${path}`
  return ruleOf(route)?.path ?? pattern.replace(':session', 'A'.repeat(22)).replace(/:\w+/g, 'VIDEO')
}
