import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { type EmbedChoices, siteCodes, USUAL_CHOICES } from '../../web/console/video/site-code.ts'
import { findFreePort } from '../free-port.ts'
import { startSharedReelgate } from '../in-process.ts'
import { readRows } from '../rows.ts'
import { sampleOf } from '../sample.ts'
import { makeVideo } from '../videos.ts'
import { runScene, type Scene } from '../wordpress/scene.ts'

// The code that the console gives for each language, run as it is copied: only the port of its page is another.

let reelgate: Awaited<ReturnType<typeof startSharedReelgate>>
beforeAll(async () => {
  reelgate = await startSharedReelgate({ video: await makeVideo(), env: { REELGATE_TRUSTED_PROXIES: '127.0.0.1' } })
})
afterAll(() => reelgate?.remove())

/** What an owner may choose, with every character that one of the languages reads otherwise. */
const ALL_CHOICES = {
  player: {
    ...USUAL_CHOICES.player,
    ...{
      autoplay: true,
      loop: true,
      showsTitle: false,
      startAtS: 1,
      primaryColor: '#0b5cad',
      fontFamily: `"A's" \`\${x}\` \\n {a}, serif`,
    },
  },
  otp: {
    ttlS: 60,
    site: '^(school|.*\\.school)\\.example$',
    locations: { mode: 'except', countries: ['DE', 'FR'] },
    watermark: `{id} {name}'s \`\${x}\` \\ "q"`,
    identifies: true,
    streamLimit: 1,
  },
} satisfies Partial<EmbedChoices>

const CHOICES: { what: string; choices: EmbedChoices }[] = [
  { what: 'the usual choices', choices: USUAL_CHOICES },
  { what: 'every choice, in a frame', choices: { way: 'iframe', ...ALL_CHOICES } },
  { what: 'every choice, as an element', choices: { way: 'element', ...ALL_CHOICES } },
  { what: 'every choice, by the script', choices: { way: 'script', ...ALL_CHOICES } },
]

describe.each([...CHOICES.slice(0, 1), ...sampleOf('choices of embedding', CHOICES.slice(1), 1)])('with $what', ({ choices }) => {
  test.each([
    { id: 'node', file: 'page.mjs', command: process.execPath },
    { id: 'python', file: 'page.py', command: 'python3' },
  ])(
    'the code for $id serves a page with the player, and says why the video cannot be shown to a wrong secret',
    async ({ id, file, command }) => {
      const port = await findFreePort()
      const path = await save(file, codeFor(id, choices).replace('3000', String(port)))
      for (const secret of [reelgate.owner.apiKey, 'wrong']) {
        const page = await startPage(command, path, secret)
        const html = await untilAnswered(`http://127.0.0.1:${port}/`)
        if (secret === 'wrong') expect(html).toMatch(/^The video cannot be shown: The API key/)
        else await expectPlays(html, choices)
        await page.stop()
      }
    },
  )

  test('the code for php writes the player into a page, and says why the video cannot be shown to a wrong secret', async () => {
    const path = await save('video.php', codeFor('php', choices))
    const run = async (secret: string) =>
      (await promisify(execFile)('php', [path], { env: { ...process.env, REELGATE_SECRET: secret } })).stdout
    await expectPlays(await run(reelgate.owner.apiKey), choices)
    expect(await run('wrong')).toMatch(/^The video cannot be shown: The API key/)
  })

  test('the plug-in of WordPress takes the shortcode, and asks for what was chosen', async () => {
    const { player, body } = await openInWordPress(choices, 7)
    const { autoplay, loop } = choices.player
    expect(player).toEqual({ ...(autoplay && { autoplay: 'true' }), ...(loop && { loop: 'true' }) })
    await expectRules(String(body.otp), choices)
  })

  test('the code for curl answers with what the code of the player needs', async () => {
    const { stdout } = await promisify(execFile)('sh', ['-c', codeFor('curl', choices).replace('curl ', 'curl -sS ')], {
      env: { ...process.env, REELGATE_SECRET: reelgate.owner.apiKey },
    })
    await expectPlays(codeFor('html', choices, JSON.parse(stdout)), choices)
  })
})

describe('O18: where the default watermark shows the viewer', () => {
  const DEFAULT = [{ type: 'rtext', text: '{name}, {email}, {id}' }]
  beforeAll(async () => {
    await reelgate.owner.call('PUT', '/api/otp-defaults', { body: { annotate: DEFAULT } })
  })
  afterAll(async () => {
    await reelgate.owner.call('PUT', '/api/otp-defaults', { body: {} })
  })

  test('the code for curl sends who watches, so that the video plays with the watermark', async () => {
    const curl = codeFor('curl', USUAL_CHOICES, undefined, DEFAULT).replace('curl ', 'curl -sS ')
    const env = { ...process.env, REELGATE_SECRET: reelgate.owner.apiKey }
    const { otp }: { otp: string } = JSON.parse((await promisify(execFile)('sh', ['-c', curl], { env })).stdout)
    const { status, body } = await redeemFrom('10.0.0.1', otp)
    expect([status, body.marks]).toEqual([200, [expect.objectContaining({ text: 'Ann Example, ann@example.org, reader-4711' })]])
  })

  test('the code for WordPress asks guests to sign in', async () => {
    expect((await openInWordPress(USUAL_CHOICES, 7, DEFAULT)).body.otp).toHaveLength(64)
    expect((await openInWordPress(USUAL_CHOICES, 0, DEFAULT)).body.message).toBe('Sign in to watch this video.')
  })
})

test('with a limit of screens the code for WordPress asks guests to sign in, who cannot be counted', async () => {
  const otp = { ...USUAL_CHOICES.otp, streamLimit: 2 }
  const { body } = await openInWordPress({ ...USUAL_CHOICES, otp }, 0)
  expect(body.message).toBe('Sign in to watch this video.')
})

function codeFor(
  id: string,
  choices: EmbedChoices,
  testOtp?: { otp: string; playbackInfo: string },
  defaultAnnotate?: unknown,
): string {
  return findCode(id, choices, testOtp, defaultAnnotate)?.code ?? ''
}

function findCode(id: string, choices: EmbedChoices, testOtp?: { otp: string; playbackInfo: string }, defaultAnnotate?: unknown) {
  const codes = siteCodes({ serverUrl: reelgate.url, videoId: reelgate.videoId, testOtp, choices, defaultAnnotate })
  return codes.find((one) => one.id === id)
}

const IN_GERMANY = '80.128.0.1'

/** The markup is what the owner chose, and its OTP opens the video by the rules that they chose. */
async function expectPlays(html: string, choices: EmbedChoices): Promise<void> {
  const [otp = ''] = /(?<=otp=|otp="|otp: ")\w{64}/.exec(html) ?? []
  const playbackInfo = Buffer.from(JSON.stringify({ videoId: reelgate.videoId })).toString('base64')
  expect(html.trim()).toBe(codeFor('html', choices, { otp, playbackInfo }).trim())
  await expectRules(otp, choices)
}

async function expectRules(otp: string, choices: EmbedChoices): Promise<void> {
  const { locations, streamLimit } = choices.otp
  if (locations.countries.includes('DE')) expect(await redeemFrom(IN_GERMANY, otp)).toMatchObject({ status: 403 })
  const { status, body } = await redeemFrom('10.0.0.1', otp)
  expect(status).toBe(200)
  const sessions = readRows(reelgate, 'select stream_limit from playback_session where id = ?', String(body.session))
  expect(sessions).toEqual([{ stream_limit: streamLimit === '' ? null : streamLimit }])
}

async function redeemFrom(address: string, otp: string) {
  const viewer = reelgate.newViewer()
  await viewer.openPage(`?otp=${otp}`, { 'Sec-Fetch-Dest': 'iframe', Referer: 'https://www.school.example/lesson' })
  viewer.state.headers['X-Forwarded-For'] = address
  return viewer.redeem(otp)
}

async function save(name: string, code: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'reelgate-code-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const path = join(folder, name)
  await writeFile(path, code)
  return path
}

async function startPage(command: string, path: string, secret: string) {
  const child: ChildProcess = spawn(command, [path], { env: { ...process.env, REELGATE_SECRET: secret }, stdio: 'ignore' })
  const ended = new Promise((resolve) => child.once('exit', resolve))
  const stop = async () => {
    child.kill()
    await ended
  }
  onTestFinished(stop)
  return { stop }
}

/** The page's process takes a moment to listen. */
async function untilAnswered(url: string): Promise<string> {
  let html = ''
  await expect
    .poll(() =>
      fetch(url).then(
        async (response) => (html = await response.text()),
        () => '',
      ),
    )
    .not.toBe('')
  return html
}

/** A page with the shortcode, and the filters, opened by this user: 0 is a guest. @returns the options of its player, and the answer */
async function openInWordPress(choices: EmbedChoices, signedInAs: number, defaultAnnotate?: unknown) {
  const { code, more } = findCode('wordpress', choices, undefined, defaultAnnotate) ?? { code: '' }
  const scene: Scene = {
    options: { reelgate: { server: reelgate.url, secret: reelgate.owner.apiKey }, reelgate_tag_secret: 'a'.repeat(64) },
    users: { 7: { display_name: 'Ann', user_email: 'ann@school.example', user_login: 'ann' } },
    ...{ posts: { 5: 'publish' }, post: 5, signedInAs, functions: more?.code ?? '' },
  }
  const [page] = await runScene(scene, [{ do: 'shortcode', text: code }])
  const [, data = ''] = /data-reelgate="([^"]*)"/.exec(String(page?.value)) ?? []
  const { tag, player } = JSON.parse(data.replaceAll('&quot;', '"'))
  const [answer] = await runScene(scene, [{ do: 'ajax', call: 'reelgate_otp', fields: tag }])
  if (!answer) throw new Error('The plug-in has not answered')
  const { body } = answer.value as { body: { otp?: string; message?: string } }
  return { player, body }
}
