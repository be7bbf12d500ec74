import { spawn } from 'node:child_process'
import { mkdir, mkdtemp, rm, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { listFiles, untilFinished } from '../data-folder.ts'
import { startReelgate, startSharedReelgate } from '../in-process.ts'
import { runCli, startReelgate as startProcess } from '../reelgate.ts'
import { readRows } from '../rows.ts'
import { sampleOf } from '../sample.ts'
import { makeVideo } from '../videos.ts'

let reelgate: Awaited<ReturnType<typeof startSharedReelgate>>
let folder: string
beforeAll(async () => {
  reelgate = await startSharedReelgate({ env: { REELGATE_UPLOAD_MAX_BYTES: '50000000' } })
  folder = await mkdtemp(join(tmpdir(), 'reelgate-try-'))
  await mkdir(join(folder, 'videos'))
  await writeFile(join(folder, 'empty.mp4'), '')
})
afterAll(async () => {
  await reelgate.remove()
  await rm(folder, { recursive: true, force: true })
})

test('try uploads a video, shows progress, prints a link that opens once, and ends when the video is completely encoded', async () => {
  const { code, stdout, stderr } = await reelgate.cli('try', await makeVideo({ seconds: 12 }))
  expect(code).toBe(0)
  expect(stderr).toMatch(/^100 % {2}uploading, (.+) of \1$/m)
  expect(stderr).toMatch(/^ +\d+ % {2}encoding, chunk \d+ of \d+/m)
  expect(stderr).toMatch(/Encoded\.\n$/)
  expect(stderr).not.toContain('\r') // no terminal: no bar that takes itself back

  const [link = ''] = /http:\S+/.exec(stdout) ?? []
  const { otp, videoId } = linkOf(link)
  await untilFinished(reelgate, videoId)
  expect((await reelgate.newViewer().redeem(otp, { videoId })).playing).toBe(true)
  expect((await reelgate.newViewer().redeem(otp, { videoId })).playing).toBe(false)
})

test('with --json it prints only one value, and adds the video to the named account', async () => {
  const name = 'A second school'
  await reelgate.newOwner(name)
  const { code, stdout, stderr } = await reelgate.cli('try', await makeVideo(), '--json', '--account', name)
  expect({ code, stderr, lines: stdout.split('\n').length }).toEqual({ code: 0, stderr: '', lines: 2 })
  const { accountId, videoId, watchUrl } = JSON.parse(stdout)
  expect(linkOf(watchUrl).videoId).toBe(videoId)
  expect(readRows(reelgate, 'select name from account where id = ?', accountId)).toEqual([{ name }])
  expect(readRows(reelgate, 'select account_id from video where id = ?', videoId)).toEqual([{ account_id: accountId }])
})

test('without --account the video is added to the first account that may upload, under the name of its file', async () => {
  const video = join(folder, 'Lesson 1 – “Licht”.mp4')
  await writeFile(video, 'This is no video.')
  const before = (await reelgate.owner.list()).count
  expect(await reelgate.cli('try', video, '--json')).toEqual({
    code: 1,
    stdout: '',
    stderr: expect.stringMatching(/^The file is not a video, or it is damaged beyond reading\.\n$/),
  })
  const { count, rows } = await reelgate.owner.list()
  expect({ count, title: rows[0]?.title, status: rows[0]?.status }).toEqual({
    count: before + 1,
    title: 'Lesson 1 – “Licht”',
    status: 'Not a media file',
  })
})

const NO_VIDEOS = [
  { what: 'a file that is not there', name: 'nothing.mp4', words: /nothing\.mp4 does not exist: name a video/ },
  { what: 'a folder', name: 'videos', words: /videos is a folder: name one video in it/ },
  { what: 'an empty file', name: 'empty.mp4', words: /empty\.mp4 is empty/ },
  { what: 'a device', name: '/dev/null', words: /\/dev\/null is not a file/ },
]
test.each(sampleOf('files that are no videos', NO_VIDEOS, 1))(
  '$what is refused before the server hears of it',
  async ({ name, words }) => {
    const videos = readRows(reelgate, 'select count(*) as count from video')
    const ended = await reelgate.cli('try', resolve(folder, name))
    expect(ended).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(words) })
    expect(ended.stderr).toMatch(/^[^\n]*\.\n$/)
    expect(readRows(reelgate, 'select count(*) as count from video')).toEqual(videos)
  },
)

test('a rejection by the server is printed, and no video is left', async () => {
  const video = join(folder, 'large.mp4')
  await writeFile(video, '')
  await truncate(video, 60_000_000)
  const videos = readRows(reelgate, 'select id from video where deleted_at_s is null')
  expect(await reelgate.cli('try', video, '--json')).toEqual({
    code: 1,
    stdout: '',
    stderr: 'The file is larger than 50000000 bytes, the largest this server accepts.\n',
  })
  expect(await reelgate.cli('try', video, '--account', 'Stranger')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('There is no account "Stranger".'),
  })
  expect(readRows(reelgate, 'select id from video where deleted_at_s is null')).toEqual(videos)
})

test('without a server it says how to start one, and creates nothing', async () => {
  const env = { REELGATE_DATA: join(folder, 'elsewhere') }
  const words = /^No server runs on .*elsewhere\. Start it with npm start in another terminal.*\.\n$/
  expect(await runCli(['try', await makeVideo()], env)).toEqual({ code: 1, stdout: '', stderr: expect.stringMatching(words) })
  await expect(listFiles({ dataDir: env.REELGATE_DATA, masterKeyFile: '' })).rejects.toThrow('ENOENT')
  const stopped = await startProcess()
  await stopped.kill()
  expect(await stopped.cli('try', await makeVideo())).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/No server runs on/),
  })
})

test.each(sampleOf('signals', ['SIGINT', 'SIGTERM', 'SIGHUP'] as const, 1))(
  '%s during an upload leaves no video and no file',
  async (signal) => {
    const server = await startReelgate()
    const video = join(folder, `${signal}.mp4`)
    await writeFile(video, '')
    await truncate(video, 1_500_000_000) // holes: no room of the disk, and not sent in an instant
    onTestFinished(() => rm(video))
    const child = spawn(process.execPath, [join(import.meta.dirname, '../../bin/main.js'), 'try', video], {
      env: { PATH: process.env.PATH ?? '', REELGATE_DATA: server.dataDir },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const sending = Promise.withResolvers<void>()
    let said = ''
    child.stderr.on('data', (text: Buffer) => {
      said += text
      if (said.includes('1.5 GB\n')) sending.resolve()
    })
    const ended = new Promise((resolve) => child.once('exit', resolve))
    await sending.promise
    await expect.poll(async () => (await listFiles(server, 'tmp')).length).toBe(1)
    child.kill(signal)
    expect(await ended).toBe(1)
    expect(said).toMatch(/Stopped: the video was removed\.\n$/)
    expect((await server.owner.list()).count).toBe(0)
    const left = async () => [...(await listFiles(server, 'tmp')), ...(await listFiles(server, 'sources'))]
    await expect.poll(left).toEqual([])
  },
)

test('a reader that ends early, as head does, causes no error', async () => {
  const child = spawn(process.execPath, [join(import.meta.dirname, '../../bin/main.js'), 'try', await makeVideo()], {
    env: { PATH: process.env.PATH ?? '', REELGATE_DATA: reelgate.dataDir },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  child.stdout.destroy()
  const [code, said] = await Promise.all([new Promise((resolve) => child.once('exit', resolve)), text(child.stderr)])
  expect(code).toBe(0)
  expect(said).toMatch(/Encoded\.\n$/)
})

function linkOf(url: string): { otp: string; videoId: string } {
  const { origin, pathname, searchParams } = new URL(url)
  expect({ origin, pathname }).toEqual({ origin: reelgate.url, pathname: '/player/' })
  const { videoId } = JSON.parse(Buffer.from(searchParams.get('playbackInfo') ?? '', 'base64').toString())
  return { otp: searchParams.get('otp') ?? '', videoId }
}
