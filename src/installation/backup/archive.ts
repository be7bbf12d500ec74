import { createReadStream } from 'node:fs'
import { lstat, opendir } from 'node:fs/promises'
import { join } from 'node:path'
import { createTarPacker, type TarPackController } from 'modern-tar'

/**
 * A tar archive of what these names of a folder have below them. It reads one file after another, and no faster than the archive is read:
 * memory grows neither with the number of files nor with their sizes.
 */
export function archiveEntries(folder: string, names: readonly string[]): ReadableStream<Uint8Array> {
  const { readable, controller } = createTarPacker()
  const addAll = async () => {
    for (const name of names) await addEntry(controller, folder, name)
  }
  addAll().then(controller.finalize, controller.error)
  return readable
}

async function addEntry(archive: TarPackController, folder: string, name: string): Promise<void> {
  const path = join(folder, name)
  const stat = await lstat(path)
  const { uid, gid, mtime } = stat
  const about = { mode: stat.mode & 0o7777, uid, gid, mtime }
  if (stat.isDirectory()) {
    await archive.add({ ...about, name: `${name}/`, type: 'directory', size: 0 }).close()
    for await (const entry of await opendir(path)) await addEntry(archive, folder, `${name}/${entry.name}`)
    return
  }
  const content = archive.add({ ...about, name, type: 'file', size: stat.size }).getWriter()
  for await (const chunk of createReadStream(path)) await content.write(chunk)
  await content.close()
}
