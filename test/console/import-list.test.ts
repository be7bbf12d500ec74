import { expect, test } from 'vitest'
import { parseImportList } from '../../web/console/import/import-list.ts'

// The list that the console imports from, as people paste it.

const rowsOf = (...lines: string[]) => parseImportList(lines.join('\n')).map(({ line, url, title }) => ({ line, url, title }))

test('F-96: a CSV whose column names are in quotes, with another separator or a line end in them, is read by its columns', () => {
  expect(rowsOf('"title, or name; of the', 'lesson",url,title', ',https://a.example/1.mp4,One')).toEqual([
    { line: 3, url: 'https://a.example/1.mp4', title: 'One' },
  ])
  expect(rowsOf('"notes; private",url,title', 'x,https://a.example/2.mp4,"Two, ""or"" so"')).toEqual([
    { line: 2, url: 'https://a.example/2.mp4', title: 'Two, "or" so' },
  ])
})

test('a row says on which line of the list it begins, whatever is above it', () => {
  const list = ['\uFEFFurl;title', 'https://a.example/1.mp4;"over', 'two lines"', '', ';', 'https://a.example/2.mp4;Two']
  const expected = [
    { line: 2, url: 'https://a.example/1.mp4', title: 'over\ntwo lines' },
    { line: 6, url: 'https://a.example/2.mp4', title: 'Two' },
  ]
  expect(rowsOf(...list)).toEqual(expected)
  expect(rowsOf(list.join('\r\n'))).toEqual(expected)
})

test('without a column named url each line is an address, with the separators in it', () => {
  expect(rowsOf('https://a.example/x;y,z.mp4', '', 'https://a.example/"q".mp4')).toEqual([
    { line: 1, url: 'https://a.example/x;y,z.mp4', title: '' },
    { line: 3, url: 'https://a.example/"q".mp4', title: '' },
  ])
})
