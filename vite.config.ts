import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vite'

const path = (relative: string) => fileURLToPath(new URL(relative, import.meta.url))

/** What stays a package: native code, data files, and what a package asks for only if somebody installed it. */
const EXTERNAL = ['better-sqlite3', 'pg-native']

/** The server as a few files that Node loads in a third of the time that hundreds take. `web/vite.config.ts` builds the player. */
export default defineConfig({
  logLevel: 'warn',
  publicDir: false,
  ssr: { noExternal: true, external: EXTERNAL },
  build: {
    ssr: true,
    outDir: path('dist/server'),
    emptyOutDir: true,
    minify: false,
    sourcemap: true,
    target: 'esnext',
    rolldownOptions: {
      input: {
        main: path('src/main.ts'),
        'slow-reads-worker': path('src/db/sqlite/slow-reads-worker.ts'),
        'sealing-worker': path('src/crypto/sealing-worker.ts'),
        'webvtt-worker': path('src/assets/webvtt-worker.ts'),
        'loopback-worker': path('src/sandbox/loopback-worker.ts'),
      },
      output: { entryFileNames: '[name].js', chunkFileNames: '[name]-[hash].js' },
    },
  },
  plugins: [
    {
      // Workers are entries, built beside the files that start them.
      name: 'worker-addresses',
      transform: {
        filter: { code: 'import.meta.url' },
        handler: (code) => ({ code: code.replaceAll(/-worker\.ts(['"], import\.meta\.url)/g, '-worker.js$1'), map: null }),
      },
    },
  ],
})
