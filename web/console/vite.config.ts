import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vite'
import { precompress } from '../precompress.ts'

const path = (relative: string) => fileURLToPath(new URL(relative, import.meta.url))

/**
 * The owner's console, built into `dist/console`. The server sends `index.html` for each of its pages, with a nonce in the place of
 * `CSP_NONCE` and the way to `assets/` in the place of `./`; `manifest.json` names what the first load consists of.
 */
export default defineConfig({
  root: path('.'),
  base: './',
  publicDir: false,
  plugins: [precompress()],
  html: { cspNonce: 'CSP_NONCE' },
  oxc: { jsx: { runtime: 'automatic' } },
  css: { modules: { localsConvention: 'camelCaseOnly' } },
  build: {
    outDir: path('../../dist/console'),
    emptyOutDir: true,
    manifest: 'manifest.json',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: 'es2022',
    // Mantine marks its files for servers that render React; there is none here.
    rolldownOptions: { checks: { moduleLevelDirective: false } },
    cssTarget: ['chrome123', 'firefox120', 'safari17.5'], // with light-dark(), which ui/tokens.css uses
  },
})
