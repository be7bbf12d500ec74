import { readlinkSync, realpathSync } from 'node:fs'
import path from 'node:path'

/** Paths that the loader names when it lists a program's libraries; none for a program without any. */
export function librariesIn(listing: string): string[] {
  return [...listing.matchAll(/^\s*(?:\S+ => )?(\/.*) \(0x[0-9a-f]+\)$/gm)].flatMap(([, file]) => file ?? [])
}

/**
 * What of this machine a program with these libraries needs to see: the folders they are in, each link on the way included. A folder
 * that has to do with one of `hidden` is not among them, only the libraries themselves: a mount for each costs time at every start of ffmpeg.
 */
export function visiblePaths(libraries: readonly string[], hidden: readonly string[]): string[] {
  const secrets = hidden.map(realPlace)
  const isHarmless = (folder: string) => {
    const place = realPlace(folder)
    return !secrets.some((secret) => isWithin(secret, place) || isWithin(place, secret))
  }
  const files = libraries.flatMap(linksOf)
  const places = new Set(files.map((file) => (isHarmless(path.dirname(file)) ? path.dirname(file) : file)))
  return [...places].filter((place) => ![...places].some((other) => other !== place && isWithin(place, other))).sort()
}

/** A file and what its name leads to, link by link: Debian's BLAS is reached through /etc/alternatives. */
function linksOf(file: string): string[] {
  const next = linkOf(file)
  return next === undefined ? [file] : [file, ...linksOf(next)]
}

function linkOf(file: string): string | undefined {
  try {
    return path.resolve(path.dirname(file), readlinkSync(file))
  } catch {
    return undefined // no link
  }
}

/** Where something is, or will be once it is made. */
function realPlace(place: string): string {
  try {
    return realpathSync(place)
  } catch {
    const parent = path.dirname(place)
    return parent === place ? place : path.join(realPlace(parent), path.basename(place))
  }
}

function isWithin(place: string, folder: string): boolean {
  const way = path.relative(folder, place)
  return way !== '..' && !way.startsWith('../')
}
