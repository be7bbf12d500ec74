import { expect, test } from 'vitest'
import { parseChapterLines, toChapterLines } from '../../web/console/video/chapter-lines.ts'

test('C-07: lines with a time and a title are read as people write them', () => {
  const text = '0:00 Introduction\r\n\r\n• 12:30 – Light: and shadow\n(1:02:03) | 2001\n- 0:07.5 - Zoom\n[90:00] End\n'
  const { chapters, problem } = parseChapterLines(text)
  expect(problem).toBe(undefined)
  expect(chapters).toEqual([
    { startS: 0, title: 'Introduction' },
    { startS: 7.5, title: 'Zoom' },
    { startS: 750, title: 'Light: and shadow' },
    { startS: 3723, title: '2001' },
    { startS: 5400, title: 'End' },
  ])
  expect(toChapterLines(chapters)).toBe('0:00 Introduction\n0:07.5 Zoom\n12:30 Light: and shadow\n1:02:03 2001\n1:30:00 End')
})

test.each([
  ['0:00 A\nand more', 'Line 2 does not begin with a time such as 12:30.'],
  ['0:75 A', 'Line 1 does not begin with a time such as 12:30.'],
  ['12 A', 'Line 1 does not begin with a time such as 12:30.'],
  ['0:01 - ', 'Line 1 has a time, but no title.'],
])('C-07: of %j the line that is no chapter is named', (text, problem) => {
  expect(parseChapterLines(text).problem).toBe(problem)
})
