import { type Static, Type } from 'typebox'
import {
  addPlatform,
  changePlatform,
  findCourses,
  findPlatforms,
  openToCourse,
  type Platform,
  type PlatformDeps,
  removePlatform,
} from '../../lti/platform.ts'
import { createRegistrationLink } from '../../lti/registration.ts'
import { authenticateRequest } from '../server/caller.ts'
import type { App } from '../wire/app-type.ts'
import { EXAMPLE } from '../wire/examples.ts'
import { Flag, isOnIfGiven } from '../wire/flag.ts'
import { isoTime, isoTimeOrNull } from '../wire/iso-time.ts'
import { refuseMisspelledNames } from '../wire/misspelled-names.ts'
import { operation } from '../wire/operation.ts'

const TextOrNull = (description: string) => Type.Union([Type.String(), Type.Null()], { description })
const Url = (description: string) => Type.String({ maxLength: 2048, description })

const PlatformBody = Type.Object({
  id: Type.String(),
  name: Type.String(),
  issuer: Type.String({ description: 'as its messages name it' }),
  clientId: Type.String({ description: 'what the platform calls this server' }),
  authorizationUrl: Type.String(),
  tokenUrl: Type.String(),
  keysUrl: Type.String(),
  deploymentIds: Type.Array(Type.String(), { description: 'from which it launches; empty: the first launch adds its own' }),
  confirmed: Type.Boolean({ description: 'false: nothing is launched from it' }),
  folderId: TextOrNull('the folder that is open to its courses, with all in it; null: none'),
  showsNames: Type.Boolean({ description: 'viewers have their names in lists and watermarks' }),
  mayUpload: Type.Boolean({ description: 'teachers upload into the folder that is open to them' }),
  loginUrl: Type.String({ description: 'of this server, for a platform that is set up by hand' }),
  launchUrl: Type.String({ description: 'redirect and deep linking address of this server' }),
  publicKeysUrl: Type.String({ description: 'public keys of this server' }),
  createdAt: Type.String({ description: 'ISO 8601' }),
  lastLaunchAt: TextOrNull('ISO 8601'),
  lastError: TextOrNull('why a launch or a score failed last, in words'),
  lastErrorAt: TextOrNull('ISO 8601'),
})
type PlatformBody = Static<typeof PlatformBody>
const ListReply = Type.Object({ rows: Type.Array(PlatformBody) })
export type PlatformListBody = Static<typeof ListReply>

const LinkReply = Type.Object({
  url: Type.String({ description: 'for the administrator of the platform; works once' }),
  expiresAt: Type.String({ description: 'ISO 8601' }),
})
export type PlatformLinkBody = Static<typeof LinkReply>

const NameText = Type.String({ minLength: 1, maxLength: 100, examples: ['Moodle of our school'] })
const AddBody = Type.Object({
  name: NameText,
  issuer: Type.String({ maxLength: 2048, description: 'as its messages name it', examples: ['https://moodle.example'] }),
})
const ChangeBody = Type.Object({
  name: Type.Optional(NameText),
  clientId: Type.Optional(Type.String({ maxLength: 255 })),
  authorizationUrl: Type.Optional(Url('where it sends browsers back from, https')),
  tokenUrl: Type.Optional(Url('where it gives tokens for scores, https')),
  keysUrl: Type.Optional(Url('its public keys, https')),
  deploymentIds: Type.Optional(Type.Array(Type.String({ minLength: 1, maxLength: 255 }), { maxItems: 100 })),
  folderId: Type.Optional(TextOrNull('the folder to open, `root` for all; null: none')),
  showsNames: Type.Optional(Flag),
  mayUpload: Type.Optional(Flag),
  confirmed: Type.Optional({ ...Flag, description: '1: its people may launch videos; 0: no longer' }),
})

const CourseBody = Type.Object({
  courseId: Type.String({ description: 'as the platform calls it' }),
  title: Type.String(),
  folderId: TextOrNull('open to this course instead; null: what is open to the platform'),
  lastLaunchAt: Type.String({ description: 'ISO 8601' }),
})
const CoursesReply = Type.Object({ rows: Type.Array(CourseBody) })
export type CourseListBody = Static<typeof CoursesReply>
const OpenBody = Type.Object({
  courseId: Type.String({ maxLength: 255, examples: ['42'] }),
  folderId: TextOrNull('the folder to open to it; null: what is open to the platform'),
})

const PlatformParams = Type.Object({
  platformId: Type.String({ description: 'of the platform', examples: [EXAMPLE.platformId] }),
})
const RemovedReply = Type.Object({ message: Type.Literal('Removed') })
const OpenedReply = Type.Object({ message: Type.Literal('Opened') })

type LtiApiDeps = PlatformDeps & { publicUrl(): string }

/** Learning platforms, as docs/learning-platforms.md describes them. */
export function ltiRoutes(app: App, deps: LtiApiDeps): void {
  const bodyOf = (platform: Platform) => platformBody(deps.publicUrl(), platform)

  app.get(
    '/lti/platforms',
    operation('viewer', { summary: 'List learning platforms', response: { 200: ListReply } }),
    async (request) => ({
      rows: (await findPlatforms(deps, authenticateRequest(request).accountId)).map(bodyOf),
    }),
  )

  app.post(
    '/lti/links',
    operation('editor', {
      summary: 'Make a link that registers a learning platform',
      description:
        'An administrator of the platform opens it there, within an hour; it works once. The platform is listed then, and does nothing until it is confirmed.',
      response: { 200: LinkReply },
    }),
    async (request): Promise<PlatformLinkBody> => {
      const { secret, expiresAtS } = await createRegistrationLink(deps, authenticateRequest(request))
      return { url: `${deps.publicUrl()}/lti/register/${secret}`, expiresAt: isoTime(expiresAtS) }
    },
  )

  app.post(
    '/lti/platforms',
    operation('editor', {
      summary: 'Add a learning platform by hand',
      description: 'For one that cannot register by a link. Give it the addresses of the reply, then set its own and confirm it.',
      body: AddBody,
      response: { 200: PlatformBody },
    }),
    async (request) => {
      refuseMisspelledNames(Object.keys(request.body), Object.keys(AddBody.properties))
      return bodyOf(await addPlatform(deps, authenticateRequest(request), request.body))
    },
  )

  app.put(
    '/lti/platforms/:platformId',
    operation('editor', {
      summary: 'Change or confirm a learning platform',
      description: 'Only the given fields. Compare issuer, client id and addresses with the platform before you confirm it.',
      params: PlatformParams,
      body: ChangeBody,
      response: { 200: PlatformBody },
    }),
    async (request) => {
      refuseMisspelledNames(Object.keys(request.body), Object.keys(ChangeBody.properties))
      const { showsNames, mayUpload, confirmed, ...texts } = request.body
      const settings = {
        ...texts,
        showsNames: isOnIfGiven(showsNames),
        mayUpload: isOnIfGiven(mayUpload),
        isConfirmed: isOnIfGiven(confirmed),
      }
      return bodyOf(await changePlatform(deps, authenticateRequest(request), request.params.platformId, settings))
    },
  )

  app.delete(
    '/lti/platforms/:platformId',
    operation('editor', {
      summary: 'Remove a learning platform',
      description: 'Nothing is launched from it any more, and no score is sent. What its people have watched stays.',
      params: PlatformParams,
      response: { 200: RemovedReply },
    }),
    async (request) => {
      await removePlatform(deps, authenticateRequest(request), request.params.platformId)
      return { message: 'Removed' as const }
    },
  )

  app.get(
    '/lti/platforms/:platformId/courses',
    operation('viewer', {
      summary: 'List the courses of a learning platform',
      description: 'That have launched a video or chosen one, the last first; at most 1000.',
      params: PlatformParams,
      response: { 200: CoursesReply },
    }),
    async (request): Promise<CourseListBody> => {
      const { accountId } = authenticateRequest(request)
      const courses = await findCourses(deps, accountId, request.params.platformId)
      return {
        rows: courses.map(({ courseId, title, folderId, lastLaunchAtS }) => ({
          ...{ courseId, title, folderId },
          lastLaunchAt: isoTime(lastLaunchAtS),
        })),
      }
    },
  )

  app.put(
    '/lti/platforms/:platformId/courses',
    operation('editor', {
      summary: 'Open a folder to one course',
      description: 'Its teachers choose from this folder alone, and its links play what is in it.',
      params: PlatformParams,
      body: OpenBody,
      response: { 200: OpenedReply },
    }),
    async (request) => {
      const { platformId } = request.params
      await openToCourse(deps, authenticateRequest(request), { platformId, ...request.body })
      return { message: 'Opened' as const }
    },
  )
}

function platformBody(publicUrl: string, platform: Platform): PlatformBody {
  const { accountId: _, confirmedAtS, createdAtS, lastLaunchAtS, lastErrorAtS, ...body } = platform
  const base = `${publicUrl}/lti/${platform.id}`
  return {
    ...body,
    confirmed: confirmedAtS !== null,
    ...{ loginUrl: `${base}/login`, launchUrl: `${base}/launch`, publicKeysUrl: `${base}/keys` },
    createdAt: isoTime(createdAtS),
    lastLaunchAt: isoTimeOrNull(lastLaunchAtS),
    lastErrorAt: isoTimeOrNull(lastErrorAtS),
  }
}
