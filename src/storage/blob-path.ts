import { join } from 'node:path'

/** The path of a blob in a folder, for the engine of folders alone. */
export function blobPath(root: string, name: string): string {
  if (!isBlobName(name)) throw new Error(`not the name of a blob: ${JSON.stringify(name)}`)
  return join(root, name)
}

export function isBlobName(name: string): boolean {
  return /^[\w-][\w.-]*(\/[\w-][\w.-]*)*$/.test(name)
}
