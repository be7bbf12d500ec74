/** A line of captions, as it is edited. */
export type Cue = { from: string; to: string; settings: string; text: string }
export type Captions = { head: string; cues: Cue[] }

const TIMES = /^((?:\d+:)?\d\d:\d\d\.\d{3})\s+-->\s+((?:\d+:)?\d\d:\d\d\.\d{3})[ \t]*(.*)$/

/** Reads WebVTT as the server stores it; what is no cue, such as styles, is kept in the head. */
export function parseCaptions(webVtt: string): Captions {
  const blocks = webVtt
    .replaceAll('\r\n', '\n')
    .trim()
    .split(/\n{2,}/)
  const cues: Cue[] = []
  const head: string[] = []
  for (const block of blocks) {
    const lines = block.split('\n')
    const timesAt = lines.findIndex((line) => TIMES.test(line))
    const [, from = '', to = '', settings = ''] = TIMES.exec(lines[timesAt] ?? '') ?? []
    if (timesAt === -1) head.push(block)
    else cues.push({ from, to, settings, text: lines.slice(timesAt + 1).join('\n') })
  }
  return { head: head.join('\n\n'), cues }
}

/** The opposite. Empty lines would end a cue, and are left out. */
export function toWebVtt({ head, cues }: Captions): string {
  const blocks = cues.map(({ from, to, settings, text }) => {
    const lines = text.split('\n').filter((line) => line.trim() !== '')
    return [`${from} --> ${to}${settings === '' ? '' : ` ${settings}`}`, ...lines].join('\n')
  })
  return `${[head || 'WEBVTT', ...blocks].join('\n\n')}\n`
}
