import { posix } from 'node:path'
import { describe, expect, test } from 'vitest'
import { cyclesOf, type Import, importsOf, readTree, type Tree } from './imports.ts'

// The layout of docs/architecture.md as a check. Each rule comes with trees that break it, so that a rule which has
// gone blind fails as well.

const FEATURES = [
  'accounts',
  'alerts',
  'audit',
  'idempotency',
  'catalogue',
  'ingest',
  'move-in',
  'encode',
  'mp4',
  'assets',
  'playback',
  'watermark',
  'rate-limits',
  'webhooks',
  'usage',
  'viewers',
  'view-quality',
  'demo',
  'users',
  'events',
  'progress',
  'workers',
  'lti',
  'servers',
]
const BELOW = ['crypto', 'db', 'storage', 'jobs', 'signals', 'outbound', 'net', 'sandbox']

/** What a folder of src/, or a file next to the folders, may import; inside a folder everything may. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  'error-catalogue.ts': [],
  'errors.ts': ['error-catalogue.ts'],
  'json.ts': [],
  'limit-bytes.ts': [],
  'mail-address.ts': [],
  'format-size.ts': [],
  'time.ts': ['errors.ts'],
  'program-name.ts': [],
  config: ['errors.ts', 'json.ts', 'mail-address.ts'],
  'health-check.ts': [],
  ...Object.fromEntries(BELOW.map((folder) => [folder, ['errors.ts', 'config', 'health-check.ts', 'limit-bytes.ts', ...BELOW]])),
  ...Object.fromEntries(
    FEATURES.map((folder) => [
      folder,
      [
        'error-catalogue.ts',
        'errors.ts',
        'config',
        'format-size.ts',
        'json.ts',
        'limit-bytes.ts',
        'mail-address.ts',
        'program-name.ts',
        'time.ts',
        ...BELOW,
        ...FEATURES,
      ],
    ]),
  ),
  http: ['error-catalogue.ts', 'errors.ts', 'config', 'json.ts', 'program-name.ts', 'time.ts', 'net', ...FEATURES],
  installation: ['errors.ts', 'config', 'health-check.ts', 'program-name.ts', 'time.ts', ...FEATURES, ...BELOW],
  control: ['errors.ts', 'config', 'installation', ...FEATURES],
  cli: [
    'errors.ts',
    'config',
    'format-size.ts',
    'health-check.ts',
    'limit-bytes.ts',
    'program-name.ts',
    'control',
    'installation',
    'sandbox',
    'server.ts',
    'signals',
    ...FEATURES,
  ],
  'main.ts': ['cli'],
  processes: ['errors.ts', 'config', 'installation', 'control', 'http', ...FEATURES, ...BELOW],
  'server.ts': ['errors.ts', 'config', 'installation', 'processes', 'http', 'users', 'sandbox'],
}

/**
 * Inside these folders, too, imports go one way: each part, a folder or a file, imports only from parts that come after it. `*` are the
 * files that are not named.
 */
const ORDER_INSIDE: Readonly<Record<string, readonly string[]>> = {
  'src/http': [
    'interfaces.ts',
    'docs',
    'demo',
    'metrics',
    'watch',
    'console',
    'v2',
    'api',
    'upload',
    'worker',
    'lti',
    'media',
    'play',
    'player',
    'server',
    'pages',
    'wire',
  ],
  'src/playback': [
    'open.ts',
    'prune.ts',
    'redeem.ts',
    'requests.ts',
    'serve.ts',
    'video-view.ts',
    'player-page.ts',
    'playback-deps.ts',
    'shared',
    'sessions',
    'suspicion',
    'keys',
    'media',
    'otp.ts',
    'rules',
    '*',
  ],
  'web/console': [
    'app',
    'welcome',
    'library',
    'develop',
    'video',
    'import',
    'activity',
    'trash',
    'upload',
    'protection',
    'system',
    'viewers',
    'alerts',
    'sign-in',
    'charts',
    'catalogue',
    'ui',
    'rows-query.ts',
    'api.ts',
    'posters.ts',
    'connection.ts',
    'proxy-refusal.ts',
    '*',
  ],
}

const STARTERS: readonly string[] = ['src/installation/key-command.ts']

type Rule = { promise: string; breaches: (tree: Tree) => string[]; broken: readonly Tree[] }

const RULES: readonly Rule[] = [
  {
    promise: 'every folder and file of src/ has its place in the layout',
    breaches: (tree) => foldersIn(tree).filter((folder) => !(folder in MAY_IMPORT)),
    broken: [{ 'src/utils/text.ts': '' }, { 'src/helpers.ts': '' }],
  },
  {
    promise: 'imports go one way: processes → http → features → crypto, db, storage, jobs, signals, outbound, net, sandbox',
    breaches: (tree) => importsWhere(tree, isAgainstTheArrows),
    broken: [
      { 'src/playback/otp.ts': "import type { App } from '../http/app.ts'" },
      { 'src/playback/otp.ts': "import { createServer } from '../server.ts'" },
      { 'src/http/api/otp.ts': "import type { Encoder } from '../../processes/encoder.ts'" },
      { 'src/http/api/otp.ts': "import {\n  openSqlite,\n  type Db,\n} from '../../db/sqlite.ts'" },
      { 'src/http/api/otp.ts': "import { openFolder } from '../../storage/folder.ts'" },
      { 'src/db/sqlite.ts': "import type { Account } from '../accounts/account.ts'" },
      { 'src/crypto/key-window.ts': "const { findVideo } = await import('../catalogue/video.ts')" },
      { 'src/storage/folder.ts': "export type { Video } from '../catalogue/video.ts'" },
      { 'src/errors.ts': "import './config/config.ts'" },
    ],
  },
  {
    promise: 'only http/ knows Fastify',
    breaches: (tree) => importsWhere(tree, ({ from, to }) => /^@?fastify(\/|$)/.test(to) && !isIn(from, ['http'])),
    broken: [
      { 'src/playback/otp.ts': "import type { FastifyRequest } from 'fastify'" },
      { 'src/cli/doctor.ts': "import { type TypeBoxTypeProvider } from '@fastify/type-provider-typebox'" },
    ],
  },
  {
    promise: 'only what puts the parts together calls config/; all others take its types',
    breaches: (tree) =>
      importsWhere(
        tree,
        ({ from, to, isTypeOnly }) =>
          folderOf(to) === 'config' &&
          !isTypeOnly &&
          !isIn(from, ['config', 'cli', 'control', 'installation', 'processes', 'server.ts']),
      ),
    broken: [{ 'src/encode/plan.ts': "import { readConfig } from '../config/config.ts'" }],
  },
  {
    promise: 'only config/ reads the environment',
    breaches: (tree) =>
      filesWith(tree, /\bprocess\.env\b|\bimport\b.*\benv\b.*'node:process'/).filter(
        (path) => path.startsWith('src/') && folderOf(path) !== 'config',
      ),
    broken: [{ 'src/server.ts': "if (process.env['CI']) run()" }, { 'src/server.ts': "import { env } from 'node:process'" }],
  },
  {
    promise: 'only sandbox/ and the command for the master key start processes',
    breaches: (tree) =>
      importsWhere(
        tree,
        ({ from, to }) => /^(node:)?child_process$/.test(to) && !isIn(from, ['sandbox']) && !STARTERS.includes(from),
      ),
    broken: [{ 'src/encode/probe.ts': "import { spawn } from 'node:child_process'" }],
  },
  {
    promise: 'only storage/ knows the paths of blobs; all others read and write them by the contract',
    breaches: (tree) => importsWhere(tree, ({ from, to }) => to === 'src/storage/blob-path.ts' && !isIn(from, ['storage'])),
    broken: [{ 'src/assets/download.ts': "import { blobPath } from '../storage/blob-path.ts'" }],
  },
  {
    promise: 'the browser takes types from src/, never code',
    breaches: (tree) =>
      importsWhere(tree, ({ from, to, isTypeOnly }) => from.startsWith('web/') && to.startsWith('src/') && !isTypeOnly),
    broken: [{ 'web/player/main.ts': "import { planLadder } from '../../src/encode/plan.ts'" }],
  },
  {
    promise: 'the conformance suite knows nothing of the inside',
    breaches: (tree) =>
      importsOf(tree)
        .filter(({ from, to }) => from.startsWith('conformance/') && !to.startsWith('conformance/') && !to.startsWith('node:'))
        .map(({ from, to }) => `${from} → ${to}`),
    broken: [{ 'conformance/check.ts': "import type { VideoBody } from '../src/http/api/video-body.ts'" }],
  },
  {
    promise: 'no file needs itself: imports, those of types too, have no cycle',
    breaches: (tree) => cyclesOf(importsOf(tree)),
    broken: [
      { 'src/db/a.ts': "import type { B } from './b.ts'", 'src/db/b.ts': "import type { A } from './a.ts'" },
      {
        'src/db/a.ts': "import { b } from './b.ts'",
        'src/db/b.ts': "import { c } from './c.ts'",
        'src/db/c.ts': "import { a } from './a.ts'",
      },
    ],
  },
  {
    promise: 'no folder needs itself: imports between the parts of any folder, types too, have no cycle',
    breaches(tree) {
      const imports = importsOf(tree)
      return foldersOf(tree).flatMap((folder) => cyclesOf(importsBetweenParts(imports, folder)))
    },
    broken: [
      {
        'src/webhooks/event.ts': "import type { Video } from '../catalogue/video.ts'",
        'src/catalogue/video.ts': "import { addHookEvents } from '../webhooks/event-store.ts'",
      },
      {
        'src/installation/database.ts': "import { backUpRows } from './backup/rows.ts'",
        'src/installation/backup/restore.ts': "import type { Database } from '../database.ts'",
      },
      {
        'web/player/controls/menu.ts': "import { texts } from '../words/texts.ts'",
        'web/player/words/language.ts': "import type { Menu } from '../controls/menu.ts'",
      },
    ],
  },
  {
    promise: 'inside http/, playback/ and the console imports go one way, and each part has its place there',
    breaches(tree) {
      const imports = importsOf(tree)
      return Object.entries(ORDER_INSIDE).flatMap(([folder, order]) => importsUpwards(imports, folder, order))
    },
    broken: [
      { 'src/http/server/rate-limits.ts': "import { sendRefusal } from '../play/errors.ts'" },
      { 'src/http/wire/bodies.ts': "import type { App } from '../server/app.ts'" },
      { 'src/http/api/otp.ts': "import { createInterfaces } from '../interfaces.ts'" },
      { 'src/http/calendar/launch.ts': "import { isoTime } from '../wire/iso-time.ts'" },
      { 'src/playback/keys/key-budget.ts': "import { LEASE_S } from '../sessions/stream-slot-store.ts'" },
      { 'src/playback/sessions/stop.ts': "import type { PlaybackDeps } from '../playback-deps.ts'" },
      { 'web/console/ui/dialog.tsx': "import { useMay } from '../sign-in/queries.ts'" },
      { 'web/console/sign-in/routes.ts': "import { Shell } from '../app/shell.tsx'" },
    ],
  },
  {
    promise: 'JavaScript is for launchers only',
    breaches: (tree) => Object.keys(tree).filter((path) => /\.[cm]?jsx?$/.test(path) && !/^(?:bin|scripts)\//.test(path)),
    broken: [{ 'src/main.js': '' }, { 'web/player/loader.mjs': '' }, { 'test/help.cjs': '' }],
  },
  {
    promise: 'tests of HTTP have their server in their own process (test/in-process.ts) and start none',
    breaches: (tree) =>
      importsOf(tree)
        .filter(({ from, to }) => from.startsWith('test/http/') && to === 'test/reelgate.ts')
        .map(({ from, to }) => `${from} → ${to}`),
    broken: [{ 'test/http/tags.test.ts': "import { startReelgate } from '../reelgate.ts'" }],
  },
  {
    promise: 'each statement of a store is called in test/db/stores.test.ts, which compares the databases',
    breaches: uncomparedStatements,
    broken: [
      { 'src/webhooks/webhook-store.ts': 'export async function findHook(\n  db: Db,\n  id: string,\n) {' },
      {
        'src/usage/usage-store.ts': 'export const addViews = prepared<Views>()(',
        'test/db/stores.test.ts':
          "import * as usage from '../../src/usage/usage-store.ts'\nimport * as files from '../../src/assets/mp4-store.ts'\nfiles.addViews(tx)",
      },
    ],
  },
  {
    promise: 'what src/ and web/ export, another file imports',
    breaches: unusedExports,
    broken: [
      { 'src/db/a.ts': 'export const MAX = 1\nf(MAX)' },
      { 'web/player/a.ts': 'export function f() {}', 'web/player/b.ts': "import { type f as g, h } from './c.ts'" },
    ],
  },
  {
    promise: 'no name in code or tests uses a word that another one has replaced',
    breaches: namesWithReplacedWords,
    broken: [
      { 'src/catalogue/video.ts': 'const filmId = 1' },
      { 'src/sandbox/run.ts': '/* as a name */ async function runCaged() {}' },
      { 'web/player/main.ts': 'const UPKEEP_EVERY_MS = 1' },
      { 'test/viewer.ts': 'export async function told() {}' },
      { 'bench/run.ts': 'const hookUrl = 1' },
    ],
  },
  {
    promise: 'no sentence that code shows, logs or sends, and no title of a test, uses such a word',
    breaches: textsWithReplacedWords,
    broken: [
      { 'src/errors.ts': "const message = 'Nobody was told why.'" },
      { 'web/player/refusals.ts': '/* one */ const sentence = `The film stops at once.`' },
      { 'test/playback/stop.test.ts': "test('nobody is told why', () => {})" },
    ],
  },
  {
    promise: 'no comment silences the compiler, or lets an `any` pass Biome',
    breaches: (tree) => filesWith(tree, /^\s*\/[/*]\s*(?:@ts-(?:ignore|nocheck|expect-error)|biome-ignore\b.*noExplicitAny)/m),
    broken: [
      { 'src/errors.ts': '// @ts-ignore\nf()' },
      { 'web/player/main.ts': '/* @ts-expect-error: later */\nf()' },
      { 'test/help.ts': '// biome-ignore lint/suspicious/noExplicitAny: later' },
    ],
  },
]

for (const { promise, breaches, broken } of RULES) {
  describe(promise, () => {
    test('holds here', () => {
      expect(breaches(readTree('src', 'web', 'test', 'bench', 'conformance', 'scripts', 'bin'))).toEqual([])
    })

    for (const tree of broken) {
      test(`a breach is seen: ${JSON.stringify(tree)}`, () => {
        expect(breaches(tree)).not.toEqual([])
      })
    }
  })
}

const EXPORT = /^export (?:async )?(?:function\*?|const|let|type|interface|class) (\w+)/gm
const IMPORT = /(?:import|export)\s+(?:type\s+)?([^'";]*?)\s*from\s*'(\.[^']+)'|import\(\s*'(\.[^']+)'/g

/** Types in `.d.ts` are for pages of other sites. */
function unusedExports(tree: Tree): string[] {
  const imported = new Map<string, string>()
  for (const [path, text] of Object.entries(tree))
    for (const [, names = '*', from, late] of text.matchAll(IMPORT)) {
      const target = posix.join(posix.dirname(path), from ?? late ?? '')
      imported.set(target, `${imported.get(target) ?? ''} ${names}`)
    }
  return Object.entries(tree)
    .filter(([path]) => /^(?:src|web)\/.*(?<!\.d)\.tsx?$/.test(path) && !imported.get(path)?.includes('*'))
    .flatMap(([path, text]) =>
      [...text.matchAll(EXPORT)]
        .map(([, name = '']) => name)
        .filter((name) => !new RegExp(`(?<!as )\\b${name}\\b`).test(imported.get(path) ?? ''))
        .map((name) => `${path}: ${name}`),
    )
}

/** Each with the word to use. */
const REPLACED_WORDS: Readonly<Record<string, string>> = {
  anew: 'again',
  beside: 'next to',
  cage: 'sandbox',
  caged: 'sandboxed',
  calm: 'idle',
  film: 'video',
  films: 'videos',
  haste: 'rate',
  heard: 'received',
  house: 'foundation',
  hurry: 'urgent',
  monster: 'hostile media',
  nobody: 'no client',
  somebody: 'client',
  sought: 'seek',
  told: 'reported',
  upkeep: 'maintenance',
  whoever: 'caller',
}
/** Names alone: `/hooks` is a path of the wire contract, `addHook` one of Fastify’s functions, and `HOOK_SECRET` a variable of an example. */
const REPLACED_IN_NAMES: Readonly<Record<string, string>> = { ...REPLACED_WORDS, hook: 'webhook', hooks: 'webhooks' }
const WIRE_NAMES = ['addHook', 'hookId', 'HOOK_SECRET']
const REPLACED_PHRASES = new RegExp(
  `\\b(?:${[...Object.keys(REPLACED_WORDS), 'at once', 'goes on', 'stands for'].join('|')})\\b`,
  'i',
)

const COMMENTS_AND_TEXTS = /\/\*[\s\S]*?\*\/|\/\/.*|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`/g

function namesWithReplacedWords(tree: Tree): string[] {
  return Object.entries(tree)
    .filter(([path]) => isWritten(path))
    .flatMap(([path, text]) => {
      const names = new Set(text.replaceAll(COMMENTS_AND_TEXTS, ' ').match(/[A-Za-z]\w*/g) ?? [])
      return [...names].flatMap((name) =>
        wordsIn(name).flatMap((word) =>
          Object.hasOwn(REPLACED_IN_NAMES, word) && !WIRE_NAMES.includes(name)
            ? [`${path}: ${name} (say ${REPLACED_IN_NAMES[word]})`]
            : [],
        ),
      )
    })
}

/** Code of the project, but for this file, which has to name the words. */
function isWritten(path: string): boolean {
  return /^(?:src|web|test|bench|conformance)\/.*\.tsx?$/.test(path) && path !== 'test/architecture/layout.test.ts'
}

/** Texts of several words; one word alone may be a code of the wire contract. */
function textsWithReplacedWords(tree: Tree): string[] {
  return Object.entries(tree)
    .filter(([path]) => isWritten(path))
    .flatMap(([path, text]) => (text.match(COMMENTS_AND_TEXTS) ?? []).map((found) => ({ path, found })))
    .filter(({ found }) => !/^\/[/*]/.test(found) && found.includes(' ') && REPLACED_PHRASES.test(found))
    .map(({ path, found }) => `${path}: ${found}`)
}

/** `maxSizeBytes` and `MAX_SIZE_BYTES` both have the words max, size and bytes. */
function wordsIn(name: string): string[] {
  return name
    .replaceAll(/([a-z\d])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .split('_')
}

function isAgainstTheArrows({ from, to }: Import): boolean {
  const [fromFolder, toFolder] = [folderOf(from), folderOf(to)]
  if (fromFolder === undefined || toFolder === undefined || fromFolder === toFolder) return false
  return !MAY_IMPORT[fromFolder]?.includes(toFolder)
}

/** The folder of src/ in which a file lies, or its own name when it lies beside them; undefined outside src/. */
function folderOf(path: string): string | undefined {
  return path.startsWith('src/') ? path.split('/')[1] : undefined
}

function isIn(path: string, folders: readonly string[]): boolean {
  return folders.includes(folderOf(path) ?? '')
}

function foldersIn(tree: Tree): string[] {
  return [...new Set(Object.keys(tree).flatMap((path) => folderOf(path) ?? []))]
}

function importsWhere(tree: Tree, isBreach: (found: Import) => boolean): string[] {
  return importsOf(tree)
    .filter(({ from }) => from.startsWith('src/') || from.startsWith('web/'))
    .filter(isBreach)
    .map(({ from, to }) => `${from} → ${to}`)
}

function filesWith(tree: Tree, pattern: RegExp): string[] {
  return Object.keys(tree).filter((path) => /\.tsx?$/.test(path) && pattern.test(tree[path] ?? ''))
}

/** What a store offers that takes the database first; its other functions reckon with values. */
const STATEMENT = /^export (?:(?:async )?function (\w+)\(\s*(?:db|tx): Db\b|const (\w+) = prepared\b)/gm

function uncomparedStatements(tree: Tree): string[] {
  const compared = tree['test/db/stores.test.ts'] ?? ''
  const names = new Map(
    [...compared.matchAll(/^import \* as (\w+) from '..\/..\/(\S+)'/gm)].map(([, name, path]) => [path, name]),
  )
  return Object.keys(tree)
    .filter((path) => /^src\/.*-store\.ts$/.test(path))
    .flatMap((path) =>
      [...(tree[path] ?? '').matchAll(STATEMENT)]
        .map(([, plain, kept]) => plain ?? kept)
        .filter((statement) => !compared.includes(` ${names.get(path)}.${statement}(`))
        .map((statement) => `${path}: ${statement}`),
    )
}

/** Each folder in which there are files of src/ or web/. */
function foldersOf(tree: Tree): string[] {
  const files = Object.keys(tree).filter((path) => /^(?:src|web)\//.test(path))
  return [...new Set(files.flatMap((path) => [...path.matchAll(/\//g)].map(({ index }) => path.slice(0, index))))]
}

/** The part of a folder that a file belongs to: a folder in it, or the file itself; undefined outside of it. */
function partOf(folder: string, path: string): string | undefined {
  return path.startsWith(`${folder}/`) ? path.slice(folder.length + 1).split('/')[0] : undefined
}

function importsBetweenParts(imports: readonly Import[], folder: string): { from: string; to: string }[] {
  return imports.flatMap(({ from, to }) => {
    const parts = { from: partOf(folder, from), to: partOf(folder, to) }
    if (parts.from === undefined || parts.to === undefined || parts.from === parts.to) return []
    return [{ from: `${folder}/${parts.from}`, to: `${folder}/${parts.to}` }]
  })
}

function importsUpwards(imports: readonly Import[], folder: string, order: readonly string[]): string[] {
  const positionOfPart = (path: string) => {
    const part = path.slice(folder.length + 1)
    return order.indexOf(order.includes(part) || !part.includes('.') ? part : '*')
  }
  return importsBetweenParts(imports, folder)
    .filter(({ from, to }) => positionOfPart(from) < 0 || positionOfPart(to) < 0 || positionOfPart(from) > positionOfPart(to))
    .map(({ from, to }) => `${from} → ${to}`)
}
