import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { inject } from 'vitest'
import type { Installed } from './data-folder.ts'
import { DATABASE } from './postgres.ts'
import type {} from './shared-setup.ts'

/** A stopped installation in which one video is finished: a copy of it spares a test the encode. */
export type Golden = Installed & { owner: { apiKey: string }; videoId: string }

/**
 * Finds the golden installation of a video, or makes it: once in a run for each name, whichever worker asks first.
 * @param make starts a server in the folder that it is given, and leaves it stopped with the video finished
 */
export async function getGolden(key: string, make: (folder: string) => Promise<Golden>): Promise<Golden> {
  const name = createHash('sha256').update(`${DATABASE}\0${key}`).digest('hex').slice(0, 16)
  const folder = join(inject('goldenFolder'), name)
  const result = `${folder}.json`
  if (!(await isFirst(folder))) {
    while (!existsSync(result)) await pause(20)
    const made: Golden | { error: string } = JSON.parse(await readFile(result, 'utf8'))
    if ('error' in made) throw new Error(`another test could not make this installation: ${made.error}`)
    return made
  }
  try {
    const golden = await make(folder)
    await publish(result, golden)
    return golden
  } catch (error) {
    await publish(result, { error: String(error) })
    throw error
  }
}

async function isFirst(folder: string): Promise<boolean> {
  return mkdir(folder).then(
    () => true,
    () => false,
  )
}

async function publish(path: string, value: Golden | { error: string }): Promise<void> {
  await writeFile(`${path}.new`, JSON.stringify(value))
  await rename(`${path}.new`, path)
}
