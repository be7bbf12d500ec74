import { readlinkSync, realpathSync } from 'node:fs'
import path from 'node:path'

/** The paths in the loader's list of a program's libraries. */
export function librariesIn(listing: string): string[] {
  return [...listing.matchAll(/^[ \t]*(?:\S+ => )?(\/.*) \(0x[0-9a-f]+\)$/gm)].flatMap(([, file]) => file ?? [])
}

/**
 * The paths that a program with these libraries needs: their folders, including those of symbolic links. A folder that contains one of
 * `hidden`, or is in it, is left out; its libraries are listed one by one, which costs a mount each at every start of ffmpeg.
 */
export function visiblePaths(libraries: readonly string[], hidden: readonly string[]): string[] {
  const secrets = hidden.map(realPath)
  const isAllowed = (folder: string) => {
    const candidate = realPath(folder)
    return !secrets.some((secret) => isWithin(secret, candidate) || isWithin(candidate, secret))
  }
  const files = [...new Set(libraries)].flatMap(followLinks)
  const folders = new Set([...new Set(files.map((file) => path.dirname(file)))].filter(isAllowed))
  const paths = new Set(files.map((file) => (folders.has(path.dirname(file)) ? path.dirname(file) : file)))
  return [...paths].filter((candidate) => ![...paths].some((other) => other !== candidate && isWithin(candidate, other))).sort()
}

/** A file and the targets of its symbolic links, one by one: Debian's BLAS is linked through /etc/alternatives. */
function followLinks(file: string): string[] {
  const next = readLink(file)
  return next === undefined ? [file] : [file, ...followLinks(next)]
}

function readLink(file: string): string | undefined {
  try {
    return path.resolve(path.dirname(file), readlinkSync(file))
  } catch {
    return undefined // not a link
  }
}

/** The real path of a file, also of one that does not exist yet. */
export function realPath(candidate: string): string {
  try {
    return realpathSync(candidate)
  } catch {
    const parent = path.dirname(candidate)
    return parent === candidate ? candidate : path.join(realPath(parent), path.basename(candidate))
  }
}

export function isWithin(candidate: string, folder: string): boolean {
  const relative = path.relative(folder, candidate)
  return relative !== '..' && !relative.startsWith('../')
}
