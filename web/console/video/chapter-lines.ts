import type { ChaptersBody } from '../../../src/http/wire/chapters.ts'

type Chapter = ChaptersBody['chapters'][number]

/** A time first, as people write it: `12:30 Title`, `(1:02:03) - Title`, `• 0:07.5 Title`. */
const LINE = /^[-–*•([\s]*(?:(\d{1,3}):)?(\d{1,3}):(\d{2})(?:[.,](\d{1,3}))?[)\]]?(?=\s|$)(.*)$/

/** Reads a line for each chapter; empty ones are left out. `problem`: what is wrong with the first line that is none. */
export function parseChapterLines(text: string): { chapters: Chapter[]; problem?: string } {
  const chapters: Chapter[] = []
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    if (line.trim() === '') continue
    const [found, hours = '0', minutes = '', seconds = '', fraction = '', rest = ''] = LINE.exec(line) ?? []
    if (found === undefined || Number(seconds) > 59)
      return { chapters, problem: `Line ${index + 1} does not begin with a time such as 12:30.` }
    const title = rest.replace(/^[\s\-–—:.|]+/, '').trim()
    if (title === '') return { chapters, problem: `Line ${index + 1} has a time, but no title.` }
    const startS = (Number(hours) * 60 + Number(minutes)) * 60 + Number(seconds) + Number(`0.${fraction || '0'}`)
    chapters.push({ startS, title })
  }
  return { chapters: chapters.toSorted((one, other) => one.startS - other.startS) }
}

/** The opposite. */
export function toChapterLines(chapters: readonly Chapter[]): string {
  return chapters.map(({ startS, title }) => `${formatStart(startS)} ${title}`).join('\n')
}

/** A time alone: 12:30, 1:02:03, 0:07.5, or seconds such as 7.5. Undefined: it is none. */
export function parseStart(text: string): number | undefined {
  const [found, hours = '0', minutes = '0', seconds = ''] =
    /^(?:(?:(\d{1,3}):)?(\d{1,3}):(?=[0-5]\d(?!\d)))?(\d{1,6}(?:[.,]\d{1,3})?)$/.exec(text.trim()) ?? []
  if (found === undefined) return undefined
  return (Number(hours) * 60 + Number(minutes)) * 60 + Number(seconds.replace(',', '.'))
}

/** Such as 12:30, 1:02:03 or 0:07.5 */
export function formatStart(startS: number): string {
  const [hours, minutes] = [Math.floor(startS / 3600), Math.floor(startS / 60) % 60]
  const [seconds = '', ...fraction] = String(Number((startS % 60).toFixed(3))).split('.')
  const two = (value: number | string) => String(value).padStart(2, '0')
  return [...(hours > 0 ? [hours, two(minutes)] : [minutes]), [two(seconds), ...fraction].join('.')].join(':')
}
