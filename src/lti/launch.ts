import { hash } from 'node:crypto'
import type { LtiPlatformRow } from '../db/tables.ts'
import { Failure } from '../errors.ts'
import { type ChooseTicket, sealTicket } from './choose.ts'
import { beginGrade } from './grade.ts'
import { type Message, type ReadDeps, readMessage, userIdOf } from './message.ts'
import { getOpenFolder, getOpenVideo } from './opened.ts'
import { listDeployments, type PlatformDeps } from './platform.ts'
import { findPlatform, saveCourse, setFirstDeployment, spendNonce, updatePlatform } from './platform-store.ts'
import { beginLogin, type Login, type OpenLogin, openLogin } from './state.ts'
import type { RecordTrouble } from './trouble.ts'

// A launch: the platform sends the browser here, this server back to the platform, and the platform once more here with who it is.

export type LaunchDeps = ReadDeps & Pick<PlatformDeps, 'db' | 'write' | 'nowS' | 'masterKey'> & { recordTrouble: RecordTrouble }

/** What a platform sends first (LTI core, section 5.1.1.1). */
type LoginRequest = {
  iss: string
  login_hint: string
  client_id?: string | undefined
  lti_message_hint?: string | undefined
  lti_storage_target?: string | undefined
}

/** A frame of the platform that stores for tools, and whose messages count. */
type PlatformStorage = { frame: string; origin: string }

/**
 * Begins a launch. Writes nothing.
 * @returns where the browser goes next, with what it keeps meanwhile
 * @throws Failure `not-found`, `forbidden`, in words for the person who launches
 */
export async function startLogin(
  deps: Pick<LaunchDeps, 'db' | 'nowS' | 'masterKey'>,
  platformId: string,
  { request, launchUrl }: { request: LoginRequest; launchUrl: string },
): Promise<{ url: string; login: Login; storage: PlatformStorage | undefined }> {
  const platform = await getActivePlatform(deps, platformId)
  if (request.iss !== platform.issuer || (request.client_id && request.client_id !== platform.clientId))
    throw new Failure('forbidden', 'This address belongs to another learning platform. Register this one by a link of its own.')
  const login = beginLogin(deps, platformId, request.lti_storage_target || undefined)
  const url = new URL(platform.authorizationUrl)
  const parameters = {
    scope: 'openid',
    response_type: 'id_token',
    response_mode: 'form_post',
    prompt: 'none',
    client_id: platform.clientId,
    redirect_uri: launchUrl,
    state: login.state,
    nonce: login.nonce,
    login_hint: request.login_hint,
    ...(request.lti_message_hint && { lti_message_hint: request.lti_message_hint }),
  }
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value)
  return { url: url.href, login, storage: storageOf(platform, request.lti_storage_target) }
}

function storageOf({ authorizationUrl }: LtiPlatformRow, frame: string | undefined): PlatformStorage | undefined {
  return frame ? { frame, origin: new URL(authorizationUrl).origin } : undefined
}

/** @throws Failure `not-found`; `forbidden` before it is confirmed */
export async function getActivePlatform({ db }: Pick<LaunchDeps, 'db'>, id: string): Promise<LtiPlatformRow> {
  const platform = await findPlatform(db, id)
  if (!platform) throw new Failure('not-found', 'This learning platform is not registered here, or was removed.')
  if (platform.confirmedAtS === null)
    throw new Failure('forbidden', 'The owner of the videos has not confirmed this learning platform yet.')
  return platform
}

/** What comes back from the platform, through the browser. */
type LaunchRequest = {
  state: string
  idToken: string
  /** The secret of a login that the browser keeps in a cookie of this name. */
  readCookie(name: string): string | undefined
  /** The same out of the platform's storage, as a page of this server has asked for it; undefined: it was not asked yet. */
  stored: string | undefined
}

/** Who plays what. */
export type Play = {
  kind: 'play'
  accountId: string
  videoId: string
  userId: string | undefined
  name: string | undefined
  locale: string | undefined
  /** Of the cookie that is done with. */
  loginName: string
}

type Launched =
  | { kind: 'ask-storage'; storage: PlatformStorage; name: string }
  | Play
  | { kind: 'choose'; platform: LtiPlatformRow; ticket: ChooseTicket; sealed: string; loginName: string }

/**
 * Receives a launch. Each is accepted once.
 * @throws Failure in words for the person who launches, and for the owner, who finds them at the platform
 */
export async function receiveLaunch(deps: LaunchDeps, platformId: string, request: LaunchRequest): Promise<Launched> {
  const platform = await getActivePlatform(deps, platformId)
  try {
    return await acceptLaunch(deps, platform, request)
  } catch (error) {
    if (error instanceof Failure) await deps.recordTrouble(platform, error.message)
    throw error
  }
}

async function acceptLaunch(deps: LaunchDeps, platform: LtiPlatformRow, request: LaunchRequest): Promise<Launched> {
  const login = openLogin(deps, platform.id, request.state)
  if (!login)
    throw new Failure('forbidden', 'This launch began more than ten minutes ago, or elsewhere. Open the activity again.')
  if (!login.isOf(request.readCookie(login.name))) {
    const storage = storageOf(platform, login.storage)
    if (storage && request.stored === undefined) return { kind: 'ask-storage', storage, name: login.name }
    if (!login.isOf(request.stored)) throw otherBrowser()
  }
  const message = await readMessage(deps, platform, request.idToken)
  if (message.nonce !== login.nonce)
    throw new Failure('forbidden', 'The message of the platform belongs to another launch. Open the activity again.')
  await useLaunch(deps, platform, login, message)
  const outcome = message.kind === 'resource' ? await admit(deps, platform, message) : await beginChoice(deps, platform, message)
  return { ...outcome, loginName: login.name }
}

function otherBrowser(): Failure {
  return new Failure(
    'forbidden',
    'This browser does not let the video keep what it needs inside this page. Have the activity open in a new window, or allow cookies of this site.',
  )
}

const NOTED_EVERY_S = 10

/** Marks the launch as used, and checks its deployment, in one transaction. */
async function useLaunch(
  { write, nowS }: LaunchDeps,
  platform: LtiPlatformRow,
  { nonce, endsAtS }: OpenLogin,
  { deploymentId, course }: Message,
): Promise<void> {
  const atS = nowS()
  await write(async (tx) => {
    if (!(await spendNonce(tx, hash('sha256', `${platform.id} ${nonce}`, 'buffer'), endsAtS)))
      throw new Failure('forbidden', 'This launch was used already. Open the activity again.')
    if (!(await setFirstDeployment(tx, platform.id, deploymentId))) {
      const current = await getActivePlatform({ db: tx }, platform.id)
      if (!listDeployments(current).includes(deploymentId)) throw unknownDeployment(deploymentId)
    }
    if (course)
      await saveCourse(tx, {
        ...{ platformId: platform.id, accountId: platform.accountId },
        ...{ courseId: course.id, title: course.title, lastLaunchAtS: atS },
      })
    if ((platform.lastLaunchAtS ?? 0) < atS - NOTED_EVERY_S) await updatePlatform(tx, platform.id, { lastLaunchAtS: atS })
  })
}

function unknownDeployment(id: string): Failure {
  const shown = id.replace(/[^\x20-\x7e]/g, '?').slice(0, 100)
  return new Failure(
    'forbidden',
    `The platform launches from its deployment "${shown}", which is not open to these videos. Their owner can add it.`,
  )
}

async function admit(
  deps: LaunchDeps,
  platform: LtiPlatformRow,
  message: Message & { kind: 'resource' },
): Promise<Omit<Play, 'loginName'>> {
  const { db, write, nowS, masterKey } = deps
  const { id: platformId, accountId } = platform
  if (message.videoId === undefined)
    throw new Failure('forbidden', 'No video is chosen for this activity yet. Its teacher chooses one in its settings.')
  const open = await getOpenFolder(db, { platform, courseId: message.course?.id })
  const { id: videoId } = await getOpenVideo(db, accountId, { open, videoId: message.videoId })
  const { subject, grade } = message
  const userId = subject === undefined ? undefined : userIdOf(platform.issuer, subject)
  if (grade && subject !== undefined && userId !== undefined && message.isLearner)
    await write((tx) => beginGrade(tx, masterKey, { platformId, accountId, userId, videoId, subject, ...grade }, nowS()))
  const name = platform.showsNames === 1 ? message.name : undefined
  return { kind: 'play', accountId, videoId, userId, name, locale: message.locale }
}

async function beginChoice(deps: LaunchDeps, platform: LtiPlatformRow, message: Message & { kind: 'choose' }) {
  if (!message.isTeacher) throw new Failure('forbidden', 'Only teachers of the course choose videos for it.')
  const { returnUrl, data, mayGrade, deploymentId, course } = message
  await getOpenFolder(deps.db, { platform, courseId: course?.id })
  const request = { returnUrl, data, mayGrade, deploymentId, courseId: course?.id, courseTitle: course?.title }
  return { kind: 'choose' as const, platform, ...sealTicket(deps, { platformId: platform.id, ...request }) }
}
