// `npm test`: the checks, then every suite; the last line sums them up.
// `npm test -- test/encode` or `npm test -- -t 'O03'`: vitest's own arguments, without the checks.
// `npm test -- postgres`, alone or before those: with every server under test on PostgreSQL.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { root, runMain } from './run.js'

const NODE = join(root, 'node_modules/.bin/node')
const inColour = process.stdout.isTTY === true
const args = process.argv.slice(2)
const isOnPostgres = args[0] === 'postgres'

function test(vitestArgs) {
  const isPrepared = start(process.execPath, [join(root, 'scripts/prepare.js'), 'test']) === 0
  const sum = isPrepared ? [...runChecks(vitestArgs), runVitest(vitestArgs)].reduce(add) : { passed: 0, failed: 1, skipped: 0 }
  console.log(`${sum.passed} passed, ${sum.failed} failed, ${sum.skipped} skipped`)
  return sum.failed === 0 && sum.passed > 0
}

function runChecks(vitestArgs) {
  return vitestArgs.length > 0 ? [] : CHECKS.filter((check) => check.applies?.() ?? true).map(runCheck)
}

const CHECKS = [
  { name: 'types of the server', command: 'node_modules/.bin/tsc', args: ['--noEmit', '-p', '.', '--pretty', `${inColour}`] },
  {
    name: 'types in the browser',
    command: 'node_modules/.bin/tsc',
    args: ['--noEmit', '-p', 'web', '--pretty', `${inColour}`],
    applies: () => existsSync(join(root, 'web/player')),
  },
  {
    name: 'lint and layout',
    command: `node_modules/@biomejs/cli-linux-${process.arch}/biome`,
    args: ['check', ...(inColour ? [] : ['--colors=off'])],
  },
]

function runCheck({ name, command, args }) {
  const passed = start(join(root, command), args) === 0
  console.log(`${passed ? 'passed' : 'FAILED'}: ${name}`)
  return { passed: Number(passed), failed: Number(!passed), skipped: 0 }
}

function runVitest(args) {
  const folder = mkdtempSync(join(tmpdir(), 'reelgate-test-'))
  try {
    const report = join(folder, 'report.json')
    const vitest = join(root, 'node_modules/vitest/vitest.mjs')
    const code = start(NODE, [vitest, 'run', '--reporter=default', '--reporter=json', `--outputFile.json=${report}`, ...args])
    return sumOf(existsSync(report) ? JSON.parse(readFileSync(report, 'utf8')) : undefined, code)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function sumOf(report, code) {
  const passed = report?.numPassedTests ?? 0
  const skipped = (report?.numPendingTests ?? 0) + (report?.numTodoTests ?? 0)
  // A file that cannot be loaded has no tests to count, but is a failure.
  const brokenFiles =
    report?.testResults.filter((file) => file.status === 'failed' && !file.assertionResults.some(isFailed)).length ?? 0
  const failed = (report?.numFailedTests ?? 0) + brokenFiles
  // vitest also fails for what belongs to no test: an unhandled rejection, a crash, no test found.
  return { passed, skipped, failed: failed === 0 && code !== 0 ? 1 : failed }
}

function isFailed(test) {
  return test.status === 'failed'
}

function add(a, b) {
  return { passed: a.passed + b.passed, failed: a.failed + b.failed, skipped: a.skipped + b.skipped }
}

/** Runs a command that speaks for itself; undefined when a signal ended it. */
function start(command, args) {
  return spawnSync(command, args, { cwd: root, env: environment(), stdio: 'inherit' }).status
}

// CI variables make vitest colour its lines even into a file.
function environment() {
  const all = isOnPostgres ? { ...process.env, REELGATE_TEST_DATABASE: 'postgres' } : process.env
  if (inColour) return all
  const { FORCE_COLOR: _, ...rest } = all
  return { ...rest, NO_COLOR: '1' }
}

await runMain(() => {
  if (!test(args.slice(isOnPostgres ? 1 : 0))) process.exitCode = 1
})
