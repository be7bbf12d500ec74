import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vite'

/** The viewer's player, one script and one style sheet, and the script of older embeds; `manifest.json` tells the server their hashed names. */
export default defineConfig({
  root: fileURLToPath(new URL('.', import.meta.url)),
  base: './',
  publicDir: false,
  build: {
    outDir: fileURLToPath(new URL('../dist/player', import.meta.url)),
    emptyOutDir: true,
    manifest: 'manifest.json',
    modulePreload: false,
    target: 'es2022',
    assetsInlineLimit: 0,
    rolldownOptions: {
      input: ['player/main.ts', 'embed/vdo.ts'].map((entry) => fileURLToPath(new URL(entry, import.meta.url))),
    },
  },
})
