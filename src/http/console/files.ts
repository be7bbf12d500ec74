import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Asset, readAsset } from '../pages/asset.ts'

/** What Vite built from `web/console`: one page, and the files that it loads. */
export type ConsoleFiles = {
  /** The page. `CSP_NONCE` in it is replaced for each response, `./` in addresses by the way to the console's root. */
  page: string
  /** A file of the page by its path, such as `assets/main-1a2b3c.js`. */
  find(path: string): Asset | undefined
}

/** Where `scripts/build.js` builds the console. */
export const CONSOLE_FOLDER = dirname(fileURLToPath(import.meta.resolve('#console/index.html')))

/** What a browser loads: no manifest, no source map. */
const SERVED = /\.(js|css|svg|png|webp|woff2|ico|webmanifest|zip)$/

/** Whether the console was built. */
export function isConsoleBuilt(folder: string): boolean {
  return existsSync(join(folder, 'index.html'))
}

/** Opens the built console. Undefined: it was not built. Files are read when they are first requested. */
export function openConsoleFiles(folder: string): ConsoleFiles | undefined {
  if (!isConsoleBuilt(folder)) return undefined
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  const paths = entries.map((entry) => relative(folder, join(entry.parentPath, entry.name))).filter((path) => SERVED.test(path))
  const known = new Set(paths)
  const read = new Map<string, Asset>()
  return {
    page: readFileSync(join(folder, 'index.html'), 'utf8'),
    find(path) {
      if (!known.has(path)) return undefined
      const asset = read.get(path) ?? readAsset(join(folder, path))
      read.set(path, asset)
      return asset
    },
  }
}
