import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { transcribe } from '../../src/assets/transcribe.ts'
import { untilFinished } from '../data-folder.ts'
import { openDefaultSandbox, openVideo } from '../encode/videos.ts'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import { audioOf } from '../pipeline/dubs.ts'
import { processesWith } from '../processes.ts'
import * as apart from '../reelgate.ts'
import { sampledTests } from '../sample.ts'
import { makeVideo } from '../videos.ts'
import { startReceivers, webhooksOf } from '../webhooks/receiver.ts'
import { addFile, type FileBody, listFiles, SRT } from './sample-files.ts'
import { DIGITS, makeSpokenVideo, makeTranscriber, newTranscriber, startOf } from './speech/speech.ts'

// Captions that the operator's program makes of speech.

let reelgate: Reelgate & { remove(): Promise<void> }
let receivers: Awaited<ReturnType<typeof startReceivers>>
let transcriber: Awaited<ReturnType<typeof makeTranscriber>>
beforeAll(async () => {
  receivers = await startReceivers()
  transcriber = await makeTranscriber()
  reelgate = await startSharedReelgate({
    video: await makeSpokenVideo(),
    env: { ...transcriber.env, REELGATE_OUTBOUND_ALLOW: receivers.host },
  })
})
afterAll(async () => {
  await reelgate.remove()
  await receivers.close()
  await transcriber.remove()
})

type Of = Pick<Reelgate, 'owner' | 'videoId'>

async function request({ owner, videoId }: Of, language: string): Promise<FileBody> {
  const response = await owner.call('POST', `/api/videos/${videoId}/files`, { body: { type: 'caption', language } })
  expect(response.status).toBe(200)
  return (await response.json()) as FileBody
}

async function getCaption({ owner, videoId }: Of, id: number): Promise<FileBody | undefined> {
  return (await listFiles(owner, videoId)).find((file) => file.id === id)
}

/** The captions once their transcription has ended, one way or the other. */
async function untilEnded(of: Of, id: number): Promise<FileBody | undefined> {
  await expect.poll(async () => (await getCaption(of, id))?.progress).toBeUndefined()
  return getCaption(of, id)
}

async function textOf({ owner, videoId }: Of, id: number): Promise<string> {
  const address = await owner.call('GET', `/api/videos/${videoId}/files/${id}`)
  return (await fetch(((await address.json()) as { redirect: string }).redirect)).text()
}

/** The digits that are in captions within a second of when they are spoken, and how many other lines there are. */
async function recognizedIn(of: Of, id: number, startsAtS = 0) {
  const cues = [...(await textOf(of, id)).matchAll(/^00:00:([\d.]+) --> .*\n(.*)$/gm)]
  const right = DIGITS.filter((digit, index) =>
    cues.some(([, startS, text]) => text === digit && Math.abs(Number(startS) + startsAtS - startOf(index)) <= 1),
  )
  return { right, wrong: cues.length - right.length }
}

async function change({ owner, videoId }: Of, id: number, body: unknown) {
  const response = await owner.call('PUT', `/api/videos/${videoId}/files/${id}`, { body })
  return { status: response.status, file: (await response.json()) as FileBody }
}

/** The names that begin so, of captions in the player of a viewer who comes now. */
async function shownTo({ owner, videoId }: Of, name: string): Promise<string[]> {
  const viewer = reelgate.newViewer()
  await viewer.redeem(await owner.issueOtp(videoId))
  return [...(await viewer.playlist('main')).matchAll(/TYPE=SUBTITLES.*NAME="([^"]*)"/g)]
    .map(([, shown = '']) => shown)
    .filter((shown) => shown.startsWith(name))
}

const { test: sampled, draw } = sampledTests('transcriptions', 2)

test('S-10: of ten spoken digits at least eight are in the captions, each within a second; they are called automatic until they have been checked', async () => {
  const receiver = receivers.newReceiver()
  await webhooksOf(reelgate.owner).create(receiver.url, 'video:transcribed')
  const { id, ...requested } = await request(reelgate, 'EN')
  expect(requested).toMatchObject({ type: 'caption', lang: 'en', automatic: 1, progress: 0, size: 0, enabled: 0 })
  expect((await request(reelgate, 'en')).id).toBe(id)
  expect(await untilEnded(reelgate, id)).toMatchObject({ automatic: 1, enabled: 1, isDownloadable: 1 })

  const { right, wrong } = await recognizedIn(reelgate, id)
  expect(right.length).toBeGreaterThanOrEqual(8)
  expect(wrong).toBeLessThanOrEqual(3)
  const [received] = await receiver.until(1)
  expect(received?.event).toMatchObject({
    event: 'video:transcribed',
    payload: { id: reelgate.videoId, language: 'en', fileId: id },
  })

  expect(await shownTo(reelgate, 'English')).toEqual(['English (automatic)'])
  expect(await change(reelgate, id, { automatic: 0 })).toMatchObject({ status: 200, file: { id, enabled: 1 } })
  expect(await getCaption(reelgate, id)).not.toHaveProperty('automatic')
  expect(await shownTo(reelgate, 'English')).toEqual(['English'])
  const again = await reelgate.owner.call('POST', `/api/videos/${reelgate.videoId}/files`, {
    body: { type: 'caption', language: 'en' },
  })
  expect([again.status, ((await again.json()) as { message: string }).message]).toEqual([
    409,
    'Viewers get captions in this language already. Hide or delete them first.',
  ])
})

test.for([
  ['prints no WebVTT', 'qaa', /^The program that transcribes printed no captions\. /],
  ['prints more than 5 MiB', 'qab', /^The program that transcribes printed more than 5 MiB\.$/],
  ['fails', 'qac', /^The program that transcribes failed\. The log of this server says why/],
] as const)('S-11: a program that %s leaves captions that say so, and nothing for viewers', async ([, language, error]) => {
  const { id } = await request(reelgate, language)
  expect(await untilEnded(reelgate, id)).toMatchObject({
    ...{ automatic: 1, enabled: 0, size: 0, isDownloadable: 0 },
    error: expect.stringMatching(error),
  })
  expect(await shownTo(reelgate, language)).toEqual([])
  if (language === 'qac') expect(reelgate.output()).toContain('no such model')
  expect((await change(reelgate, id, { enabled: 1 })).status).toBe(409)
  expect((await change(reelgate, id, { automatic: 0 })).status).toBe(409)
  // A new request tries it again, in the same place.
  expect(await request(reelgate, language)).toMatchObject({ id, progress: 0 })
  expect((await reelgate.owner.call('DELETE', `/api/videos/${reelgate.videoId}/files/${id}`)).status).toBe(200)
})

test('S-12: the program reaches no network and no file but its own and the system’s programs, and changes none', async ({
  skip,
}) => {
  if (!(await openDefaultSandbox()).bubblewrap) skip('needs bubblewrap')
  const places = [reelgate.dataDir, reelgate.masterKeyFile, '/etc/passwd', '/proc/self', '/root', '/work', import.meta.dirname]
  await writeFile(join(transcriber.folder, 'places'), `${[...places, transcriber.program].join('\n')}\n`)
  const { id } = await request(reelgate, 'qad')
  expect(await untilEnded(reelgate, id)).toMatchObject({ enabled: 1 })
  expect(await textOf(reelgate, id)).toBe(
    `WEBVTT\n\n00:00:00.000 --> 00:00:01.000\nsees ${transcriber.program}\nPermissionError: [Errno 1] Operation not permitted\n`,
  )
})

test('S-13: how far it is can be read while the program runs; deleting its captions ends it', async () => {
  await writeFile(join(transcriber.folder, 'wait'), '')
  const { id } = await request(reelgate, 'qae')
  await expect.poll(async () => (await getCaption(reelgate, id))?.progress).toBe(0.25)
  expect(await processesWith(transcriber.program)).not.toEqual([])
  expect((await reelgate.owner.call('DELETE', `/api/videos/${reelgate.videoId}/files/${id}`)).status).toBe(200)
  await expect.poll(() => processesWith(transcriber.program)).toEqual([])
  expect(await getCaption(reelgate, id)).toBeUndefined()
})

sampled('S-14: after kill -9 of the server the program has ended, and the next start transcribes again, once', async () => {
  const { env, folder, program } = await newTranscriber()
  const server = await apart.startReelgate({ video: await makeSpokenVideo(), env })
  await writeFile(join(folder, 'wait'), '')
  const { id } = await request(server, 'qae')
  await expect.poll(async () => (await getCaption(server, id))?.progress).toBe(0.25)
  await server.kill()
  await expect.poll(() => processesWith(program)).toEqual([])
  await server.restart()
  await expect.poll(async () => (await processesWith(program)).length).toBeGreaterThan(0)
  await rm(join(folder, 'wait'))
  expect(await untilEnded(server, id)).toMatchObject({ automatic: 1, enabled: 1 })
  expect(await textOf(server, id)).toBe('WEBVTT\n\n00:00:00.000 --> 00:00:04.000\nfirst\n')
})

sampled('S-21: of a trimmed video and of an added audio track the captions are at their times', async () => {
  const { owner } = reelgate
  const of = { owner, videoId: await owner.upload('Trimmed', await makeSpokenVideo()) }
  await untilFinished(reelgate, of.videoId)
  expect((await owner.call('PUT', `/api/videos/${of.videoId}/trim`, { body: { startS: 4, endS: 16 } })).status).toBe(200)
  await expect.poll(async () => (await owner.video(of.videoId)).replacement).toBe(undefined)
  const own = await request(of, 'de')
  await untilEnded(of, own.id)
  const spoken = DIGITS.filter((_, index) => startOf(index) > 4)
  expect((await recognizedIn(of, own.id, 4)).right.length).toBeGreaterThanOrEqual(spoken.length - 1)

  const audio = audioOf(of)
  await audio.until(await audio.add(await makeSpokenVideo(), 'language=en'), 'ready')
  const added = await request(of, 'en')
  await untilEnded(of, added.id)
  const inTime = DIGITS.filter((_, index) => startOf(index) < 11)
  expect((await recognizedIn(of, added.id)).right.length).toBeGreaterThanOrEqual(inTime.length - 2)
})

sampled('S-15: a program that does not end is ended after a time that grows with the video', async () => {
  const { folder, program } = await newTranscriber()
  const mark = `${1_000_000 + Math.floor(Math.random() * 1_000_000)}`
  await writeFile(join(folder, 'wait'), mark)
  const { source, plan } = await openVideo(await makeVideo())
  const audioTrack = plan.audioTrack ?? expect.fail('no audio')
  const sandbox = await openDefaultSandbox()
  vi.useFakeTimers({ toFake: ['setTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const ending = expect(
    transcribe({
      ...{ sandbox, source, plan, audioTrack, transcriber: { path: program, files: [folder] }, language: 'qaf', startS: 0 },
      signal: new AbortController().signal,
      onProgress: () => undefined,
    }),
  ).rejects.toMatchObject({ kind: 'invalid', message: 'The program that transcribes did not end within 5 minutes.' })
  await vi.waitUntil(async () => (await processesWith(mark)).length > 0, { timeout: 120_000 })
  vi.advanceTimersByTime((300 + 5 * plan.durationS) * 1000 + 1)
  await ending
  await vi.waitUntil(async () => (await processesWith(mark)).length === 0, { timeout: 120_000 })
})

sampled('S-18: the doctor runs the program in its sandbox, and says what is wrong with it', async () => {
  const { env, folder, program } = await newTranscriber()
  const check = async (more: Record<string, string> = {}) => {
    const { stdout } = await apart.runCli(['doctor', '--json'], { ...reelgate.env, ...env, ...more })
    const checks: { check: string; state: string; says: string }[] = JSON.parse(stdout)
    return checks.find(({ check }) => check === 'transcription')
  }
  expect(await check()).toMatchObject({ state: 'ok', says: `${program} runs in its sandbox.` })
  expect(await check({ REELGATE_TRANSCRIBE_FILES: '' })).toMatchObject({
    state: 'trouble',
    says: expect.stringMatching(/^In its sandbox the program that transcribes ended with exit code \d+: /),
  })
  expect(await check({ REELGATE_TRANSCRIBE_FILES: join(folder, 'none') })).toMatchObject({
    state: 'trouble',
    says: expect.stringContaining('Correct REELGATE_TRANSCRIBE_FILES.'),
  })
  expect(await check({ REELGATE_TRANSCRIBE_COMMAND: '/usr/bin/cat' })).toMatchObject({
    state: 'trouble',
    says: expect.stringMatching(/did not print WebVTT|ended with exit code/),
  })
})

sampled(
  'S-16: a video without audio, a language that is none, and a server without such a program are refused in a sentence',
  async () => {
    const { owner } = reelgate
    const videoId = await owner.upload('Silent', await makeVideo({ audioTrack: false }))
    const silent = { owner, videoId }
    const { id } = await request(silent, 'en')
    expect(await untilEnded(silent, id)).toMatchObject({ error: 'The video has no audio.', enabled: 0 })
    const ask = async (of: Of, body: unknown) => {
      const response = await of.owner.call('POST', `/api/videos/${of.videoId}/files`, { body })
      return [response.status, ((await response.json()) as { message: string }).message]
    }
    expect(await ask(reelgate, { type: 'caption', language: 'English' })).toEqual([
      400,
      'language must be a code such as en, de or pt-BR.',
    ])
    const broken = await owner.credentials('Broken')
    await owner.send(broken, new Blob(['no video']))
    await owner.until(broken.videoId, 'Not a media file')
    expect(await ask({ owner, videoId: broken.videoId }, { type: 'caption', language: 'en' })).toEqual([
      409,
      'The video has no audio that can be read (its status is Not a media file). Upload another file.',
    ])
    const without = await apart.startReelgate({ video: await makeSpokenVideo() })
    expect(await ask(without, { type: 'caption', language: 'en' })).toEqual([
      409,
      'This server has no program that transcribes: its operator sets REELGATE_TRANSCRIBE_COMMAND.',
    ])
  },
)

sampled('S-17: captions that an owner adds while the program works are the ones that viewers get', async () => {
  const { owner } = reelgate
  const videoId = await owner.upload('Own captions', await makeSpokenVideo())
  await owner.until(videoId, 'ready')
  const of = { owner, videoId }
  await writeFile(join(transcriber.folder, 'wait'), '')
  const { id } = await request(of, 'qae')
  await expect.poll(async () => (await getCaption(of, id))?.progress).toBe(0.25)
  expect((await addFile(owner, videoId, SRT, 'qae')).status).toBe(200)
  await rm(join(transcriber.folder, 'wait'))
  expect(await untilEnded(of, id)).toMatchObject({ automatic: 1, enabled: 0, hidden: 1 })
  expect(await shownTo(of, '')).toEqual(['Qae'])
})

sampled(
  'S-19: an account’s new videos with audio are transcribed without being asked for, until it switches that off',
  async () => {
    const owner = await reelgate.newOwner('Transcribes all')
    const set = async (transcribeLanguage: string | null) => {
      const response = await owner.call('PUT', '/api/account', { body: { transcribeLanguage } })
      return { status: response.status, body: await response.json() }
    }
    expect(await (await owner.call('GET', '/api/account')).json()).toMatchObject({ transcribes: true, transcribeLanguage: null })
    expect((await set('no language')).status).toBe(400)
    expect(await set('EN')).toMatchObject({ status: 200, body: { transcribeLanguage: 'en' } })
    const captionsOf = async (videoId: string) => (await listFiles(owner, videoId)).filter(({ type }) => type === 'caption')
    const [spoken, silent] = await Promise.all([
      owner.upload('Spoken', await makeSpokenVideo()),
      owner.upload('Silent', await makeVideo({ audioTrack: false })),
    ])
    await Promise.all([owner.until(spoken, 'ready'), owner.until(silent, 'ready')])
    await expect.poll(async () => (await captionsOf(spoken)).at(0)?.size).toBeGreaterThan(0)
    expect(await captionsOf(spoken)).toMatchObject([{ lang: 'en', automatic: 1, enabled: 1 }])
    expect(await captionsOf(silent)).toEqual([])
    expect(await set('')).toMatchObject({ status: 200, body: { transcribeLanguage: null } })
    const setByCommand = (language: string) => reelgate.cli('account', 'set', 'Transcribes all', '--transcribe', language)
    const language = async () =>
      ((await (await owner.call('GET', '/api/account')).json()) as { transcribeLanguage: unknown }).transcribeLanguage
    expect([(await setByCommand('DE')).code, await language()]).toEqual([0, 'de'])
    expect((await setByCommand('no language')).stderr).toContain('language must be a code such as en')
    expect([(await setByCommand('none')).code, await language()]).toEqual([0, null])
    const later = await owner.upload('Later', await makeSpokenVideo())
    await owner.until(later, 'ready')
    expect(await captionsOf(later)).toEqual([])
  },
)

draw()
