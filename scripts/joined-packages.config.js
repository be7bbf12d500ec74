import { join } from 'node:path'
import { defineConfig } from 'vite'
import { root } from './run.js'

// Packages of hundreds of small files, which to find and load takes half of a start, as one file each. `src/main.ts` takes these
// instead, as long as they are as new as the packages. Beside them, so that whatever removes those removes these.

/** What the server imports, by the name of its file. */
const PACKAGES = {
  typebox: 'typebox',
  'typebox-value': 'typebox/value',
  'typebox-compile': 'typebox/compile',
  kysely: 'kysely',
  'kysely-migration': 'kysely/migration',
}

export default defineConfig({
  root,
  logLevel: 'warn',
  publicDir: false,
  ssr: { noExternal: true },
  build: {
    ssr: true,
    outDir: join(root, 'node_modules/.joined'),
    emptyOutDir: true,
    minify: false,
    target: 'esnext',
    rolldownOptions: { input: PACKAGES, output: { entryFileNames: '[name].mjs', chunkFileNames: '[name]-[hash].mjs' } },
  },
  plugins: [
    {
      name: 'index',
      generateBundle() {
        const index = Object.fromEntries(Object.entries(PACKAGES).map(([file, name]) => [name, `${file}.mjs`]))
        this.emitFile({ type: 'asset', fileName: 'index.json', source: JSON.stringify(index) })
      },
    },
  ],
})
