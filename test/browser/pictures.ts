import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/**
 * Keeps a screenshot for a person to look at, in the folder that REELGATE_TEST_PICTURES names.
 * @param take is called only where there is such a folder: the software renderer of a test's browser takes a while
 */
export async function keepPicture(name: string, take: () => Promise<Buffer>): Promise<void> {
  const folder = process.env.REELGATE_TEST_PICTURES
  if (!folder) return
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, `${name.replaceAll(/[^\w-]+/g, '-')}.png`), await take())
}
