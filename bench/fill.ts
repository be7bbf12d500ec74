import { createHash } from 'node:crypto'
import { constants, existsSync, readdirSync, readFileSync } from 'node:fs'
import { copyFile, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { CompiledQuery } from 'kysely'
import { createAccount } from '../src/accounts/account.ts'
import { readConfig } from '../src/config/config.ts'
import { openInstallation } from '../src/installation/open.ts'
import { SEARCH_WORD, WORDS } from './random-words.ts'
import { CACHE, type Scope } from './row.ts'

export const HITS = 2_000

/** The folder that contains all videos, and the number of other folders. */
export const FOLDER = 'f'.repeat(32)
export const FOLDERS = 10_000

/** A data folder with one owner and many videos with titles, tags and posters, but no media files. */
export type FilledFolder = { dataDir: string; apiKey: string }

/** A copy for one row, which may change it. */
export async function copyFilledFolder(scope: Scope, videos: number): Promise<FilledFolder> {
  const original = await ensureFilled(videos)
  const dataDir = join(scope.folder, `data-${videos}`)
  await mkdir(dataDir)
  const copy = (from: string, to: string) => copyFile(from, to, constants.COPYFILE_FICLONE)
  await copy(join(original, 'data/reelgate.db'), join(dataDir, 'reelgate.db'))
  await copy(join(original, 'data.key'), `${dataDir}.key`)
  return { dataDir, apiKey: await readFile(join(original, 'api-key'), 'utf8') }
}

/** Creates the folder that is copied, unless it exists; takes some minutes for a million videos. @returns its path */
export async function ensureFilled(videos: number): Promise<string> {
  const folder = join(CACHE, `${videos}-${getTablesVersion()}`)
  if (existsSync(folder)) return folder
  for (const old of readdirSync(CACHE)) if (old.startsWith(`${videos}-`)) await rm(join(CACHE, old), { recursive: true })
  process.stderr.write(`Filling a database with ${videos} videos\n`)
  const unfinished = join(CACHE, `unfinished-${videos}-${process.pid}`)
  await mkdir(join(unfinished, 'data'), { recursive: true })
  await fill(unfinished, videos)
  await rename(unfinished, folder)
  return folder
}

let version: string | undefined

/** Changes with the migrations and this file; computed once per run. */
export function getTablesVersion(): string {
  version ??= hashTables()
  return version
}

function hashTables(): string {
  const database = join(import.meta.dirname, '../src/db')
  const migrations = ['sqlite/migrations', 'postgres/migrations', 'migrations'].map((name) => join(database, name))
  const files = [
    ...migrations.flatMap((folder) =>
      readdirSync(folder)
        .sort()
        .map((name) => join(folder, name)),
    ),
    ...['sqlite', 'postgres'].map((name) => join(database, name, 'migrations.ts')),
    join(import.meta.dirname, 'random-words.ts'),
    import.meta.filename,
  ]
  const hash = createHash('sha256')
  for (const file of files) hash.update(readFileSync(file))
  return hash.digest('hex').slice(0, 12)
}

/** Through the service's own connection, so that its triggers update counters and indexes. */
async function fill(folder: string, videos: number): Promise<void> {
  const installation = await openInstallation(readConfig({ REELGATE_DATA: join(folder, 'data') }))
  try {
    const { db, write } = installation
    const nowS = () => FIRST_UPLOAD_S
    const { accountId, apiKey } = await createAccount({ db, write, nowS }, 'bench', { mayUpload: true, mayImport: true })
    await write(async (tx) => {
      for (const statement of FOLDER_INSERTS) await tx.executeQuery(CompiledQuery.raw(statement, [accountId]))
      for (const rows of batches(videos)) {
        const json = JSON.stringify(rows)
        for (const statement of INSERTS) await tx.executeQuery(CompiledQuery.raw(statement, [json, accountId]))
      }
      await tx.updateTable('account').set({ videoCount: videos }).where('id', '=', accountId).execute()
    })
    await writeFile(join(folder, 'api-key'), apiKey)
  } finally {
    await installation.close()
  }
}

const FIRST_UPLOAD_S = 1_700_000_000
const BATCH_ROWS = 1_000

const FOLDER_INSERTS = [
  `insert into folder (account_id, id, parent_id, name, folded_name, created_at_s)
    values (?, '${FOLDER}', 'root', 'all', 'all', ${FIRST_UPLOAD_S})`,
  `insert into folder (account_id, id, parent_id, name, folded_name, created_at_s)
    with recursive number (n) as (select 1 union all select n + 1 from number where n < ${FOLDERS})
    select ?, printf('%032x', n), '${FOLDER}', 'Folder ' || n, 'folder ' || n, ${FIRST_UPLOAD_S} from number`,
]

// One statement per thousand rows: the first parameter is the rows as JSON, the second the account.
const INSERTS = [
  `insert into video (id, account_id, title, description, file_name, upload_time_s, status, duration_s, aspect_ratio,
      total_size_bytes, generation, folder_id)
    select video.value ->> 'id', given.account_id, video.value ->> 'title', '', video.value ->> 'fileName',
      video.value ->> 'uploadTimeS', 'ready', video.value ->> 'durationS', 1.7778, video.value ->> 'sizeBytes', 1, '${FOLDER}'
    from json_each(?) as video, (select ? as account_id) as given`,
  `insert into file (video_id, type, attachment_id, generation, width_px, height_px, size_bytes, token, blob, created_at_s)
    select video.value ->> 'id', 'poster', 'drawn', 1, size.value ->> 0, size.value ->> 1, 24000,
      substr(video.value ->> 'id', 1, 21) || size.key,
      (video.value ->> 'id') || '/' || substr(video.value ->> 'id', 1, 21) || size.key || '.sealed', video.value ->> 'uploadTimeS'
    from json_each(?) as video, json_each('[[854, 480], [427, 240]]') as size where ? is not null`,
  `insert into video_tag (account_id, name, position, ordinal)
    select account_id, tag.value, position, tag.key + 1
    from json_each(?) as given join video on video.id = given.value ->> 'id', json_each(given.value -> 'tags') as tag
    where account_id = ?`,
]

const TAGS = ['course', 'year', 'teacher'] as const

type Video = {
  id: string
  title: string
  fileName: string
  uploadTimeS: number
  durationS: number
  sizeBytes: number
  tags: string[]
}

function* batches(videos: number): Generator<Video[]> {
  const random = createRandom(1)
  const hitEvery = videos / HITS
  for (let first = 0; first < videos; first += BATCH_ROWS) {
    const numbers = Array.from({ length: Math.min(BATCH_ROWS, videos - first) }, (_, index) => first + index)
    yield numbers.map((number) => newVideo(number, number % hitEvery === 0, random))
  }
}

function newVideo(number: number, isHit: boolean, random: RandomInteger): Video {
  const words = Array.from({ length: 3 + random(5) }, () => WORDS[random(WORDS.length)] ?? '')
  if (isHit) words[random(words.length)] = SEARCH_WORD
  const [first = '', ...others] = words
  return {
    id: Array.from({ length: 32 }, () => random(16).toString(16)).join(''),
    title: [first[0]?.toUpperCase(), first.slice(1), ...others.map((word) => ` ${word}`)].join(''),
    fileName: `${WORDS[random(WORDS.length)]}-${number}.mp4`,
    uploadTimeS: FIRST_UPLOAD_S + 60 * number,
    durationS: 60 + random(7_000),
    sizeBytes: 10_000_000 + random(1_000_000_000),
    tags: Array.from({ length: random(4) }, (_, index) => `${TAGS[index]} ${random(20)}`),
  }
}

/** A random integer below the given one; the sequence is the same in every run. */
type RandomInteger = (below: number) => number

function createRandom(seed: number): RandomInteger {
  let state = seed
  // mulberry32
  return (below) => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * below)
  }
}
