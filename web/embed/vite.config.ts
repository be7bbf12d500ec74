import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { defineConfig, type Plugin } from 'vite'
import { precompress } from '../precompress.ts'

const TYPES = 'reelgate.d.ts'

/** Puts the types of the scripts next to them. */
function types(): Plugin {
  return {
    name: 'types',
    generateBundle() {
      this.emitFile({ type: 'asset', fileName: TYPES, source: readFileSync(new URL(TYPES, import.meta.url)) })
    },
  }
}

/** One script for other sites' pages, each a file of its own with a fixed name: `--mode api`, `player`, `uploader` or `vdo`. */
export default defineConfig(({ mode }) => ({
  publicDir: false,
  plugins: [types(), precompress()],
  build: {
    outDir: fileURLToPath(new URL('../../dist/player/embed', import.meta.url)),
    emptyOutDir: false,
    target: 'es2022',
    rolldownOptions: {
      input: fileURLToPath(new URL(`${mode}.ts`, import.meta.url)),
      output: { format: 'iife', entryFileNames: `${mode}.js` },
    },
  },
}))
