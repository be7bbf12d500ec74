import { expect, test } from 'vitest'
import { csvDocument } from '../../src/http/wire/csv.ts'

test('X10: no cell is a formula to a spreadsheet, and none breaks out of its place', () => {
  const hostile = ['=1+1', '+1', '-1', '@SUM(A1)', '\t=1', '\r=1', 'a,b', 'a"b', 'a\nb', '=HYPERLINK("http://x","y")', 'plain']
  expect(hostile.map((text) => csvDocument([[text, 5]]))).toEqual([
    "'=1+1,5\r\n",
    "'+1,5\r\n",
    "'-1,5\r\n",
    "'@SUM(A1),5\r\n",
    "'\t=1,5\r\n",
    `"'\r=1",5\r\n`,
    '"a,b",5\r\n',
    '"a""b",5\r\n',
    '"a\nb",5\r\n',
    `"'=HYPERLINK(""http://x"",""y"")",5\r\n`,
    'plain,5\r\n',
  ])
})
