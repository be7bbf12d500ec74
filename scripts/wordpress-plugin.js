// The WordPress plug-in as a zip: for `npm run package`, and for owners to download from the console.
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './run.js'
import { zip } from './zip.js'

/** @returns what WordPress takes under Plugins → Add New → Upload Plugin: one folder */
export function zipWordPressPlugin() {
  const folder = join(root, 'integrations/wordpress')
  const paths = readdirSync(folder, { recursive: true }).filter((path) => statSync(join(folder, path)).isFile())
  return zip(Object.fromEntries(paths.sort().map((path) => [path, readFileSync(join(folder, path))])))
}
