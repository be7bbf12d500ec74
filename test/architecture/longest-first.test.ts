import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { LONGEST } from '../longest-first.ts'

test('the files that a run starts first exist', () => {
  expect(LONGEST.filter((name) => !existsSync(join(import.meta.dirname, '..', `${name}.test.ts`)))).toEqual([])
})
