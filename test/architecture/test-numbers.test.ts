import { expect, test } from 'vitest'
import { readTree } from './imports.ts'

// docs/reference/test-numbers.md: which tests show what the docs say about each threat and fault.

const SELF = 'test/architecture/test-numbers.test.ts'
const docs = readTree('docs')
const index = docs['docs/reference/test-numbers.md'] ?? ''
const tests = Object.entries(readTree('test')).filter(([path]) => path.endsWith('.ts') && path !== SELF)

/** One number or a range of them: O03, F-18, I1–I6. */
const NUMBER = /([A-Z]-?)(\d{1,3})(?:–\1(\d{1,3}))?/g
/** The numbers with which a quoted name begins: 'O03: …', 'F-03, F-04: …', 'I1–I6, I8–I10: …'; or of a name that is put together. */
const NUMBERS_OF_TITLE = /(?:['"`]|rows: ')((?:(?:F-\d{3}|[A-Z]-?\d{2}|I\d{1,2})(?:, and |, | and |–)?)+)(?:: |')/g

function numbersIn(text: string): string[] {
  return [...text.matchAll(NUMBER)].flatMap(([, letter = '', first = '', last = first]) =>
    Array.from({ length: Number(last) - Number(first) + 1 }, (_, n) => {
      const number = String(Number(first) + n)
      return `${letter}${letter === 'I' ? number : number.padStart(2, '0')}`
    }),
  )
}

/** The rows of a table whose first column is a number, by that number. */
function rowsOf(text: string): Map<string, string[]> {
  const lines = text.split('\n').filter((line) => /^\| [A-Z]-?\d{1,3} \|/.test(line))
  return new Map(
    lines.map((line) => {
      const [number = '', ...cells] = line.slice(2, -2).split(' | ')
      return [number, cells]
    }),
  )
}

const filesOfNumbers = new Map<string, string[]>()
for (const [path, text] of tests)
  for (const [, title = ''] of text.matchAll(NUMBERS_OF_TITLE))
    for (const number of numbersIn(title))
      filesOfNumbers.set(number, [...new Set([...(filesOfNumbers.get(number) ?? []), path])].sort())

const threats = rowsOf(docs['docs/reference/threats-and-faults.md'] ?? '')
const [tested, untested] = index.split('\n## Rows without a test')

test('the index has each number with which the name of a test begins, and exactly the files of those tests', () => {
  const rows = rowsOf(tested ?? '')
  const lineOf = (number: string, files: string) => `| ${number} | ${rows.get(number)?.[0] ?? 'what it is'} | ${files} |`
  const written = [...rows].map(([number, [, files = '']]) => lineOf(number, files))
  const found = [...filesOfNumbers].map(([number, files]) => lineOf(number, files.map((file) => `\`${file}\``).join(', ')))
  expect(found.length).toBeGreaterThan(200)
  expect(written.sort()).toEqual(found.sort())
})

test('each number is a row of threats and faults, and each row has a test or a reason why it has none', () => {
  expect([...filesOfNumbers.keys()].filter((number) => !threats.has(number))).toEqual([])
  const reasons = rowsOf(untested ?? '')
  expect([...reasons.keys()].sort()).toEqual([...threats.keys()].filter((number) => !filesOfNumbers.has(number)).sort())
})

test('the numbers that the page about security names have tests', () => {
  const table = (docs['docs/security.md'] ?? '').split('\n').filter((line) => /^\|.*\|$/.test(line))
  const named = table.flatMap((line) => numbersIn(line.split('|').at(-2) ?? ''))
  expect(named.length).toBeGreaterThan(30)
  expect(named.filter((number) => !filesOfNumbers.has(number))).toEqual([])
})
