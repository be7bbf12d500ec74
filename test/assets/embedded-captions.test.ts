import { expect, test } from 'vitest'
import { readEmbeddedCaptions } from '../../src/assets/read-embedded-captions.ts'
import { planVideo } from '../../src/encode/grid.ts'
import { probeSource } from '../../src/encode/probe.ts'
import { openDefaultSandbox, seal } from '../encode/videos.ts'
import { EMBEDDED_SOURCES, type EmbeddedSource, makeEmbedded } from './embedded-sources.ts'

test('I-22, S-01, S-02: what becomes of captions and chapters inside of files is what docs/reference/embedded-text.md says', async () => {
  const rows = await Promise.all(EMBEDDED_SOURCES.map(describeRow))
  await expect(`${HEAD}${rows.join('\n')}\n`).toMatchFileSnapshot('../../docs/reference/embedded-text.md')
})

const HEAD = `# Captions and chapters inside of files

What becomes of them, file by file. Captions are hidden until their owner shows them ([videos](../videos.md#captions-and-chapters-inside-a-file)).
The test \`test/assets/embedded-captions.test.ts\` makes these files and writes this page.

| File | Captions | Chapters | Said of the video |
|---|---|---|---|
`

async function describeRow(made: EmbeddedSource): Promise<string> {
  const sandbox = await openDefaultSandbox()
  const source = await seal(await makeEmbedded(made))
  const probe = await probeSource(sandbox, source)
  const { captions, chapters, notices } = probe.embedded
  const plan = planVideo(probe)
  const signal = new AbortController().signal
  const read = await readEmbeddedCaptions({ sandbox, source, plan, signal }, captions)
  const tracks = captions.map(({ language, title }, index) => {
    const result = read[index]
    const text = result && 'webVtt' in result ? cuesOf(result.webVtt.toString()) : result?.problem
    return `${language}${title === null ? '' : `, "${title}"`}: ${text}`
  })
  const titles = chapters.map(({ startS, title }) => `${startS} s ${title}`)
  const cells = [tracks, titles, [...probe.notices, ...notices]].map(shorten)
  return `| ${made.is} (${made.file.split('.')[1]}) | ${cells.join(' | ')} |`
}

/** Such as `1.003–2.003 Hello / there`. */
function cuesOf(webVtt: string): string {
  const cues = webVtt.trimEnd().split('\n\n').slice(1)
  const shown = cues.map((cue) => {
    const [times = '', ...lines] = cue.split('\n')
    const [from, to] = times.split(' --> ').map((time) => Number(time.slice(6, 12)))
    return `${from}–${to} ${lines.join(' / ')}`
  })
  return shown.join('; ')
}

/** At most four, in one cell. */
function shorten(texts: readonly string[]): string {
  const all = texts.length > 4 ? [...texts.slice(0, 3), `… (${texts.length})`] : texts
  return all
    .map((text) => (text.length > 300 ? `${text.slice(0, 300)}…` : text).replaceAll('|', '\\|').replaceAll('<', '&lt;'))
    .join('<br>')
}
