import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { build, type Plugin } from 'vite'
import { afterAll, expect, onTestFinished, test } from 'vitest'
import { compileScript, parse } from 'vue/compiler-sfc'
import { sampleOf } from '../sample.ts'
import { lookAtPlayer, openTab, type Player } from './player.ts'
import { startSite } from './site.ts'
import { startWithSmallVideo } from './videos.ts'

// The pages in examples/, and what docs/embedding.md says about other people's pages.

const ROOT = join(import.meta.dirname, '../..')
const shared = startWithSmallVideo()
const site = startSite()
afterAll(() => site.close())

async function newOtp(): Promise<{ otp: string; playbackInfo: string }> {
  const answer = await shared.reelgate.owner.call('POST', `/api/videos/${shared.reelgate.videoId}/otp`, { body: {} })
  return (await answer.json()) as { otp: string; playbackInfo: string }
}

test('P-07: of one page that a cache keeps, each visitor plays with an OTP of their own, and one whose OTP is used gets another', async () => {
  const address = await startExample()
  const html = await fetch(address)
  expect(html.headers.get('Cache-Control')).toContain('public')
  const otp = await fetch(`${address}otp`, { method: 'POST' })
  expect(otp.headers.get('Cache-Control')).toBe('private, no-store')
  const used = (await otp.json()) as { otp: string }
  expect((await shared.reelgate.newViewer().redeem(used.otp)).playing).toBe(true)
  expect(await (await fetch(address)).text()).toBe(await html.text()) // the same for everyone

  for (const isUsed of [false, true]) {
    const page = await openTab(await shared.chromium.newContext())
    if (isUsed) await page.route('**/otp', (route) => route.fulfill({ json: used }), { times: 1 })
    await page.goto(address)
    await playsToEnd(page)
  }
})

const FRAMEWORKS = [
  { framework: 'React', entry: 'examples/react/main.tsx' },
  { framework: 'Vue', entry: 'examples/vue/main.js' },
] as const

test.each(sampleOf('frameworks of the examples', FRAMEWORKS, 1))(
  'P-23: the example for $framework plays, goes to another lesson in the same player, and leaves',
  async ({ entry }) => {
    const page = await openTab(await shared.chromium.newContext())
    const lessons: (string | null)[] = []
    await page.route('**/otp?*', async (route) => {
      lessons.push(new URL(route.request().url()).searchParams.get('lesson'))
      await route.fulfill({ json: await newOtp() })
    })
    const script = await buildExample(entry)
    await page.goto(
      site.put(
        `<script src="${shared.reelgate.url}/v2/player.js" defer></script><div id="app"></div><script type="module">${script}</script>`,
      ),
    )
    const player = await playsToEnd(page)
    await page.getByRole('button', { name: 'Next lesson' }).click()
    await player.shows('ready')
    expect(new Set(lessons)).toEqual(new Set(['1', '2']))
    await player.play()
    await player.playsPast(0.3)
    await page.getByRole('button', { name: 'Close' }).click()
    await page.locator('reelgate-player').waitFor({ state: 'detached' })
    expect(player.complaints).toEqual([])
  },
)

test('P-08: under a strict content security policy the documented frame and the element have their size, and play', async () => {
  const docs = await readFile(join(ROOT, 'docs/embedding.md'), 'utf8')
  const [documented = ''] = /<iframe src="https:\/\/video\.example\.org\/player\/.*?<\/iframe>/s.exec(docs) ?? []
  const { otp, playbackInfo } = await newOtp()
  const frame = documented
    .replace('https://video.example.org', shared.reelgate.url)
    .replace('otp=OTP', `otp=${otp}`)
    .replace('PLAYBACKINFO', encodeURIComponent(playbackInfo))
  const element = `<reelgate-player otp="${(await newOtp()).otp}"></reelgate-player>`
  const policy = `default-src 'none'; script-src ${shared.reelgate.url}; frame-src ${shared.reelgate.url}; require-trusted-types-for 'script'`
  const page = await openTab(await shared.chromium.newContext())
  const body = `<script src="${shared.reelgate.url}/v2/api.js"></script><script src="${shared.reelgate.url}/v2/player.js"></script>${frame}${element}`
  await page.goto(site.put(body, 'localhost', { 'Content-Security-Policy': policy }))
  const [plain, inElement] = await Promise.all([frameOf(page, 'iframe'), frameOf(page, 'reelgate-player')])
  const BORDER_PX = 2 // which a style would remove
  expect(await plain.box()).toEqual({ width: 640 + 2 * BORDER_PX, height: 360 + 2 * BORDER_PX })
  const { width, height } = await inElement.box()
  expect(width).toBe((page.viewportSize()?.width ?? 0) - 16) // the page's margins
  expect(height / width).toBeCloseTo(9 / 16, 1)
  for (const { player } of [plain, inElement]) {
    await player.play()
    await player.playsPast(0.3)
  }
})

test('P-23: the types of the scripts are next to them, and a person can read them', async () => {
  for (const path of ['/v2/reelgate.d.ts', '/player/v2/reelgate.d.ts']) {
    const answer = await fetch(shared.reelgate.url + path)
    expect(answer.headers.get('Content-Type')).toBe('text/plain; charset=utf-8')
    expect(await answer.text()).toBe(await readFile(join(ROOT, 'web/embed/reelgate.d.ts'), 'utf8'))
  }
})

/** Starts examples/server.js. @returns its address */
async function startExample(): Promise<string> {
  const env = {
    ...process.env,
    ...{
      REELGATE: shared.reelgate.url,
      REELGATE_SECRET: shared.reelgate.owner.apiKey,
      VIDEO_ID: shared.reelgate.videoId,
      PORT: '0',
    },
  }
  const server = spawn(process.execPath, [join(ROOT, 'examples/server.js')], { env, stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(() => {
    server.kill()
  })
  const [line] = await once(server.stdout, 'data')
  return String(line).trim()
}

/** Builds an example as a developer runs it: React’s strict mode does everything twice. */
async function buildExample(entry: string): Promise<string> {
  const built = await build({
    configFile: false,
    root: ROOT,
    mode: 'development',
    logLevel: 'error',
    define: { 'process.env.NODE_ENV': '"development"' },
    plugins: [vueFiles],
    build: { write: false, minify: true, rolldownOptions: { input: join(ROOT, entry) } },
  })
  const [bundle] = Array.isArray(built) ? built : [built]
  const chunk = bundle && 'output' in bundle ? bundle.output[0] : undefined
  if (!chunk) throw new Error(`${entry} was not built`)
  return chunk.code.replaceAll('</script', '<\\/script')
}

/** As Vue’s plugin for Vite does it, without its development server. */
const vueFiles: Plugin = {
  name: 'vue-files',
  transform(code, id) {
    if (!id.endsWith('.vue')) return undefined
    const compilerOptions = { isCustomElement: (tag: string) => tag === 'reelgate-player' }
    const { descriptor } = parse(code, { filename: id, templateParseOptions: compilerOptions })
    return compileScript(descriptor, { id, inlineTemplate: true, templateOptions: { compilerOptions } }).content
  },
}

async function playsToEnd(page: Page): Promise<Player> {
  const { player } = await frameOf(page, 'reelgate-player')
  await player.shows('ready')
  await player.play()
  await player.playsPast(0.3)
  await page.evaluate(`{
    const { video } = VdoPlayer.getInstance(document.querySelector('reelgate-player'))
    video.currentTime = video.duration - 0.3
  }`)
  await page.getByText('Watched to the end.').waitFor()
  return player
}

async function frameOf(page: Page, selector: string) {
  const element = page.locator(selector === 'iframe' ? 'body > iframe' : `${selector} iframe`)
  const frame = await (await element.elementHandle())?.contentFrame()
  if (!frame) throw new Error(`There is no frame in ${selector}`)
  const box = async () => {
    const { width, height } = (await element.boundingBox()) ?? { width: 0, height: 0 }
    return { width, height }
  }
  return { player: lookAtPlayer(page, frame), box }
}
