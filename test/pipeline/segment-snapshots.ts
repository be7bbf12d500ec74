import { createHash } from 'node:crypto'
import { blobOf, type Installed, listSegments, type StoredSegment } from '../data-folder.ts'

/** Which file a segment was when it was first seen published, and its text. */
export type Sightings = Map<string, { file: string; sha256: string }>

/** Looks at every published segment that was not seen before. */
export async function lookAtSegments(installed: Installed, videoId: string, seen: Sightings): Promise<void> {
  for (const segment of listSegments(installed, videoId)) {
    const name = `${segment.rendition_id}/${segment.number}`
    if (!seen.has(name)) seen.set(name, { file: segment.file, sha256: await hashOf(installed, segment) })
  }
}

/** The segments that are another text now than when they were first seen, or are gone. */
export async function findChanged(installed: Installed, videoId: string, seen: Sightings): Promise<string[]> {
  const now: Sightings = new Map()
  await lookAtSegments(installed, videoId, now)
  return [...seen].flatMap(([name, { file, sha256 }]) =>
    now.get(name)?.file === file && now.get(name)?.sha256 === sha256 ? [] : [name],
  )
}

async function hashOf(installed: Installed, { file }: StoredSegment): Promise<string> {
  return createHash('sha256')
    .update(await blobOf(installed, 'segments', file).read())
    .digest('hex')
}
