import { type Static, Type } from 'typebox'
import { Value } from 'typebox/value'
import type { ListDeps } from '../catalogue/catalogue-deps.ts'
import { openFolder, ROOT_FOLDER_ID } from '../catalogue/folder.ts'
import { findVideos, type Video } from '../catalogue/video.ts'
import { newToken } from '../crypto/secret.ts'
import type { FolderRow, LtiPlatformRow } from '../db/tables.ts'
import { Failure } from '../errors.ts'
import { createPlatformUploadToken } from '../ingest/upload-token.ts'
import { COMPLETION_PARAMETER } from './message.ts'
import { assertFolderOpen, getOpenFolder, getOpenVideo } from './opened.ts'
import type { PlatformDeps } from './platform.ts'
import { seal, unseal } from './state.ts'
import { signForPlatform } from './tool-key.ts'

// Deep linking 2.0: a teacher chooses a video, and the platform keeps a link to it. What the platform asked for goes through the teacher's
// browser in a sealed ticket: it can be neither changed nor used for another course.

const Ticket = Type.Object({
  platformId: Type.String(),
  deploymentId: Type.String(),
  courseId: Type.Optional(Type.String()),
  courseTitle: Type.Optional(Type.String()),
  returnUrl: Type.String(),
  data: Type.Optional(Type.String()),
  mayGrade: Type.Boolean(),
  endsAtS: Type.Integer(),
})
export type ChooseTicket = Static<typeof Ticket>

type SealDeps = Pick<PlatformDeps, 'masterKey' | 'nowS'>

/** For finding and uploading a video. */
const TICKET_LIFE_S = 4 * 3600

export function sealTicket(deps: SealDeps, request: Omit<ChooseTicket, 'endsAtS'>): { ticket: ChooseTicket; sealed: string } {
  const ticket = { ...request, endsAtS: deps.nowS() + TICKET_LIFE_S }
  return { ticket, sealed: seal(deps, 'choose', ticket) }
}

/** @throws Failure `forbidden` */
export function openTicket(deps: SealDeps, platformId: string, sealed: string): ChooseTicket {
  const ticket = unseal(deps, 'choose', sealed)
  if (Value.Check(Ticket, ticket) && ticket.platformId === platformId && ticket.endsAtS > deps.nowS()) return ticket
  throw new Failure('forbidden', 'This page has expired. Open it again from the course.')
}

const PAGE_SIZE = 24

/** What a teacher sees: a folder that is open, and its videos, or those whose title contains a text. */
export type OpenVideos = {
  folder: FolderRow
  /** Undefined: it is the one that is open. */
  parent: FolderRow | undefined
  folders: readonly { id: string; name: string }[]
  videos: readonly Video[]
  page: number
  hasMore: boolean
}

/** @param asked.folderId undefined: the folder that is open @throws Failure `forbidden`, `not-found` */
export async function findOpenVideos(
  deps: ListDeps,
  platform: LtiPlatformRow,
  { courseId }: ChooseTicket,
  asked: { folderId: string | undefined; text: string; page: number },
): Promise<OpenVideos> {
  const { db } = deps
  const { accountId } = platform
  const open = await getOpenFolder(db, { platform, courseId })
  const folderId = asked.folderId ?? open
  await assertFolderOpen(db, accountId, { open, folderId })
  const { folder, folders, parent } = await openFolder(deps, accountId, folderId)
  // The root holds all: a search there looks into every folder.
  const filter = { ...(asked.text && { text: asked.text }), ...(asked.text && folderId === ROOT_FOLDER_ID ? {} : { folderId }) }
  const { count, videos } = await findVideos(deps, accountId, filter, { page: asked.page, limit: PAGE_SIZE, countUpTo: 10_000 })
  const hasMore = asked.page * PAGE_SIZE < count
  return { folder, parent: folderId === open ? undefined : parent, folders, videos, page: asked.page, hasMore }
}

/** What a teacher has chosen. `completedAtPercent`: undefined: the course does not grade it. */
type Choice = { videoId: string; completedAtPercent: number | undefined }

/** How long a platform may take to read an answer. */
const ANSWER_LIFE_S = 300

/**
 * The answer for the platform: a link to the video.
 * @param urlOf the address of a video in links
 * @throws Failure `forbidden` when the video is not open to the course
 */
export async function answerChoice(
  { db, masterKey, wallNowS }: Pick<PlatformDeps, 'db' | 'masterKey'> & { wallNowS: () => number },
  platform: LtiPlatformRow,
  ticket: ChooseTicket,
  { videoId, completedAtPercent, urlOf }: Choice & { urlOf(videoId: string): string },
): Promise<{ returnUrl: string; token: string }> {
  const open = await getOpenFolder(db, { platform, courseId: ticket.courseId })
  const { title } = await getOpenVideo(db, platform.accountId, { open, videoId })
  const isGraded = ticket.mayGrade && completedAtPercent !== undefined
  const item = {
    type: 'ltiResourceLink',
    title,
    url: urlOf(videoId),
    iframe: { width: 960, height: 540 },
    ...(isGraded && {
      custom: { [COMPLETION_PARAMETER]: String(completedAtPercent) },
      lineItem: { label: title, scoreMaximum: 100, resourceId: videoId },
    }),
  }
  const claims = {
    ...{ iss: platform.clientId, sub: platform.clientId, aud: platform.issuer, nonce: newToken() },
    'https://purl.imsglobal.org/spec/lti/claim/message_type': 'LtiDeepLinkingResponse',
    'https://purl.imsglobal.org/spec/lti/claim/version': '1.3.0',
    'https://purl.imsglobal.org/spec/lti/claim/deployment_id': ticket.deploymentId,
    'https://purl.imsglobal.org/spec/lti-dl/claim/content_items': [item],
    ...(ticket.data !== undefined && { 'https://purl.imsglobal.org/spec/lti-dl/claim/data': ticket.data }),
  }
  const token = await signForPlatform(masterKey, platform, claims, { nowS: wallNowS(), lifeS: ANSWER_LIFE_S })
  return { returnUrl: ticket.returnUrl, token }
}

/**
 * A token with which a teacher's page uploads into the folder that is open to the course.
 * @throws Failure `forbidden` where the owner has not allowed it
 */
export async function allowUpload(
  deps: PlatformDeps,
  platform: LtiPlatformRow,
  { courseId, courseTitle }: ChooseTicket,
  origin: string,
): Promise<string> {
  if (platform.mayUpload !== 1) throw new Failure('forbidden', 'The owner of the videos has not allowed uploads from courses.')
  const folderId = await getOpenFolder(deps.db, { platform, courseId })
  const reference = `${platform.name}${courseTitle ? `: ${courseTitle}` : ''}`.slice(0, 200)
  return createPlatformUploadToken(deps, { accountId: platform.accountId, origin, folderId, reference })
}
