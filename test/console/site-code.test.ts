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

  test.each([
    { id: 'php', more: '' },
    { id: 'wordpress', more: 'wordpress' },
  ])(
    'the code for $id writes the player into a page, and says why the video cannot be shown to a wrong secret',
    async ({ id, more }) => {
      const path = await save('video.php', codeFor(id, choices))
      const script = more === '' ? path : await save('page.php', wordPressPage(path))
      const run = async (secret: string) =>
        (await promisify(execFile)('php', [script], { env: { ...process.env, REELGATE_SECRET: secret } })).stdout
      await expectPlays(await run(reelgate.owner.apiKey), choices)
      expect(await run('wrong')).toMatch(/^The video cannot be shown: The API key/)
    },
  )

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

  test.each([
    { userId: 4711, page: /otp=\w{64}/ },
    { userId: 0, page: /^Log in to watch this video\.$/ },
  ])('the code for WordPress sends the user $userId, and asks guests to log in', async ({ userId, page }) => {
    const path = await save('video.php', codeFor('wordpress', USUAL_CHOICES, undefined, DEFAULT))
    const script = await save('page.php', wordPressPage(path, userId))
    const env = { ...process.env, REELGATE_SECRET: reelgate.owner.apiKey }
    expect((await promisify(execFile)('php', [script], { env })).stdout).toMatch(page)
  })
})

test('with a limit of screens the code for WordPress asks guests to log in, who cannot be counted', async () => {
  const otp = { ...USUAL_CHOICES.otp, streamLimit: 2 }
  const path = await save('video.php', codeFor('wordpress', { ...USUAL_CHOICES, otp }))
  const script = await save('page.php', wordPressPage(path, 0))
  const { stdout } = await promisify(execFile)('php', [script], {
    env: { ...process.env, REELGATE_SECRET: reelgate.owner.apiKey },
  })
  expect(stdout).toBe('Log in to watch this video.')
})

function codeFor(
  id: string,
  choices: EmbedChoices,
  testOtp?: { otp: string; playbackInfo: string },
  defaultAnnotate?: unknown,
): string {
  const codes = siteCodes({ serverUrl: reelgate.url, videoId: reelgate.videoId, testOtp, choices, defaultAnnotate })
  return codes.find((one) => one.id === id)?.code ?? ''
}

const IN_GERMANY = '80.128.0.1'

/** The markup is what the owner chose, and its OTP opens the video by the rules that they chose. */
async function expectPlays(html: string, choices: EmbedChoices): Promise<void> {
  const [otp = ''] = /(?<=otp=|otp="|otp: ")\w{64}/.exec(html) ?? []
  const playbackInfo = Buffer.from(JSON.stringify({ videoId: reelgate.videoId })).toString('base64')
  expect(html.trim()).toBe(codeFor('html', choices, { otp, playbackInfo }).trim())
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

/** What WordPress offers to a plugin, as far as this one uses it. */
function wordPressPage(plugin: string, userId = 4711): string {
  return `<?php
function add_shortcode($name, $write) { global $shortcodes; $shortcodes[$name] = $write; }
function wp_json_encode($value) { return json_encode($value); }
function esc_html($text) { return htmlspecialchars($text); }
function get_current_user_id() { return ${userId}; }
function wp_get_current_user() { return (object) ['display_name' => 'Ann', 'user_email' => 'ann@school.example']; }
function is_wp_error($reply) { return $reply === false; }
function wp_remote_retrieve_body($reply) { return $reply; }
function wp_remote_post($url, $options) {
    $headers = array_map(fn ($name, $value) => "$name: $value", array_keys($options['headers']), $options['headers']);
    return file_get_contents($url, false, stream_context_create(['http' => [
        'method' => 'POST', 'header' => implode("\\r\\n", $headers), 'content' => $options['body'], 'ignore_errors' => true,
    ]]));
}
require '${plugin}';
echo $shortcodes['reelgate'](['id' => '${reelgate.videoId}']);
`
}
