import { join } from 'node:path'
import { defineConfig } from 'vite'
import { root } from './run.js'

// Packages of hundreds of small files, which to find and load takes half of a start, as one file each. `bin/main.js` takes these
// instead, as long as they are as new as the packages. Beside them, so that whatever removes those removes these.

/** What the server imports, by the name of its file. */
const PACKAGES = {
  typebox: 'typebox',
  'typebox-value': 'typebox/value',
  'typebox-compile': 'typebox/compile',
  kysely: 'kysely',
  'kysely-migration': 'kysely/migration',
  fastify: 'fastify',
  'ajv-compiler': '@fastify/ajv-compiler',
  'fast-json-stringify-compiler': '@fastify/fast-json-stringify-compiler',
  busboy: '@fastify/busboy',
}

const ALL_OF = '\0all of '

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
    rolldownOptions: {
      input: Object.fromEntries(Object.entries(PACKAGES).map(([file, name]) => [file, ALL_OF + name])),
      output: { entryFileNames: '[name].mjs', chunkFileNames: '[name]-[hash].mjs' },
    },
  },
  plugins: [
    {
      // What Node finds in a package, of whichever kind: a CommonJS one alone would have a default export only.
      name: 'entries',
      resolveId: (id) => (id.startsWith(ALL_OF) ? id : undefined),
      async load(id) {
        if (!id.startsWith(ALL_OF)) return undefined
        const name = id.slice(ALL_OF.length)
        const names = Object.keys(await import(name)).filter((key) => key !== 'module.exports')
        return `export { ${names.join(', ')} } from '${name}'`
      },
    },
    {
      name: 'index',
      generateBundle() {
        const index = Object.fromEntries(Object.entries(PACKAGES).map(([file, name]) => [name, `${file}.mjs`]))
        this.emitFile({ type: 'asset', fileName: 'index.json', source: JSON.stringify(index) })
      },
    },
  ],
})
