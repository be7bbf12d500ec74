import { openAsBlob } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { dataPaths } from '../../src/config/data-paths.ts'
import type { CommandName } from '../../src/control/commands.ts'
import { sendCommand } from '../../src/control/socket.ts'
import { createOwner, type Owner } from '../client.ts'
import { untilEncoded } from '../data-folder.ts'
import { sendRaw } from '../raw-http.ts'
import { type Reelgate, startSharedReelgate } from '../reelgate.ts'
import { readRows } from '../rows.ts'
import { makeVideo } from '../videos.ts'
import { answerOf, type Viewer } from '../viewer.ts'

let reelgate: Reelgate & { remove(): Promise<void> }
beforeAll(async () => {
  reelgate = await startSharedReelgate({ video: await makeVideo() })
})
afterAll(() => reelgate.remove())

const command = (name: CommandName, args: unknown) => sendCommand(dataPaths(reelgate.dataDir).controlSocket, name, args)

async function newAccount(name: string): Promise<{ accountId: string; owner: Owner }> {
  const made = (await command('account create', { name, mayUpload: true, mayImport: true })) as Record<string, string>
  return { accountId: made.accountId ?? '', owner: createOwner(reelgate.url, made.apiKey ?? '') }
}

const v2 = (owner: Owner, path: string, fields = '') =>
  sendRaw(
    reelgate.url,
    `POST ${path}`,
    ['Content-Type: application/x-www-form-urlencoded'],
    `clientSecretKey=${owner.apiKey}${fields}`,
  )

describe('K16: an account that is disabled', () => {
  async function newPlayingViewer(): Promise<Viewer> {
    const viewer = reelgate.newViewer()
    await viewer.redeem(await reelgate.owner.issueOtp(reelgate.videoId))
    expect((await viewer.key(0)).status).toBe(200)
    return viewer
  }

  test('O07: is refused at both interfaces immediately; its OTPs open nothing; its viewers get no key, and see why, also after a restart', async () => {
    const { owner, videoId } = reelgate
    const ofVideo = 'select account_id as id from video where id = ?'
    const [{ id: accountId = '' } = {}] = readRows<{ id: string }>(reelgate, ofVideo, videoId)
    const viewer = await newPlayingViewer()
    const otp = await owner.issueOtp(videoId)
    await command('account disable', { account: accountId })

    const current = await owner.call('GET', '/api/videos')
    expect([current.status, await current.json()]).toMatchObject([403, { message: expect.stringContaining('disabled') }])
    const earlier = await v2(owner, '/v2/videos')
    expect([earlier.status, JSON.parse(earlier.text)]).toEqual([403, { error: expect.stringContaining('disabled') }])

    const ended = [403, 'session-ended', 'account-disabled']
    expect(await answerOf(await viewer.key(0))).toEqual(ended)
    expect(await answerOf(await viewer.call('playlist', 'main'))).toEqual(ended)
    expect(await reelgate.newViewer().redeem(otp)).toMatchObject({ status: 403, body: { code: 'otp-unknown' } })
    await reelgate.kill()
    await reelgate.restart()
    await viewer.openPage()
    expect(await answerOf(await viewer.key(0))).toEqual(ended)

    await command('account enable', { account: accountId })
    expect((await owner.list()).count).toBe(1)
    expect((await reelgate.newViewer().redeem(otp)).playing).toBe(true)
    expect(await answerOf(await viewer.key(0))).toEqual(ended)
  })

  test('takes nothing from others: their viewers watch on', async () => {
    const viewer = await newPlayingViewer()
    const another = await newAccount('Never mind')
    await command('account disable', { account: another.accountId })
    expect((await viewer.key(0)).status).toBe(200)
  })

  test('can send no file with a form that it got before', async () => {
    const { accountId, owner } = await newAccount('Who is late')
    const issued = await owner.credentials('Too late')
    await command('account disable', { account: accountId })
    const refused = await owner.send(issued, new Blob(['no video']))
    expect([refused.status, await refused.text()]).toEqual([403, expect.stringContaining('disabled')])
    await command('account enable', { account: accountId })
    expect((await owner.send(issued, new Blob(['no video']))).status).toBe(201)
  })

  test('has what it had sent encoded to the end', async () => {
    const { accountId, owner } = await newAccount('Who has sent')
    const sent = await owner.credentials('On its way')
    expect((await owner.send(sent, await openAsBlob(await makeVideo({ seconds: 15, rate: 10 })))).status).toBe(201)
    await command('account disable', { account: accountId })
    await untilEncoded(reelgate, sent.videoId)
    expect(readRows(reelgate, 'select status from video where id = ?', sent.videoId)).toEqual([{ status: 'ready' }])
  })
})

test('uploads that are switched off are refused at both interfaces from the next request on, and may be switched on', async () => {
  const { accountId, owner } = await newAccount('Una')
  const statuses = async () => [
    (await owner.call('PUT', '/api/videos?title=x')).status,
    (await v2(owner, '/v2/uploadPolicy', '&title=x')).status,
  ]
  expect(await statuses()).toEqual([200, 200])
  await command('account set', { account: accountId, mayUpload: false })
  expect(await statuses()).toEqual([403, 403])
  await command('account set', { account: accountId, mayUpload: true })
  expect(await statuses()).toEqual([200, 200])
})

test('imports that are switched off are refused at both interfaces from the next request on, and may be switched on', async () => {
  const { accountId, owner } = await newAccount('Una')
  // An address that is refused as it stands, so that nothing is fetched.
  const statuses = async () => [
    (await owner.call('PUT', '/api/videos/importUrl', { body: { url: 'http://127.0.0.1/' } })).status,
    (await v2(owner, '/v2/importUrl?url=http://127.0.0.1/')).status,
  ]
  expect(await statuses()).toEqual([400, 400])
  await command('account set', { account: accountId, mayImport: false })
  expect(await statuses()).toEqual([403, 403])
  await command('account set', { account: accountId, mayImport: true })
  expect(await statuses()).toEqual([400, 400])
})
