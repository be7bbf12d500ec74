import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const ROOT = join(import.meta.dirname, '../..')

/** With one checker, as in `npm run check`: several check shared types several times, in twice the processor time. */
const tscArgs = (project: string) => ['--checkers', '1', '-p', project]

// What the compiler and Biome have to say of the whole repository; `npm run check` says the same.

test.each([
  { what: 'types of the server, its tests and benches', program: '.bin/tsc', args: tscArgs('.') },
  { what: 'types of the player', program: '.bin/tsc', args: tscArgs('web') },
  { what: 'types of the console', program: '.bin/tsc', args: tscArgs('web/console') },
  { what: 'types of the examples', program: '.bin/tsc', args: tscArgs('examples') },
  { what: 'lint and layout', program: `@biomejs/cli-linux-${process.arch}/biome`, args: ['check', '--colors=off'] },
])('$what', async ({ program, args }) => {
  const output = await new Promise<string>((resolve) => {
    execFile(join(ROOT, 'node_modules', program), args, { cwd: ROOT }, (error, stdout, stderr) =>
      resolve(error ? `${stdout}${stderr}${error.message}` : ''),
    )
  })
  expect(output).toBe('')
})
