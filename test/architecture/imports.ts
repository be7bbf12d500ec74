import { readdirSync, readFileSync } from 'node:fs'
import { posix } from 'node:path'

/** Text by path from the repository's root, as `src/errors.ts`. */
export type Tree = Readonly<Record<string, string>>

/** `to` is a path from the repository's root, or a package's name. */
export type Import = { from: string; to: string; isTypeOnly: boolean }

const ROOT = posix.join(import.meta.dirname, '../..')

/** All files below the folders, as they lie in the working tree. */
export function readTree(...folders: string[]): Tree {
  const paths = folders.flatMap((folder) =>
    readdirSync(posix.join(ROOT, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => posix.relative(ROOT, posix.join(entry.parentPath, entry.name))),
  )
  return Object.fromEntries(paths.map((path) => [path, readFileSync(posix.join(ROOT, path), 'utf8')]))
}

/** `import … from`, `export … from` and `import '…'` at the start of a line, where Biome puts them; `import('…')` anywhere. */
const IMPORT = /^(?:import|export)\s(?<type>type\s)?(?:[^'";]*?\sfrom\s)?\s*'(?<static>[^']+)'|\bimport\(\s*'(?<dynamic>[^']+)'/gm

export function importsOf(tree: Tree): Import[] {
  return Object.entries(tree)
    .filter(([path]) => /\.tsx?$/.test(path))
    .flatMap(([from, text]) =>
      [...text.matchAll(IMPORT)].map(({ groups }) => {
        const name = groups?.static ?? groups?.dynamic ?? ''
        const to = name.startsWith('.') ? posix.join(posix.dirname(from), name) : name
        return { from, to, isTypeOnly: groups?.type !== undefined }
      }),
    )
}

/** The ways round, each written as `a → b → a`, each found once. */
export function cyclesOf(edges: readonly { from: string; to: string }[]): string[] {
  const next = Map.groupBy(edges, (edge) => edge.from)
  const done = new Set<string>()
  const cycles = new Set<string>()
  const visit = (node: string, way: string[]): void => {
    const start = way.indexOf(node)
    if (start >= 0) cycles.add([...way.slice(start), node].join(' → '))
    if (start >= 0 || done.has(node)) return
    for (const edge of next.get(node) ?? []) visit(edge.to, [...way, node])
    done.add(node)
  }
  for (const node of next.keys()) visit(node, [])
  return [...cycles]
}
