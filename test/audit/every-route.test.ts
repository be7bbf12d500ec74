import { once } from 'node:events'
import { openAsBlob } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { dataPaths } from '../../src/config/data-paths.ts'
import { COMMANDS, type CommandName } from '../../src/control/commands.ts'
import { SERVER_COMMANDS, type ServerCommandName } from '../../src/control/server-commands.ts'
import { sendCommand } from '../../src/control/socket.ts'
import { addFile, makeImage, SRT } from '../assets/sample-files.ts'
import { createOwner } from '../client.ts'
import { createAuthenticator } from '../console/authenticator.ts'
import { createPerson, makeLink, signIn } from '../console/person.ts'
import { untilFinished } from '../data-folder.ts'
import { startReelgate } from '../in-process.ts'
import { audioOf } from '../pipeline/dubs.ts'
import { changeRows, readRows } from '../rows.ts'
import { makeSound, makeVideo } from '../videos.ts'

// Whatever changes something is on record or has its reason here why not: by the server's own list of operations, and by the
// commands, so that a new one fails here until it is one or the other.

const IS_A_QUESTION = 'asks, and changes nothing'
const MAKES_A_VIDEO = 'no management: it makes a video, which says itself when it came'
const IS_AN_OTP = 'no management: OTPs are many, and each is a row of its own'

const UNRECORDED: Readonly<Record<string, string>> = {
  'webhook resume': 'changes something in a restored copy alone: test/webhooks/restored-copy.test.ts',
  'media begin': IS_A_QUESTION,
  'media next': IS_A_QUESTION,
  'media moved': IS_A_QUESTION,
  'media checked': 'has damaged segments encoded again, which the log says: test/start/doctor-media.test.ts',
  'media repair': 'has damaged segments encoded again, which the log says: test/backup/damaged-files.test.ts',
  'media repairing': IS_A_QUESTION,
  'backup damaged': 'notes a damaged file, which the log says: test/backup/damaged-files.test.ts',
  'POST /console/api/videos/{id}/preview': IS_AN_OTP,
  'PUT /api/videos': MAKES_A_VIDEO,
  'PUT /api/videos/importUrl': MAKES_A_VIDEO,
  'POST /api/imports': MAKES_A_VIDEO,
  'POST /upload': MAKES_A_VIDEO,
  'POST /api/uploads': MAKES_A_VIDEO,
  'PATCH /api/uploads/{uploadId}': MAKES_A_VIDEO,
  'DELETE /api/uploads/{uploadId}': 'recorded as the deletion of its video: test/ingest/resumable-upload.test.ts',
  'POST /v2/importUrl': MAKES_A_VIDEO,
  'POST /v2/uploadPolicy': MAKES_A_VIDEO,
  'POST /api/videos/{id}/otp': IS_AN_OTP,
  'PUT /api/alerts/seen': 'no management: it notes that alerts were looked at',
  'POST /v2/otp': IS_AN_OTP,
  'POST /api/videos/folders/search': IS_A_QUESTION,
  'POST /api/account/video-usage': IS_A_QUESTION,
  'POST /v2/videos': IS_A_QUESTION,
  'POST /v2/files': IS_A_QUESTION,
  'POST /v2/tags/search': IS_A_QUESTION,
  'DELETE /console/api/sign-in': 'no management: it ends a sign-in of its own',
  'POST /console/api/sign-in/passkey/options': IS_A_QUESTION,
  'POST /console/api/passkeys/options': IS_A_QUESTION,
  'console users': IS_A_QUESTION,
  'account list': IS_A_QUESTION,
  'key list': IS_A_QUESTION,
  'webhook list': IS_A_QUESTION,
  'worker list': IS_A_QUESTION,
  'storage move': 'recorded where it begins: test/storage/move-files.test.ts',
  'storage status': IS_A_QUESTION,
  'ban list': IS_A_QUESTION,
  'session list': IS_A_QUESTION,
  'key media-secret': IS_A_QUESTION,
  'alert list': IS_A_QUESTION,
  'alert test': 'sends the operator an e-mail, and changes nothing',
  audit: IS_A_QUESTION,
  'master key id': IS_A_QUESTION,
  'try begin': MAKES_A_VIDEO,
  'move begin': IS_A_QUESTION,
  'move progress': IS_A_QUESTION,
  'move list': IS_A_QUESTION,
  'move files done': 'no management: it notes how far a move is',
  'try progress': IS_A_QUESTION,
  'try link': IS_AN_OTP,
}

/** Where webhooks are sent: without a listener. */
const UNUSED_ADDRESS = '127.0.0.1:9'

const ORIGIN = `http://${UNUSED_ADDRESS}`
const MOVING = {
  ...{
    origin: ORIGIN,
    originId: 'd'.repeat(32),
    url: `${ORIGIN}/a.mp4`,
    fileName: 'a.mp4',
    title: 'From there',
    description: '',
  },
  ...{ uploadTimeS: 1, public: 1, folders: [], tags: [], otpDefaults: {} },
}

type Made = { accountId: string; keyId: string; apiKey: string }

/** What is called, what the record says of it, and the call, which tells to what it was done. */
const OFFICE = { name: 'office' }

type Step = [operation: string, kind: string, act: () => Promise<string>]

/** A server that has these files. @returns its address */
async function serveFiles(files: Readonly<Record<string, Buffer>>): Promise<string> {
  const server = createServer(({ url = '' }, response) => response.end(files[url])).listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

test('L06: every operation and every command that manages something is in the audit record, with who did it', async () => {
  const there = await serveFiles({
    '/captions.srt': Buffer.from(SRT),
    '/poster.jpg': await makeImage('64x64'),
    '/audio.m4a': await readFile(await makeSound(1)),
  })
  const reelgate = await startReelgate({
    env: {
      REELGATE_TRANSCRIBE_COMMAND: '/bin/true',
      REELGATE_LIMITS: '{"otp":{"ip":1000,"key":1,"account":1000}}',
      REELGATE_DEMO: 'on',
      REELGATE_OUTBOUND_ALLOW: `${UNUSED_ADDRESS},${new URL(there).host}`,
    },
  })
  const command = <Answer = Made>(name: CommandName | ServerCommandName, args: object) =>
    sendCommand(dataPaths(reelgate.dataDir).controlSocket, name, args) as Promise<Answer>
  const una = await command('account create', { name: 'Una', mayUpload: true, mayImport: true })
  const [ofUna] = await command<{ id: string }[]>('key list', { account: 'Una' })
  const owner = createOwner(reelgate.url, una.apiKey)
  const videoId = await owner.readyVideo(await makeVideo({ seconds: 1 }))
  const begun = await command<{ videoId: string }>('try begin', { account: 'Una', title: 'Not for long' })
  await untilFinished(reelgate, videoId)
  const dub = await makeSound(1)
  let dubId = 0

  async function ask<Answer = unknown>(method: string, path: string, body?: unknown): Promise<Answer> {
    const answer = await owner.call(method, path, { body })
    expect([method, path, answer.status]).toEqual([method, path, 200])
    return (await answer.json()) as Answer
  }
  const v2 = async (path: string, fields: Record<string, string> = {}) => {
    const body = new URLSearchParams({ clientSecretKey: una.apiKey, ...fields })
    expect([path, (await fetch(`${reelgate.url}/v2${path}`, { method: 'POST', body })).status]).toEqual([path, 200])
  }
  const makeWebhook = () => ask<{ uuid: string }>('POST', '/api/hooks', { value: `http://${UNUSED_ADDRESS}/`, status: 0 })
  const learning = { name: 'Moodle', issuer: `http://${UNUSED_ADDRESS}` }
  const onPlatform = (act: (path: string, id: string) => Promise<unknown>) => async () => {
    const { id } = await ask<{ id: string }>('POST', '/api/lti/platforms', learning)
    await act(`/api/lti/platforms/${id}`, id)
    return id
  }
  const newKey = (name: string) => command('key create', { account: 'Una', name, permissions: ['otpCreator'] })
  const newToken = () => ask<{ id: string }>('POST', '/api/upload-tokens', { origin: 'https://school.example' })
  const newAccount = (name: string) => command('account create', { name, mayUpload: true, mayImport: true })
  async function lifted(lift: (subject: string) => Promise<unknown>): Promise<string> {
    const { keyId, apiKey } = await newKey('too much')
    const flooding = createOwner(reelgate.url, apiKey)
    await Promise.all([1, 2, 3, 4, 5].map(() => flooding.call('POST', `/api/videos/${videoId}/otp`, { body: {} })))
    await lift(keyId)
    return keyId
  }
  async function stopped(stop: (session: string) => Promise<unknown>): Promise<string> {
    const viewer = reelgate.newViewer()
    const { apiKey } = await newKey('a key that may issue another OTP in this minute')
    await viewer.redeem(await createOwner(reelgate.url, apiKey).issueOtp(videoId))
    await stop(viewer.state.session)
    return viewer.state.session
  }
  const tagging = { videos: [videoId], tags: ['a'] }
  const to = (subject: string, act: () => Promise<unknown>) => async () => {
    await act()
    return subject
  }
  const newFile = async (bytes: string | Buffer, language?: string) => {
    const [added] = [await (await addFile(owner, videoId, bytes, language)).json()].flat() as { id: number }[]
    return String(added?.id)
  }
  const newestFile = () => String(readRows(reelgate, 'select max(id) as id from file')[0]?.id)
  const moved = { accountId: una.accountId, videoId }
  const folder = await ask<{ id: string }>('POST', '/api/videos/folders', { name: 'New' })
  const folderPath = `/api/videos/folders/${folder.id}`
  const caption = await newFile(SRT, 'en')
  const { uuid } = await makeWebhook()
  const webhookPath = `/api/hooks/${uuid}`
  await owner.delete([(await owner.credentials('Reported as failed')).videoId])
  const key = await newKey('old')
  const [demo] = readRows<{ id: string }>(reelgate, "select value as id from setting where name = 'demo-video'")
  const [brief, another] = [(await owner.credentials('Brief')).videoId, (await owner.credentials('Another')).videoId]

  const person = await signIn(reelgate)
  const { user } = await person.get<{ user: { id: string } }>('GET', '/sign-in')
  const password = 'a lamp in the projection room'
  const asPerson = (method: string, path: string, body: object, by = person) => to(user.id, () => by.get(method, path, body))

  /** The same person where a passkey is possible. */
  const atName = createPerson(reelgate.url.replace('127.0.0.1', 'localhost'))
  const authenticator = createAuthenticator(atName.url)
  async function addPasskey() {
    await atName.get('POST', '/sign-in', { name: 'owner', password })
    const { challenge } = await atName.get<{ challenge: string }>('POST', '/passkeys/options')
    await atName.get('POST', '/passkeys', authenticator.create(challenge))
  }
  async function usePasskey() {
    const { challenge } = await atName.get<{ challenge: string }>('POST', '/sign-in/passkey/options')
    await atName.get('POST', '/sign-in/passkey', authenticator.get(challenge))
  }

  async function trimmed() {
    while ((await owner.video(videoId)).replacement !== undefined) await pause(50)
  }

  const rotated = await newKey('to be rotated over the API')
  let invitedId = ''
  const onOffice = (method: 'PUT' | 'DELETE', body?: object) => person.get(method, '/system/workers/office', body)
  async function onInvited(method: string, path: string, body?: object): Promise<string> {
    await person.get(method, `/users/${invitedId}${path}`, body)
    return invitedId
  }

  const steps: Step[] = [
    ['POST /api/videos/{id}', 'video:edited', to(videoId, () => ask('POST', `/api/videos/${videoId}`, { title: 'New' }))],
    [
      'POST /api/videos/move',
      'video:edited',
      to(videoId, () => ask('POST', '/api/videos/move', { videos: [videoId], folderId: folder.id })),
    ],
    [
      'POST /api/videos/otp-defaults',
      'otp-defaults:changed',
      to(videoId, () => ask('POST', '/api/videos/otp-defaults', { videos: [videoId], options: {} })),
    ],
    [
      'POST /api/videos/{id}/retry',
      'video:retried',
      async () => {
        const upload = await owner.credentials('No video')
        await owner.send(upload, new Blob(['no video']))
        while ((await owner.video(upload.videoId)).status !== 'Not a media file') await pause(50)
        await ask('POST', `/api/videos/${upload.videoId}/retry`)
        return upload.videoId
      },
    ],
    ['PUT /api/videos/{id}', 'video:replacement-requested', to(videoId, () => ask('PUT', `/api/videos/${videoId}`))],
    [
      'DELETE /api/videos/{id}/replacement',
      'video:replacement-cancelled',
      to(videoId, async () => {
        await owner.send(await ask('PUT', `/api/videos/${videoId}`), new Blob(['no video']))
        await ask('DELETE', `/api/videos/${videoId}/replacement`)
      }),
    ],
    [
      'POST /api/videos/{id}/undo',
      'video:replacement-undone',
      to(videoId, async () => {
        await owner.send(await ask('PUT', `/api/videos/${videoId}`), await openAsBlob(await makeVideo({ seconds: 2 })))
        while ((await owner.video(videoId)).kept === undefined) await pause(50)
        await ask('POST', `/api/videos/${videoId}/undo`)
      }),
    ],
    [
      'PUT /api/videos/{id}/trim',
      'video:trimmed',
      to(videoId, async () => {
        await ask('PUT', `/api/videos/${videoId}/trim`, { endS: 0.6 })
        await trimmed()
      }),
    ],
    ['DELETE /api/videos/{id}/kept', 'video:kept-deleted', to(videoId, () => ask('DELETE', `/api/videos/${videoId}/kept`))],
    ['POST /api/videos/tags', 'tags:added', to(videoId, () => ask('POST', '/api/videos/tags', tagging))],
    ['PUT /api/videos/tags', 'tags:replaced', to(videoId, () => ask('PUT', '/api/videos/tags', tagging))],
    ['DELETE /api/videos/tags', 'tags:removed', to(videoId, () => ask('DELETE', '/api/videos/tags', tagging))],
    ['POST /v2/tags/add', 'tags:added', to(videoId, () => v2('/tags/add', { videos: videoId, tags: 'b' }))],
    ['POST /v2/tags/remove', 'tags:removed', to(videoId, () => v2('/tags/remove', { videos: videoId, tags: 'b' }))],
    [
      'POST /api/videos/folders',
      'folder:created',
      async () => (await ask<{ id: string }>('POST', '/api/videos/folders', { name: 'A' })).id,
    ],
    ['PUT /api/videos/folders/{id}', 'folder:changed', to(folder.id, () => ask('PUT', folderPath, { name: 'Old' }))],
    ['DELETE /api/videos/folders/{id}', 'folder:deleted', to(folder.id, () => ask('DELETE', folderPath))],
    ['PUT /api/otp-defaults', 'otp-defaults:changed', to(una.accountId, () => ask('PUT', '/api/otp-defaults', { ttl: 60 }))],
    [
      'PUT /api/videos/{id}/otp-defaults',
      'otp-defaults:changed',
      to(videoId, () => ask('PUT', `/api/videos/${videoId}/otp-defaults`, { ttl: 60 })),
    ],
    [
      'PUT /api/videos/{id}/audio/{trackId}',
      'audio-track:changed',
      to(videoId, () => ask('PUT', `/api/videos/${videoId}/audio/2`, { name: 'A' })),
    ],
    [
      'POST /api/videos/{id}/audio',
      'audio-track:added',
      to(videoId, async () => {
        dubId = await audioOf({ owner, videoId }).add(dub)
      }),
    ],
    [
      'DELETE /api/videos/{id}/audio/{trackId}',
      'audio-track:removed',
      to(videoId, () => ask('DELETE', `/api/videos/${videoId}/audio/${dubId}`)),
    ],
    [
      'PUT /api/videos/{id}/chapters',
      'chapters:changed',
      to(videoId, () => ask('PUT', `/api/videos/${videoId}/chapters`, { chapters: [] })),
    ],
    ['POST /api/lti/links', 'platform:link-made', to(una.accountId, () => ask('POST', '/api/lti/links'))],
    [
      'POST /api/lti/platforms',
      'platform:added',
      async () => (await ask<{ id: string }>('POST', '/api/lti/platforms', learning)).id,
    ],
    ['PUT /api/lti/platforms/{platformId}', 'platform:changed', onPlatform((path) => ask('PUT', path, { name: 'School' }))],
    [
      'PUT /api/lti/platforms/{platformId}/courses',
      'platform:changed',
      onPlatform(async (path, id) => {
        changeRows(
          reelgate,
          `insert into lti_course (platform_id, course_id, account_id, title, last_launch_at_s) values (?, '42', ?, '', 1)`,
          ...[id, una.accountId],
        )
        await ask('PUT', `${path}/courses`, { courseId: '42', folderId: null })
      }),
    ],
    ['DELETE /api/lti/platforms/{platformId}', 'platform:removed', onPlatform((path) => ask('DELETE', path))],
    ['POST /api/videos/{id}/files', 'file:added', () => newFile(SRT, 'de')],
    [
      'POST /api/videos/{id}/files',
      'mp4:requested',
      to(videoId, () => ask('POST', `/api/videos/${videoId}/files`, { type: 'mp4' })),
    ],
    [
      'POST /api/videos/{id}/files',
      'transcription:requested',
      to(videoId, () => ask('POST', `/api/videos/${videoId}/files`, { type: 'caption', language: 'fr' })),
    ],
    [
      'PUT /api/videos/{id}/files/{fileId}',
      'caption:hidden',
      to(caption, () => ask('PUT', `/api/videos/${videoId}/files/${caption}`, { enabled: 0 })),
    ],
    [
      'PUT /api/videos/{id}/files/{fileId}',
      'caption:shown',
      to(caption, () => ask('PUT', `/api/videos/${videoId}/files/${caption}`, { enabled: 1 })),
    ],
    [
      'DELETE /api/videos/{id}/files/{fileId}',
      'file:deleted',
      to(caption, () => ask('DELETE', `/api/videos/${videoId}/files/${caption}`)),
    ],
    ['POST /api/hooks', 'hook:created', async () => (await makeWebhook()).uuid],
    ['PUT /api/hooks/{uuid}', 'hook:enabled', to(uuid, () => ask('PUT', webhookPath, { status: 1 }))],
    ['POST /api/hooks/{uuid}/secret', 'hook:rotated', to(uuid, () => ask('POST', `${webhookPath}/secret`))],
    [
      'POST /api/hooks/{uuid}/deliveries/replay',
      'hook:replayed',
      to(uuid, () => ask('POST', `${webhookPath}/deliveries/replay`)),
    ],
    [
      'POST /api/hooks/{uuid}/deliveries/{id}/replay',
      'hook:replayed',
      to(uuid, () => ask('POST', `${webhookPath}/deliveries/1/replay`)),
    ],
    ['POST /api/hooks/{uuid}/test', 'hook:tested', to(uuid, () => ask('POST', `${webhookPath}/test`))],
    ['webhook test', 'hook:tested', to(uuid, () => command('webhook test', { webhookId: uuid }))],
    ['PUT /api/hooks/{uuid}', 'hook:disabled', to(uuid, () => ask('PUT', webhookPath, { status: 0 }))],
    ['DELETE /api/hooks', 'hook:deleted', to(uuid, () => ask('DELETE', '/api/hooks', { uuid }))],
    ['DELETE /api/bans', 'ban:lifted', async () => lifted((subject) => ask('DELETE', `/api/bans?subject=${subject}`))],
    ['ban lift', 'ban:lifted', async () => lifted((subject) => command('ban lift', { subject }))],
    [
      'DELETE /api/sessions',
      'session:stopped',
      async () => stopped((session) => ask('DELETE', `/api/sessions?session=${session}`)),
    ],
    [
      'session stop',
      'session:stopped',
      async () => stopped((sessionId) => command('session stop', { account: 'Una', target: { sessionId } })),
    ],
    ['DELETE /api/viewers/{userId}', 'viewer:erased', to('viewer', () => ask('DELETE', '/api/viewers/ann'))],
    ['viewer erase', 'viewer:erased', to('viewer', () => command('viewer erase', { account: 'Una', userId: 'ann' }))],
    ['key create', 'key:created', async () => (await newKey('new')).keyId],
    ['key rotate', 'key:rotated', to(key.keyId, () => command('key rotate', { keyId: key.keyId, overlapS: 60 }))],
    [
      'POST /console/api/sign-in/link',
      'user:signed-in',
      asPerson('POST', '/sign-in/link', { token: await makeLink(reelgate) }, createPerson(reelgate.url)),
    ],
    ['console link', 'user:link-made', to(user.id, () => makeLink(reelgate))],
    ['PUT /console/api/sign-in/password', 'user:password-set', asPerson('PUT', '/sign-in/password', { password })],
    ['PUT /console/api/sign-in/email', 'user:changed', asPerson('PUT', '/sign-in/email', { email: 'ann@example.org' })],
    ['POST /console/api/sign-in', 'user:signed-in', asPerson('POST', '/sign-in', { name: 'owner', password })],
    ['POST /console/api/passkeys', 'passkey:added', to(user.id, addPasskey)],
    ['POST /console/api/sign-in/passkey', 'user:signed-in', to(user.id, usePasskey)],
    [
      'DELETE /console/api/passkeys/{id}',
      'passkey:removed',
      to(user.id, () => atName.get('DELETE', `/passkeys/${authenticator.id}`)),
    ],
    [
      'POST /console/api/users',
      'user:link-made',
      async () => {
        invitedId = (await person.get<{ id: string }>('POST', '/users', { name: 'Ben', role: 'viewer' })).id
        return invitedId
      },
    ],
    ['PUT /console/api/users/{id}', 'user:changed', () => onInvited('PUT', '', { role: 'owner' })],
    ['POST /console/api/users/{id}/link', 'user:link-made', () => onInvited('POST', '/link')],
    ['DELETE /console/api/users/{id}', 'user:deleted', () => onInvited('DELETE', '')],
    ['DELETE /console/api/sign-ins', 'sign-in:ended', to(user.id, () => person.get('DELETE', '/sign-ins'))],
    [
      'DELETE /console/api/sign-ins/{id}',
      'sign-in:ended',
      to(user.id, async () => {
        await signIn(reelgate)
        const { rows } = await person.get<{ rows: { id: string; current: boolean }[] }>('GET', '/sign-ins')
        await person.get('DELETE', `/sign-ins/${rows.find(({ current }) => !current)?.id}`)
      }),
    ],
    [
      'POST /console/api/accounts',
      'account:created',
      async () => (await person.get<{ id: string }>('POST', '/accounts', { name: 'Tre' })).id,
    ],
    [
      'PUT /console/api/accounts/{id}',
      'account:changed',
      to(una.accountId, () => person.get('PUT', `/accounts/${una.accountId}`, { pageMax: 50 })),
    ],
    [
      'PUT /console/api/system/servers/{id}',
      'server:changed',
      to('5'.repeat(32), async () => {
        changeRows(
          reelgate,
          "insert into server (id, run, name, version, state, started_at_s, beat_at_s) values (?, 'a', 'b', '0.3.0', 'serving', 1, 1)",
          '5'.repeat(32),
        )
        await person.get('PUT', `/system/servers/${'5'.repeat(32)}`, { drained: 1 })
      }),
    ],
    ['PUT /console/api/sign-in/account', 'account:looked-at', asPerson('PUT', '/sign-in/account', { account: una.accountId })],
    [
      'POST /api/keys',
      'key:created',
      async () => (await ask<{ id: string }>('POST', '/api/keys', { name: 'new', permissions: ['viewer'] })).id,
    ],
    ['POST /api/keys/{id}/rotate', 'key:rotated', to(rotated.keyId, () => ask('POST', `/api/keys/${rotated.keyId}/rotate`))],
    ['DELETE /api/keys/{id}', 'key:revoked', to(rotated.keyId, () => ask('DELETE', `/api/keys/${rotated.keyId}`))],
    ['POST /api/upload-tokens', 'upload-token:created', async () => (await newToken()).id],
    [
      'DELETE /api/upload-tokens/{tokenId}',
      'upload-token:revoked',
      async () => {
        const { id } = await newToken()
        await ask('DELETE', `/api/upload-tokens/${id}`)
        return id
      },
    ],
    ['PUT /api/account', 'account:changed', to(una.accountId, () => ask('PUT', '/api/account', { deletesToTrash: 0 }))],
    ['backup made', 'backup:made', to('today', () => command('backup made', { name: 'today', atS: 1, isGood: true }))],
    [
      'key rotate-master',
      'master-key:rotated',
      async () => (await command<{ masterKeyId: string }>('key rotate-master', {})).masterKeyId,
    ],
    ['worker add', 'worker:added', async () => (await command<{ id: string }>('worker add', { ...OFFICE, trusted: false })).id],
    ...(
      [
        ['worker drain', 'worker:changed', () => command('worker drain', OFFICE)],
        ['worker resume', 'worker:changed', () => command('worker resume', OFFICE)],
        ['PUT /console/api/system/workers/{name}', 'worker:changed', () => onOffice('PUT', { drained: 1 })],
        ['worker remove', 'worker:removed', () => command('worker remove', OFFICE)],
        ['DELETE /console/api/system/workers/{name}', 'worker:removed', () => onOffice('DELETE')],
      ] as const
    ).map(
      ([name, kind, act]): Step => [
        name,
        kind,
        async () => {
          const readWorker = () => readRows(reelgate, 'select id from worker')[0]
          if (!readWorker()) await command('worker add', { ...OFFICE, trusted: false })
          const worker = readWorker()
          await act()
          return String(worker?.id)
        },
      ],
    ),
    ['key revoke', 'key:revoked', to(key.keyId, () => command('key revoke', { keyId: key.keyId }))],
    [
      'try withdraw',
      'video:deleted',
      to(begun.videoId, () => command('try withdraw', { accountId: una.accountId, videoId: begun.videoId })),
    ],
    [
      'move account',
      'otp-defaults:changed',
      async () => {
        const { accountId } = await newAccount('Moved')
        await command('move account', { accountId, origin: ORIGIN, folders: [], otpDefaults: { ttl: 60 } })
        return accountId
      },
    ],
    [
      'move video',
      'video:moved-in',
      async () => (await command<{ videoId: string }>('move video', { accountId: una.accountId, ...MOVING })).videoId,
    ],
    [
      'move caption',
      'file:added',
      async () => {
        await command('move caption', { ...moved, language: 'fr', startS: 0, url: `${there}/captions.srt` })
        return newestFile()
      },
    ],
    [
      'move poster',
      'file:added',
      async () => {
        await command('move poster', { ...moved, url: `${there}/poster.jpg` })
        return newestFile()
      },
    ],
    [
      'move audio',
      'audio-track:added',
      to(videoId, async () => {
        const audio = { url: `${there}/audio.m4a`, fileName: 'audio.m4a', language: 'fr', startS: 0, isDefault: false }
        await command('move audio', { ...moved, ...audio })
      }),
    ],
    [
      'move audio names',
      'audio-track:changed',
      to(videoId, () => command('move audio names', { ...moved, tracks: [{ name: 'Moved', isDefault: true }] })),
    ],
    [
      'move trim',
      'video:trimmed',
      to(videoId, async () => {
        await command('move trim', { ...moved, startS: 0, endS: 0.5 })
        await trimmed()
      }),
    ],
    [
      'move chapters',
      'chapters:changed',
      to(videoId, () => command('move chapters', { ...moved, language: null, chapters: [] })),
    ],
    ['demo remove', 'video:deleted', to(demo?.id ?? '', () => command('demo remove', {}))],
    [
      'POST /api/videos/{id}/encode',
      'video:part-encoded',
      to(videoId, () => ask('POST', `/api/videos/${videoId}/encode?positionS=0`)),
    ],
    ['POST /api/videos/{id}/encode', 'video:reencrypted', to(videoId, () => ask('POST', `/api/videos/${videoId}/encode`))],
    [
      'video reencrypt',
      'video:reencrypted',
      to(videoId, async () => {
        await expect.poll(() => readRows(reelgate, 'select 1 from generation where finished_at_s is null')).toEqual([])
        await command('video reencrypt', { videoId })
      }),
    ],
    ['DELETE /api/videos', 'video:trashed', to(videoId, () => ask('DELETE', `/api/videos?trash=1&videos=${videoId}`))],
    ['POST /api/trash/restore', 'video:restored', to(videoId, () => ask('POST', '/api/trash/restore', { videos: [videoId] }))],
    ['DELETE /api/videos', 'video:trashed', to(videoId, () => ask('DELETE', `/api/videos?trash=1&videos=${videoId}`))],
    ['DELETE /api/trash', 'video:deleted', to(videoId, () => ask('DELETE', '/api/trash', { videos: [videoId] }))],
    ['DELETE /api/videos', 'video:deleted', to(another, () => ask('DELETE', `/api/videos?videos=${another}`))],
    ['POST /v2/video', 'video:deleted', to(brief, () => v2(`/video?id=${brief}`, { action: 'delete' }))],
    ['account create', 'account:created', async () => (await newAccount('Due')).accountId],
    ['account set', 'account:changed', to(una.accountId, () => command('account set', { account: 'Una', pageMax: 100 }))],
    ['account disable', 'account:disabled', to(una.accountId, () => command('account disable', { account: 'Una' }))],
    ['account enable', 'account:enabled', to(una.accountId, () => command('account enable', { account: 'Una' }))],
  ]
  for (const [operation, kind, act] of steps) {
    const subject = await act()
    const [newest] = readRows(
      reelgate,
      `select kind, subject, actor from audit_event where actor <> 'server' order by id desc limit 1`,
    )
    const caller = operation.includes(' /console/') ? `user:${user.id}` : ofUna?.id
    const actor = operation.includes('/') ? caller : 'command-line'
    expect([operation, newest]).toEqual([operation, { kind, subject, actor }])
  }

  const document = (await (await fetch(`${reelgate.url}/docs/api/openapi.json`)).json()) as { paths: Record<string, object> }
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  )
  const changing = operations.filter((operation) => !operation.startsWith('GET '))
  const known = [...changing, ...Object.keys(COMMANDS), ...Object.keys(SERVER_COMMANDS)].sort()
  expect([...new Set([...steps.map(([operation]) => operation), ...Object.keys(UNRECORDED)])].sort()).toEqual(known)
})
