import type { Retired } from '../blob-store.ts'
import type { Bucket } from './bucket.ts'
import { listObjects, removeObjects } from './objects.ts'

// What was retired: an empty object for each blob or folder, `retired/KIND/NAME`, whose age is the time since. The blobs stay where they are.

/** After the name of a folder: no name has it. */
const FOLDER = '!'

/** @param kind of the blobs, below the prefix of the bucket */
export function openRetired(bucket: Bucket, kind: string) {
  const root = `${bucket.address.prefix}retired/${kind}/`
  const keyOf = ({ name, isFolder }: Omit<Retired, 'retiredAtS'>) => `${root}${name}${isFolder ? FOLDER : ''}`
  const add = async (name: string, isFolder: boolean) => {
    await bucket.send({ method: 'PUT', key: keyOf({ name, isFolder }), body: Buffer.alloc(0) })
  }

  return {
    add: (name: string) => add(name, false),
    addFolder: (name: string) => add(name, true),
    async *list(): AsyncGenerator<Retired> {
      for await (const { key, changedAtS } of listObjects(bucket, root)) {
        const isFolder = key.endsWith(FOLDER)
        yield { name: key.slice(root.length, isFolder ? -FOLDER.length : undefined), isFolder, retiredAtS: changedAtS }
      }
    },
    async end(retired: Retired): Promise<void> {
      await bucket.send({ method: 'DELETE', key: keyOf(retired) })
    },
    async endBelow(folder: string): Promise<void> {
      const found = await Array.fromAsync(listObjects(bucket, `${root}${folder}/`))
      await removeObjects(
        bucket,
        found.map(({ key }) => key),
      )
    },
  }
}
