import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { type Outcome, runCheck } from './check.ts'
import { type Options, openInstallation } from './installation.ts'
import { REQUIREMENTS } from './requirements.ts'
import { SECTIONS } from './sections.ts'

// `npm run conformance -- --base URL --key SECRET`: checks an installation against the wire contract, over HTTP alone.

const USAGE = `npm run conformance -- --base URL --key SECRET [options]

  --base URL          address of the installation, such as http://127.0.0.1:8080
  --key SECRET        an API secret with all permissions
${Object.entries(REQUIREMENTS)
  .map(([need, meaning]) => `  --${need.padEnd(17)} ${meaning}`)
  .join('\n')}
  --only TEXT         the checks whose name contains this
  --json FILE         also writes the outcomes to a file, as [{section, name, outcome, why}]

It makes videos in the account, and removes them at the end.
`

const WORDS = { ok: 'ok', FAIL: 'FAIL', 'not checked': '--' } as const

async function run(given: Options, only: string, jsonFile: string | undefined): Promise<number> {
  const sections = SECTIONS.map((section) => ({ ...section, checks: section.checks.filter(({ name }) => name.includes(only)) }))
  const at = openInstallation(given, (waitS, budget) => console.log(`     … waiting ${waitS} s for the rate limit of ${budget}`))
  const outcomes: Outcome[] = []
  try {
    for (const { section, title, checks } of sections) {
      if (checks.length > 0) console.log(`\n${section}. ${title}`)
      for (const check of checks) {
        const outcome = await runCheck(section, check, at)
        outcomes.push(outcome)
        console.log(formatOutcome(outcome))
      }
    }
  } finally {
    await at.cleanUp()
  }
  if (jsonFile) writeFileSync(jsonFile, `${JSON.stringify(outcomes, undefined, 2)}\n`)
  const count = (wanted: Outcome['outcome']) => outcomes.filter(({ outcome }) => outcome === wanted).length
  console.log(`\n${count('ok')} passed, ${count('FAIL')} failed, ${count('not checked')} skipped`)
  return count('FAIL') === 0 && count('ok') > 0 ? 0 : 1
}

function formatOutcome({ name, outcome, why }: Outcome): string {
  const word = WORDS[outcome].padEnd(4)
  if (outcome === 'not checked') return `${word} ${name} — not checked: ${why}`
  return why === undefined ? `${word} ${name}` : `${word} ${name} — ${why}`
}

/** @returns undefined when the arguments are not valid */
function readArguments() {
  const text = { type: 'string' } as const
  try {
    const { values } = parseArgs({
      options: {
        base: text,
        key: text,
        'other-key': text,
        'permission-keys': text,
        'off-key': text,
        listen: text,
        exceed: { type: 'boolean' },
        only: text,
        json: text,
      },
    })
    const { base, key, listen, only = '', json } = values
    const [, host, port] = /^\[?(.+?)\]?:(\d{1,5})$/.exec(listen ?? '') ?? []
    if (!base || !URL.canParse(base) || !key || (listen !== undefined && port === undefined)) return undefined
    const given: Options = {
      base,
      key,
      otherKey: values['other-key'],
      permissionKeys: readPermissionKeys(values['permission-keys']),
      offKey: values['off-key'],
      listen: host === undefined ? undefined : { host, port: Number(port) },
      exceed: values.exceed,
    }
    return { given, only, json }
  } catch {
    return undefined
  }
}

/** `viewer=SECRET,editor=SECRET` */
function readPermissionKeys(text: string | undefined): Map<string, string> | undefined {
  if (text === undefined) return undefined
  return new Map(text.split(',').map((pair) => [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)]))
}

const read = readArguments()
if (read) process.exitCode = await run(read.given, read.only, read.json)
else {
  process.stderr.write(USAGE)
  process.exitCode = 2
}
