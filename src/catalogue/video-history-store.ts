import type { Db } from '../db/database.ts'

export async function listGenerations(db: Db, videoId: string) {
  return db
    .selectFrom('generation')
    .select(['number', 'createdAtS', 'postersExtractedAtS', 'finishedAtS', 'keptUntilS'])
    .where('videoId', '=', videoId)
    .orderBy('number')
    .execute()
}

/** The files of a video that were added to it: one of the sizes of each poster, captions, its MP4. */
export async function listAddedFiles(db: Db, videoId: string) {
  const files = await db
    .selectFrom('file')
    .select(['id', 'type', 'createdAtS', 'language', 'attachmentId'])
    .where('videoId', '=', videoId)
    .where('type', 'in', ['poster', 'caption', 'mp4'])
    .where('generation', 'is', null)
    .orderBy('id')
    .execute()
  return files.filter(
    (file, index) =>
      file.attachmentId === null || files.findIndex(({ attachmentId }) => attachmentId === file.attachmentId) === index,
  )
}
