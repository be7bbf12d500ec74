import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vite'
import { hlsBuild } from './hls-build.ts'
import { precompress } from './precompress.ts'

/** The viewer's player, one script and one style sheet; `manifest.json` holds their hashed names. `embed/vite.config.ts` builds the scripts for other sites' pages. */
export default defineConfig({
  root: fileURLToPath(new URL('.', import.meta.url)),
  base: './',
  publicDir: false,
  plugins: [hlsBuild(), precompress()],
  build: {
    outDir: fileURLToPath(new URL('../dist/player', import.meta.url)),
    emptyOutDir: true,
    manifest: 'manifest.json',
    modulePreload: false,
    target: 'es2022',
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    chunkSizeWarningLimit: 600,
    rolldownOptions: {
      input: fileURLToPath(new URL('player/main.ts', import.meta.url)),
    },
  },
})
