import { readFileSync, writeFileSync } from 'node:fs'
import { glob } from 'node:fs/promises'
import { join } from 'node:path'
import { checkSync } from 'recheck'
import { parseSync } from 'vite'
import { EXCEPTIONS } from './expression-exceptions.ts'

// Each regular expression of src/ is matched in linear time, as recheck judges it: literals, `new RegExp` and the patterns of schemas.
// `npm run check` runs this file. Results are kept by the text of the expression, because judging some takes seconds.

const ROOT = join(import.meta.dirname, '../..')
const KNOWN = join(import.meta.dirname, 'linear-expressions.json')
const TIMEOUT_MS = 60_000

process.env.RECHECK_BACKEND = 'pure' // its other backends are the same, compiled for some machines or for the JVM

/** An expression as a literal, such as `/^a+$/u`, and where it is: `src/json.ts:12`. Without a source the text is its code. */
export type Expression = { text: string; source?: string; flags: string; location: string }

export async function findExpressions(): Promise<Expression[]> {
  const paths = await Array.fromAsync(glob('src/**/*.ts', { cwd: ROOT }))
  return paths.sort().flatMap((path) => expressionsIn(path, readFileSync(join(ROOT, path), 'utf8')))
}

export function expressionsIn(path: string, code: string): Expression[] {
  const { program, errors } = parseSync(path, code)
  if (errors.length > 0) throw new Error(`${path} cannot be parsed: ${errors[0]?.message}`)
  const constants = new Map<string, unknown>()
  const found: Expression[] = []
  const add = ({ start, end }: Node, source: string | undefined, flags = '') => {
    const location = `${path}:${code.slice(0, start).split('\n').length}`
    const text = source === undefined ? code.slice(start, end) : `/${source}/${flags}`
    found.push({ text, source, flags, location })
  }
  const visit = (node: Node) => {
    const { type, regex, callee, key, value, id, init } = node
    const args = Array.isArray(node.arguments) ? node.arguments : []
    if (type === 'VariableDeclarator' && isNode(id) && isNode(init)) constants.set(String(id.name), init)
    if (isNode(regex)) add(node, String(regex.pattern), String(regex.flags))
    if (isNode(callee) && callee.name === 'RegExp') {
      const [source, flags] = args.map((each) => textOf(each, constants))
      add(node, source, flags)
    }
    // Fastify's validator and TypeBox compile the patterns of schemas so.
    const pattern = type === 'Property' && isNode(key) && key.name === 'pattern' ? textOf(value, constants) : undefined
    if (pattern !== undefined) add(node, pattern, 'u')
    for (const child of Object.values(node).flat()) if (isNode(child)) visit(child)
  }
  if (isNode(program)) visit(program)
  return found
}

type Node = Record<string, unknown> & { start: number; end: number }

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null
}

/** A text that is constant. Undefined: it is not. */
function textOf(node: unknown, constants: ReadonlyMap<string, unknown>): string | undefined {
  if (!isNode(node)) return undefined
  if (node.type === 'Literal') return String(node.value)
  if (node.type === 'Identifier') return textOf(constants.get(String(node.name)), constants)
  const isRaw = node.type === 'TaggedTemplateExpression'
  const template = isRaw ? node.quasi : node
  if (!isNode(template) || !Array.isArray(template.quasis) || !Array.isArray(template.expressions)) return undefined
  const filled = template.expressions.map((each) => textOf(each, constants))
  if (filled.includes(undefined)) return undefined
  return template.quasis.map(({ value }, at) => `${isRaw ? value.raw : value.cooked}${filled[at] ?? ''}`).join('')
}

/**
 * Judges the expressions that are neither known to be linear nor among the exceptions.
 * @returns those that are linear, sorted; and a sentence for each that may not be, and for each exception that is not needed
 */
export function judgeExpressions(
  expressions: readonly Expression[],
  known: readonly string[],
  exceptions = EXCEPTIONS,
): { linear: string[]; faults: string[] } {
  const linear = new Set<string>()
  const faults: string[] = []
  for (const expression of expressions) {
    if (expression.text in exceptions || linear.has(expression.text)) continue
    const fault = known.includes(expression.text) ? undefined : findFault(expression)
    if (fault === undefined) linear.add(expression.text)
    else faults.push(`${expression.location}: ${expression.text} ${fault}`)
  }
  const texts = expressions.map(({ text }) => text)
  const unused = Object.keys(exceptions).filter((text) => !texts.includes(text))
  return { linear: [...linear].sort(), faults: [...faults, ...unused.map((text) => `${text} is an exception, but not in src/`)] }
}

/** The expressions that are known to be matched in linear time. */
export function readKnown(): string[] {
  return JSON.parse(readFileSync(KNOWN, 'utf8'))
}

function findFault({ source, flags }: Expression): string | undefined {
  if (source === undefined) return 'is not constant'
  const result = checkSync(source, flags, { timeout: TIMEOUT_MS })
  if (result.status === 'safe') return undefined
  if (result.status === 'unknown') return `cannot be judged: ${result.error.kind}`
  return `takes ${result.complexity.summary} time, as for ${result.attack.pattern}`
}

if (import.meta.main) {
  const { linear, faults } = judgeExpressions(await findExpressions(), readKnown())
  writeFileSync(KNOWN, `${JSON.stringify(linear, undefined, 2)}\n`)
  for (const fault of faults) console.error(fault)
  if (faults.length > 0) process.exitCode = 1
}
