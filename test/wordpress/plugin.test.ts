import { execFile } from 'node:child_process'
import { globSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import { changeRows } from '../rows.ts'
import { makeVideo } from '../videos.ts'
import { haveWatched } from '../viewers/watched.ts'
import { type Done, PLUGIN, runScene, type Scene, type Step } from './scene.ts'

// The WordPress plug-in's own code, with a stand-in for WordPress and a real server. In WordPress itself: wordpress.test.ts.

const run = promisify(execFile)
const ROOT = join(import.meta.dirname, '../..')
const DAY_S = 86_400
const NOW_S = Math.floor(Date.UTC(2026, 10, 27, 12) / 1000)
const ANN = { display_name: 'Ann {ip} "Lee"', user_email: 'ann@example.org', user_login: 'ann{ip}', may: ['read'] }
const BOB = {
  display_name: 'Bob',
  user_email: 'bob@example.org',
  user_login: 'bob',
  may: ['upload_files', 'manage_options', 'edit_posts'],
}

let reelgate: Reelgate & { remove(): Promise<void> }
let videoId: string
let scene: Scene
beforeAll(async () => {
  reelgate = await startSharedReelgate({ video: await makeVideo() })
  videoId = reelgate.videoId
  scene = {
    options: { reelgate: { server: reelgate.url, secret: reelgate.owner.apiKey } },
    users: { 7: ANN, 8: BOB },
    posts: { 5: 'publish', 6: 'draft' },
    post: 5,
    nowS: NOW_S,
  }
})
afterAll(() => reelgate?.remove())

type Tag = Record<'video' | 'post' | 'user' | 'day' | 'plain' | 'tag', string>
type Answer = { status: number; body: { otp?: string; code?: string; message?: string; completed?: boolean; signedIn?: boolean } }

const shortcode = (text = `[reelgate id="${videoId}"]`, rest: Partial<Step> = {}): Step => ({ do: 'shortcode', text, ...rest })
const ask = (fields: object, rest: Partial<Step> = {}, call = 'reelgate_otp'): Step => ({ do: 'ajax', call, fields, ...rest })
const play = async (steps: readonly Step[], changes: Scene = {}) => runScene({ ...scene, ...changes }, steps)
const answers = async (steps: readonly Step[], changes: Scene = {}) => (await play(steps, changes)) as Done<Answer>[]

/** What a page carries of a video. */
function dataIn(html: unknown): { tag: Tag; player: Record<string, string> } {
  const [, data = ''] = /data-reelgate="([^"]*)"/.exec(String(html)) ?? []
  return JSON.parse(data.replaceAll('&quot;', '"').replaceAll('&#039;', "'").replaceAll('&amp;', '&'))
}

/** The tag of a page as it was rendered. */
async function tagOf(changes: Scene = {}, text?: string): Promise<Tag> {
  const [page] = await play([shortcode(text)], { ...SECRET, ...changes })
  return dataIn(page?.value).tag
}

/** One secret for all scenes of a test: as the option row keeps it. */
const SECRET: Scene = {}
beforeAll(() => {
  SECRET.options = { ...scene.options, reelgate_tag_secret: '5'.repeat(64) }
})

/** What the plug-in has sent to the server for an OTP. */
const otpRequest = ({ done }: Done<unknown>) => done.find(([name]) => name === 'request')?.[1][2] as Record<string, unknown>

test('every file of the plug-in is PHP that parses, begins inside WordPress alone, and uses nothing newer than 7.4', async () => {
  const files = globSync(`${PLUGIN}/**/*.php`)
  expect(files.length).toBeGreaterThan(8)
  const { stdout } = await run('php', ['-r', CHECK_FILES, ...files])
  expect(JSON.parse(stdout)).toEqual([])
})

/** Words and signs of PHP 8: `match`, `enum`, `readonly`, `?->`, attributes, `mixed`, union types and functions of 8.0 or later. */
const CHECK_FILES = `
$problems = array();
foreach (array_slice($argv, 1) as $file) {
  $code = file_get_contents($file);
  if (!preg_match("/defined\\\\( '(ABSPATH|WP_UNINSTALL_PLUGIN)' \\\\) \\\\|\\\\| exit;/", $code)) $problems[] = "$file: opens outside WordPress";
  try { $tokens = PhpToken::tokenize($code, TOKEN_PARSE); } catch (ParseError $error) { $problems[] = "$file: {$error->getMessage()}"; continue; }
  foreach ($tokens as $token) {
    $isNew = $token->is(array(T_MATCH, T_ENUM, T_READONLY, T_NULLSAFE_OBJECT_OPERATOR, T_ATTRIBUTE)) || preg_match('/^(str_contains|str_starts_with|str_ends_with|array_is_list|mixed|never)$/', $token->text);
    if ($isNew) $problems[] = "$file:{$token->line}: {$token->text}";
  }
}
echo json_encode($problems);
`

test('the zip is one folder with every file of the plug-in, and says the version of this server', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'reelgate-plugin-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const { stderr } = await run(process.execPath, [join(ROOT, 'scripts/package.js'), 'wordpress', '--to', folder])
  const zip = stderr.trim().split('\n').at(-1) ?? ''
  await run('python3', ['-m', 'zipfile', '-e', zip, folder])
  const files = globSync('**/*.*', { cwd: PLUGIN })
  for (const file of files)
    expect([file, await readFile(join(folder, 'reelgate', file), 'utf8')]).toEqual([
      file,
      await readFile(join(PLUGIN, file), 'utf8'),
    ])
  const { version } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as { version: string }
  const released = version.replace(/-.*/, '')
  expect(await readFile(join(PLUGIN, 'reelgate.php'), 'utf8')).toMatch(
    new RegExp(`Version: ${released}\\n[^]*VERSION = '${released}'`),
  )
  expect(await readFile(join(PLUGIN, 'readme.txt'), 'utf8')).toContain(`Stable tag: ${released}`)
})

describe('the tag of a rendered lesson', () => {
  test('a visitor to whom a lesson is shown gets an OTP for its video, which plays', async () => {
    const tag = await tagOf()
    const [first] = await answers([ask(tag)], SECRET)
    expect(first?.value).toMatchObject({ status: 200, body: { signedIn: false } })
    expect((await reelgate.newViewer().redeem(first?.value.body.otp ?? '')).playing).toBe(true)
  })

  test('V08: without a tag, or with one of another video, post, user, day or watermark, there is no OTP', async () => {
    const tag = await tagOf()
    const { videoId: other } = await reelgate.owner.credentials('Not bought')
    const forged = [
      ...[
        {},
        { ...tag, tag: '' },
        { ...tag, tag: tag.tag.replace(/^./, (digit) => (digit === '0' ? '1' : '0')) },
        { ...tag, tag: undefined },
      ],
      ...[
        { ...tag, video: other },
        { ...tag, post: '6' },
        { ...tag, post: '0' },
        { ...tag, user: '7' },
        { ...tag, plain: '1' },
      ],
      ...[
        { ...tag, day: String(Number(tag.day) - 1) },
        { ...tag, day: String(Number(tag.day) + 1) },
        { ...tag, day: `0${tag.day}` },
      ],
      // What moves a border between two fields, or is of another type.
      ...[
        { ...tag, post: '', user: `5${tag.user}` },
        { ...tag, post: `5\n0`, user: '' },
        { ...tag, video: [tag.video] },
        { ...tag, tag: [tag.tag] },
      ],
      ...[
        { ...tag, video: tag.video.toUpperCase() },
        { ...tag, post: '5\n' },
        { ...tag, day: '1e9' },
      ],
    ]
    const results = await answers(
      forged.map((fields) => ask(fields)),
      SECRET,
    )
    for (const [at, { value, done }] of results.entries())
      expect([forged[at], value.status, value.body.code, done.some(([name]) => name === 'request')]).toEqual([
        forged[at],
        403,
        'refused',
        false,
      ])
  })

  test('V09: a user’s tag lives two days, that of a page for everyone seven; then the visitor is asked to reload', async () => {
    const forUser = await tagOf({ signedInAs: 7 })
    const forAll = await tagOf()
    const at = (days: number, tag: Tag, signedInAs: number) => ask(tag, { with: { nowS: NOW_S + days * DAY_S, signedInAs } })
    const results = await answers(
      [at(2, forUser, 7), at(3, forUser, 7), at(7, forAll, 0), at(8, forAll, 0), at(-1, forAll, 0)],
      SECRET,
    )
    expect(results.map(({ value }) => value.body.code ?? value.status)).toEqual([200, 'reload', 200, 'reload', 'reload'])
  })

  test('V10: a page that was rendered for one user opens nothing for another, nor for a visitor who has signed out', async () => {
    const tag = await tagOf({ signedInAs: 7 })
    const as = (signedInAs: number) => ask(tag, { with: { signedInAs } })
    const results = await answers([as(7), as(8), as(0)], SECRET)
    expect(results.map(({ value }) => value.body.code ?? value.status)).toEqual([200, 'reload', 'reload'])
  })

  test('V11: a signed-in visitor of a page that a cache has stored for everyone keeps their name in the watermark', async () => {
    const [result] = await play([ask(await tagOf(), { with: { signedInAs: 7 } })], SECRET)
    expect(result && otpRequest(result)).toEqual({
      ttl: 300,
      annotate: [expect.objectContaining({ type: 'rtext', text: '{name}' })],
      userId: expect.stringMatching(/^wp-[0-9a-f]{12}-7$/),
      viewer: { name: 'Ann {ip} "Lee"', email: 'ann@example.org' },
    })
    expect(result?.value).toMatchObject({ status: 200, body: { signedIn: true } })
  })

  test('V12: a post that has become a draft, or was deleted, opens nothing any more, but for those who may read it', async () => {
    const tag = await tagOf()
    const inState = (posts: Record<string, string>, signedInAs = 0) => ask(tag, { with: { posts, signedInAs } })
    const results = await answers([inState({ 5: 'draft' }), inState({}), inState({ 5: 'private' }, 9)], {
      ...SECRET,
      users: { 9: { ...BOB, may: ['read_post'] } },
    })
    expect(results.map(({ value }) => value.body.code ?? value.status)).toEqual(['refused', 'refused', 200])
  })

  test('V13: a course plug-in that says no in reelgate_may_play has the last word', async () => {
    const [result] = await answers([ask(await tagOf())], { ...SECRET, filters: { reelgate_may_play: false } })
    expect(result?.value).toMatchObject({ status: 403, body: { code: 'refused' } })
  })

  test('V14: another site’s script gets no OTP with a visitor’s cookies, and a GET gets none', async () => {
    const tag = await tagOf()
    const from = (server: object) => ask(tag, { server: { REQUEST_METHOD: 'POST', REMOTE_ADDR: '192.0.2.7', ...server } })
    const results = await answers(
      [
        from({ HTTP_ORIGIN: 'https://evil.example' }),
        from({ HTTP_ORIGIN: 'https://school.example.evil.example' }),
        from({ HTTP_ORIGIN: 'null' }),
        from({ HTTP_SEC_FETCH_SITE: 'cross-site', HTTP_ORIGIN: 'https://school.example' }),
        from({ HTTP_SEC_FETCH_SITE: 'same-site' }),
        from({ REQUEST_METHOD: 'GET' }),
        from({ HTTP_ORIGIN: 'https://school.example', HTTP_SEC_FETCH_SITE: 'same-origin' }),
      ],
      SECRET,
    )
    expect(results.map(({ value }) => value.body.code ?? value.status)).toEqual([...Array(6).fill('foreign-site'), 200])
  })

  test('V15: one visitor cannot use up what the server gives the site', async () => {
    const tag = await tagOf()
    const from = (address: string) => ask(tag, { server: { REMOTE_ADDR: address } })
    const steps = [
      ...Array.from({ length: 4 }, () => from('192.0.2.7')),
      from('192.0.2.8'),
      ask(tag, { with: { nowS: NOW_S + 60 } }),
    ]
    const results = await answers(steps, { ...SECRET, filters: { reelgate_otps_a_minute: 3 } })
    expect(results.map(({ value }) => value.status)).toEqual([200, 200, 200, 429, 200, 200])
  })

  test('the secret of tags is made once, by the first page', async () => {
    const [first, second] = await play([shortcode(), shortcode()])
    expect(dataIn(first?.value).tag).toEqual(dataIn(second?.value).tag)
    expect(dataIn(first?.value).tag.tag).not.toBe((await tagOf()).tag)
  })
})

describe('what is shown', () => {
  test('posts of the hosted service play as they stand: its shortcode, its block, its older attributes', async () => {
    const [full, auto, quiet, block, older] = await play([
      shortcode(
        `[vdo id="${videoId}" width="640px" height="360" autoplay="true" loop="1" controls="native" cc_language="de" litemode="true" vdo_theme="x" player_tech="y" version="1.0"]`,
      ),
      shortcode(`[vdo id="${videoId}" width="800" height="auto" chapters="Intro, 0; Part two, 700"]`),
      shortcode(`[vdo id="${videoId}" no_annotate="true"]`),
      {
        do: 'block',
        name: 'vdo/block',
        attributes: { id: videoId, width: '640', height: 'auto', vdo_theme: 'x', vdo_version: 'y' },
      },
      { do: 'block', name: 'vdo/block', attributes: {}, content: `<p>[vdo id="${videoId}"]</p>` },
    ])
    expect(dataIn(full?.value).player).toEqual({
      autoplay: 'true',
      loop: 'true',
      litemode: 'true',
      controls: 'native',
      ccLanguage: 'de',
    })
    expect(full?.value).toContain('max-width:640px;height:360px')
    expect(auto?.value).toContain('max-width:800px;aspect-ratio:16/9')
    expect([auto, quiet, block, older].map((page) => dataIn(page?.value).tag.plain)).toEqual(['0', '1', '0', '0'])
  })

  test('a title finds the first hit of its search, which is kept', async () => {
    await reelgate.owner.call('POST', `/api/videos/${videoId}`, { body: { title: 'Light & shadow' } })
    const [first, second, none] = await play([
      shortcode('[vdo title="Light & shadow"]'),
      shortcode('[vdo title="Light & shadow"]'),
      shortcode('[vdo title="No such title"]'),
    ])
    expect([first, second].map((page) => dataIn(page?.value).tag.video)).toEqual([videoId, videoId])
    expect([first, second].map((page) => page?.done.length)).toEqual([1, 0])
    expect(none?.value).toBe('')
  })

  test('the other plug-in keeps its shortcode and block while it is active, unless the owner says otherwise', async () => {
    const steps = [
      shortcode(`[vdo id="${videoId}"]`),
      { do: 'block', name: 'vdo/block', attributes: { id: videoId } },
      shortcode(),
    ]
    const left = await play(steps, { otherPlugin: true })
    expect(left.map(({ value }) => value === 'the other plug-in')).toEqual([true, true, false])
    const options = { reelgate: { ...(scene.options?.reelgate as object), take_over: true } }
    const taken = await play(steps, { otherPlugin: true, options })
    expect(taken.map(({ value }) => dataIn(value).tag.video)).toEqual([videoId, videoId, videoId])
  })

  test('V16: what an author writes into a shortcode ends up as numbers, known words, or not at all', async () => {
    const [page, ...wrong] = await play([
      shortcode(
        `[reelgate id="${videoId}" width="1;position:fixed" height="360px;background:url(x)" cc_language="de'><script>" controls="<b>"]`,
      ),
      ...['', 'x', `${'0'.repeat(31)}'`, `${'0'.repeat(32)}"><script>`].map((id) =>
        shortcode(`[reelgate id="${id.replaceAll('"', '&quot;')}"]`),
      ),
    ])
    expect(page?.value).toContain('style="position:relative;max-width:1280px;aspect-ratio:16/9;')
    expect(dataIn(page?.value).player).toEqual({})
    expect(wrong.map(({ value }) => value)).toEqual(['', '', '', ''])
    const [note] = await play([shortcode('[reelgate id="x"]', { with: { signedInAs: 8 } })])
    expect(note?.value).toContain('no valid id')
  })

  test('V17: the API secret is in nothing that a browser gets: pages, scripts, answers, errors, settings', async () => {
    const steps = [
      ...[
        shortcode(),
        ask(await tagOf()),
        ask({}),
        { do: 'rest', path: '/videos', with: { signedInAs: 8 }, query: { search: '', page: 1 } },
      ],
      ...[
        { do: 'rest', path: '/upload-token' },
        { do: 'ajax', call: 'reelgate_test', fields: { server: reelgate.url, secret: '' }, with: { hasNonce: true } },
      ],
    ]
    const results = await play(steps, SECRET)
    const wrong = await play(steps, {
      ...SECRET,
      options: { ...SECRET.options, reelgate: { server: 'http://127.0.0.1:9', secret: reelgate.owner.apiKey } },
    })
    expect(JSON.stringify([...results, ...wrong].map(({ value }) => value))).not.toContain(reelgate.owner.apiKey)
    // With another address typed in, the saved one is not sent there.
    const [elsewhere] = await play(
      [
        {
          do: 'ajax',
          call: 'reelgate_test',
          fields: { server: 'https://evil.example', secret: '' },
          with: { hasNonce: true, signedInAs: 8 },
        },
      ],
      SECRET,
    )
    expect(elsewhere).toMatchObject({
      value: { body: [{ ok: false, text: expect.stringContaining('enter its API secret') }] },
      done: [['wp_ajax_reelgate_test', []]],
    })
  })
})

describe('the watermark', () => {
  const fill = async (text: string, user: number | undefined) => {
    const entries = JSON.stringify([
      { type: 'rtext', text },
      { type: 'image', url: 'https://school.example/logo.png' },
    ])
    const options = { ...SECRET.options, reelgate: { ...(scene.options?.reelgate as object), watermark: entries } }
    const [result] = await play([ask(await tagOf(), { with: { signedInAs: user ?? 0 } })], { ...SECRET, options })
    return (result && (otpRequest(result).annotate as { text?: string }[]))?.map(({ text: filled }) => filled)
  }

  test('V18: tokens are filled in once: a name with braces, quotes or tokens in it is a name', async () => {
    expect(await fill('{username} {date.Y-m-d} {ip} {unknown}', 7)).toEqual(['annip 2026-11-27 {ip} {unknown}', undefined])
    // The server fills these in, and takes them for text.
    expect(await fill('{name} {email} {id}', 7)).toEqual(['{name} {email} {id}', undefined])
  })

  test('V19: a signed-out visitor’s watermark lacks the name, and an entry of nothing else is left out', async () => {
    expect(await fill('{name} {ip}', undefined)).toEqual([' {ip}', undefined])
    expect(await fill('{name}{email}{id}{username}', undefined)).toEqual([undefined])
  })

  test('the filters that sites of the hosted service have are run', async () => {
    const [result] = await play([ask(await tagOf())], {
      ...SECRET,
      filters: { vdocipher_annotate_postprocess: '[{"type":"text","text":"theirs"}]' },
    })
    expect(result && otpRequest(result)).toMatchObject({ annotate: [{ type: 'text', text: 'theirs' }] })
  })
})

describe('completion', () => {
  test('V20: reelgate_completed runs once, when the server has counted 90 %, whatever the page says', async () => {
    const tag = await tagOf({ signedInAs: 7 })
    const [asked] = await play([ask(tag, { with: { signedInAs: 7 } })], SECRET)
    const userId = String(asked && otpRequest(asked).userId)
    haveWatched(reelgate, userId, 2)
    const report = ask(tag, { with: { signedInAs: 7 } }, 'reelgate_completed')
    const completed = (results: Done<unknown>[]) =>
      results.map(({ done }) => done.filter(([name]) => name === 'reelgate_completed').map(([, values]) => values))
    const before = await play([report], SECRET)
    expect([before[0]?.value, completed(before)]).toEqual([{ status: 200, body: { completed: false } }, [[]]])
    changeRows(reelgate, 'update viewing set completed_at_s = last_at_s where user_id = ?', userId)
    const after = await play([report, report], SECRET)
    expect(completed(after)).toEqual([[[7, videoId, 5]], []])
    expect(after.map(({ value }) => value)).toEqual(Array(2).fill({ status: 200, body: { completed: true } }))
    // In another site of the network, whose posts have the same ids.
    expect(completed(await play([report], { ...SECRET, site: 2 }))).toEqual([[[7, videoId, 5]]])
    // Signed out, and with another user's page.
    const others = await answers(
      [
        ask(await tagOf(), { with: { signedInAs: 0 } }, 'reelgate_completed'),
        ask(tag, { with: { signedInAs: 8 } }, 'reelgate_completed'),
      ],
      SECRET,
    )
    expect(others.map(({ value }) => value.body.completed ?? value.body.code)).toEqual([false, 'reload'])
  })

  test('a request to erase a user erases what the server has of them', async () => {
    const erase = { do: 'call', name: 'erase_viewer', arguments: ['bob@example.org'] }
    const [asked] = await play([ask(await tagOf(), { with: { signedInAs: 8 } })], SECRET)
    haveWatched(reelgate, String(asked && otpRequest(asked).userId), 2)
    const [first, second, unknown] = await play([erase, erase, { ...erase, arguments: ['nobody@example.org'] }], SECRET)
    expect([first, second, unknown].map((result) => result?.value)).toMatchObject([
      { items_removed: true, items_retained: false, done: true },
      ...[{ items_removed: false }, { items_removed: false }],
    ])
  })
})

describe('editors', () => {
  test('V21: a subscriber gets no list of videos, no upload token and no test of the connection; nor does an administrator’s browser without a nonce', async () => {
    const steps = [
      ...[
        { do: 'rest', path: '/videos', query: { search: '', page: 1 } },
        { do: 'rest', path: '/upload-token' },
      ],
      { do: 'ajax', call: 'reelgate_test', fields: { server: reelgate.url, secret: 'x' } },
    ]
    const subscriber = await play(steps, { ...SECRET, signedInAs: 7, hasNonce: true })
    expect(subscriber.map(({ value }) => value)).toMatchObject(['forbidden', 'forbidden', { status: 403 }])
    expect(subscriber.flatMap(({ done }) => done).filter(([name]) => name === 'request')).toEqual([])
    const withoutNonce = await play(steps.slice(2), { ...SECRET, signedInAs: 8 })
    expect(withoutNonce[0]?.value).toMatchObject({ status: 403 })
  })

  test('an editor searches, and gets a token for one file from this site’s pages', async () => {
    const editor = { ...SECRET, signedInAs: 8 }
    const [found, token] = await play(
      [
        { do: 'rest', path: '/videos', query: { search: videoId, page: 1 } },
        { do: 'rest', path: '/upload-token' },
      ],
      editor,
    )
    expect(found?.value).toMatchObject({ count: 1, videos: [{ id: videoId, status: 'ready' }] })
    expect(token?.value).toEqual({ token: expect.stringMatching(/^upload_/) })
    const listed = (await (await reelgate.owner.call('GET', '/api/upload-tokens')).json()) as { rows: object[] }
    expect(listed.rows[0]).toMatchObject({ origin: 'https://school.example', maxFiles: 1 })
  })

  test('the test of the connection says in words what is wrong', async () => {
    const { owner, url } = reelgate
    const created = await owner.call('POST', '/api/keys', { body: { name: 'of a site', permissions: ['viewer'] } })
    const { secret } = (await created.json()) as { secret: string }
    const check = async (server: string, key: string, home = 'http://school.example') => {
      const [result] = await play([{ do: 'call', name: 'test_connection', arguments: [{ server, secret: key }] }], {
        ...SECRET,
        home,
      })
      return result?.value as { ok: boolean; text: string }[]
    }
    expect(await check(url, owner.apiKey)).toEqual(
      ['The server answers, and knows the API secret.', 'Search for videos', 'Play videos', 'Upload videos from the editor'].map(
        (text) => ({ ok: true, text }),
      ),
    )
    expect(await check(url, secret)).toMatchObject([
      ...[
        { ok: true },
        { ok: true },
        {
          ok: false,
          text: 'Play videos: the key lacks the permission “Issue OTPs”. Make a key that has it, in the console under Develop → API keys.',
        },
      ],
      { ok: false, text: expect.stringContaining('“Upload”') },
    ])
    const sentences = await Promise.all([
      check(url, 'x'.repeat(64)),
      check(`${url}/somewhere`, owner.apiKey),
      check('http://127.0.0.1:9', owner.apiKey),
      check('video.example', owner.apiKey),
    ])
    expect(sentences.map(([first]) => first?.text)).toEqual([
      expect.stringContaining('does not know this API secret'),
      expect.stringContaining('is not Reelgate'),
      expect.stringContaining('could not be reached'),
      expect.stringContaining('address of the server'),
    ])
    expect((await check(url, owner.apiKey, 'https://school.example')).at(-1)?.text).toContain('browsers block its player')
  })

  test('V22: settings that are wrong keep their value, with a sentence; a new server does not get the former one’s secret', async () => {
    const clean = async (form: object) => {
      const [result] = await play([{ do: 'call', name: 'clean_options', arguments: [form] }], SECRET)
      return result as Done<Record<string, unknown>>
    }
    for (const server of [
      'javascript:alert(1)',
      'file:///etc/passwd',
      'https://a:b@video.example',
      'video.example',
      'https://video.example/?x',
    ])
      expect((await clean({ server })).value.server).toBe(reelgate.url)
    const moved = await clean({ server: 'https://video.example/', secret: '' })
    expect([moved.value, moved.done.length]).toMatchObject([{ server: 'https://video.example', secret: '' }, 1])
    expect((await clean({ watermark: '[{' })).done).toMatchObject([['reelgate_watermark', [expect.stringContaining('no JSON')]]])
    expect((await clean({ form: '1', width: '<b>', height: '720px', speeds: '0.75, 1', evil: 'x' })).value).toEqual({
      ...{ server: reelgate.url, secret: reelgate.owner.apiKey, watermark: expect.any(String), take_over: false },
      ...{ width: 1280, height: 720, speeds: '0.75,1' },
    })
  })

  test('V33: the secret of a wp-config.php goes to the server that is there with it, and to no address that a settings page has', async () => {
    const secretOf = async (constants: Record<string, string>) => {
      const saved = { reelgate: { server: 'https://other.example', secret: 'saved' } }
      const [result] = await play([{ do: 'call', name: 'options', arguments: [] }], { constants, options: saved })
      return (({ server, secret }) => [server, secret])(result?.value as Record<string, string>)
    }
    const [REELGATE_SERVER, REELGATE_API_SECRET] = [reelgate.url, 'of the network']
    expect(await secretOf({ REELGATE_SERVER, REELGATE_API_SECRET })).toEqual([reelgate.url, REELGATE_API_SECRET])
    expect(await secretOf({ REELGATE_API_SECRET })).toEqual(['https://other.example', 'saved'])
  })

  test('settings of the hosted service’s plug-in are found; its key is none of them', async () => {
    const theirs = {
      vdo_client_key: 'x'.repeat(64),
      vdo_default_width: '1280',
      vdo_default_height: 'auto',
      vdo_annotate_code: '[]',
      vdo_player_speed: '',
    }
    const [found] = await play([{ do: 'call', name: 'found_settings', arguments: [] }], {
      options: { ...SECRET.options, ...theirs },
    })
    expect(found?.value).toEqual({ width: '1280', height: 'auto', watermark: '[]' })
  })
})
