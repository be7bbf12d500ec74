import { expect, test } from 'vitest'
import { expressionsIn, findExpressions, judgeExpressions, readKnown } from './expressions.ts'

test('X21: each regular expression of the server is known to take linear time, or is an exception with a reason', async () => {
  const known = readKnown()
  const { linear, faults } = judgeExpressions(await findExpressions(), known)
  expect(faults).toEqual([])
  expect(linear.length).toBeGreaterThan(150)
  expect(known, 'run npm run check, which keeps the results').toEqual(linear)
})

test('X21: literals, new RegExp and patterns of schemas are found, and those that backtrack are refused', () => {
  const code = String.raw`
    const DIGITS = '[0-9]+'
    export const found = [
      /^\s*((?:%7b|%5b)[^&]*?)=?\s*$/i,
      new RegExp(String.raw${'`'}^${'$'}{DIGITS}\s$${'`'}, 's'),
      new RegExp(process.argv[2] ?? ''),
      Type.String({ pattern: '^(a|a)*$' }),
    ]`
  const expressions = expressionsIn('some.ts', code)
  expect(expressions.map(({ text, location }) => `${location} ${text}`)).toEqual([
    String.raw`some.ts:4 /^\s*((?:%7b|%5b)[^&]*?)=?\s*$/i`,
    String.raw`some.ts:5 /^[0-9]+\s$/s`,
    "some.ts:6 new RegExp(process.argv[2] ?? '')",
    'some.ts:7 /^(a|a)*$/u',
  ])
  const { linear, faults } = judgeExpressions(expressions, [], { '/gone/': 'it was needed once' })
  expect(linear).toEqual([String.raw`/^[0-9]+\s$/s`])
  expect(faults).toEqual([
    expect.stringContaining('2nd degree polynomial'),
    expect.stringContaining('is not constant'),
    expect.stringContaining('exponential'),
    '/gone/ is an exception, but not in src/',
  ])
})
