import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vite'
import { precompress } from '../precompress.ts'

/** One script for other sites' pages, each a file of its own with a fixed name: `--mode api`, `--mode player` or `--mode vdo`. */
export default defineConfig(({ mode }) => ({
  publicDir: false,
  plugins: [precompress()],
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
