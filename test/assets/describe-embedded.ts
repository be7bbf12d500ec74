import { readEmbeddedCaptions } from '../../src/assets/read-embedded-captions.ts'
import { planVideo } from '../../src/encode/grid.ts'
import { probeSource } from '../../src/encode/probe.ts'
import { openDefaultSandbox, seal } from '../encode/videos.ts'

// What becomes of captions and chapters inside a file, as cells of a table.

/** @param file the path of a video */
export async function describeEmbedded(file: string): Promise<{ captions: string; chapters: string; notices: string }> {
  const sandbox = await openDefaultSandbox()
  const source = await seal(file)
  const probe = await probeSource(sandbox, source)
  const { captions, chapters, notices } = probe.embedded
  const plan = planVideo(probe)
  const signal = new AbortController().signal
  const read = captions.length > 0 ? await readEmbeddedCaptions({ sandbox, source, plan, signal }, captions) : []
  const tracks = captions.map(({ language, title }, index) => {
    const result = read[index]
    const text = result && 'webVtt' in result ? cuesOf(result.webVtt.toString()) : result?.problem
    return `${language}${title === null ? '' : `, "${title}"`}: ${text}`
  })
  const titles = chapters.map(({ startS, title }) => `${startS} s ${title}`)
  return { captions: shorten(tracks), chapters: shorten(titles), notices: shorten([...probe.notices, ...notices]) }
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
export function shorten(texts: readonly string[]): string {
  const all = texts.length > 4 ? [...texts.slice(0, 3), `… (${texts.length})`] : texts
  return all
    .map((text) => (text.length > 300 ? `${text.slice(0, 300)}…` : text).replaceAll('|', '\\|').replaceAll('<', '&lt;'))
    .join('<br>')
}
