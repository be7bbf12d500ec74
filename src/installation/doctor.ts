import { access, constants, open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { KEY_WARNING_S } from '../alerts/operations.ts'
import { checkMailServer, serverName } from '../alerts/smtp.ts'
import { UNKNOWN_PROXY } from '../alerts/unknown-proxy.ts'
import { describeDamagedFiles } from '../assets/damaged-file.ts'
import type { FileKind, FileName } from '../assets/file-damage-store.ts'
import { tryTranscriber } from '../assets/transcribe.ts'
import type { Config } from '../config/config.ts'
import { MAX_ABSENCE_S } from '../encode/capacity.ts'
import { CHUNK_KINDS } from '../encode/chunk-plan.ts'
import { Failure, hostFailure } from '../errors.ts'
import { type Check, type Finding, failure, judgeSync, ok, timeSyncs, warning } from '../health-check.ts'
import { assertMayListen, LISTEN_VARIABLES, METRICS_VARIABLES } from '../net/listen-failure.ts'
import { unknownProxiesAmong } from '../net/trusted-proxies.ts'
import { createOutboundPolicy } from '../outbound/policy.ts'
import { parseDefaults, whyRefused } from '../playback/otp-defaults.ts'
import { openSandbox, sandboxAdvice } from '../sandbox/bubblewrap.ts'
import { type ServerSigns, stateOf } from '../servers/server-list.ts'
import { hasRoomIn, isFull } from '../storage/space.ts'
import { whyCopy } from '../webhooks/restored-copy.ts'
import { LAST_BACKUP, parseLastBackup } from './backup/last-backup.ts'
import { examineBuckets, examineUsedBuckets, findFilesBucket } from './bucket-health.ts'
import { assertDatabaseUsable, examineDatabase, identifyingFiles, locateDatabase, peekSetting } from './database.ts'
import { isServerRunning } from './lock.ts'
import { checkMasterKey } from './master-key.ts'
import { examineNetwork } from './network-health.ts'

const HOST_CHECKS: Readonly<Record<string, (config: Config) => Promise<Finding>>> = {
  async 'data folder'({ dataDir }) {
    await access(dataDir, constants.R_OK | constants.W_OK).catch(() => {
      throw new Failure(
        'unavailable',
        `${dataDir} is missing or cannot be written. Correct its permissions, or set REELGATE_DATA.`,
      )
    })
    return (await isFull(dataDir))
      ? failure(`${dataDir} cannot be written: the disk is full. Delete videos, which still works, or free space in another way.`)
      : ok(`${dataDir} can be written.`)
  },
  async 'free space'({ dataDir }) {
    return (await hasRoomIn([dataDir], 0))
      ? ok('There is enough space.')
      : warning('The disk is nearly full: uploads are refused and encodes wait. Free some space.')
  },
  async disk({ dataDir }) {
    const path = join(dataDir, `doctor-${process.pid}`)
    const file = await open(path, 'wx', 0o600)
    try {
      await rm(path) // still open: whatever happens, no file remains
      return judgeSync('fsync', await timeSyncs(() => file.write(Buffer.alloc(4096), 0, 4096, 0).then(() => file.sync())))
    } finally {
      await file.close()
    }
  },
  async ffmpeg(config) {
    const sandbox = await openSandbox(config)
    const advice = sandboxAdvice(sandbox)
    if (!advice) return ok(`ffmpeg ${sandbox.ffmpegVersion}, in bubblewrap.`)
    return (sandbox.weak ? warning : failure)([advice.effect, ...advice.cures].join(' '))
  },
  async start(config) {
    await assertStartable(config)
    return ok('Nothing prevents a start.')
  },
}

/** What a start asserts itself, in its order, each by the same function: so the two cannot disagree. Nothing is changed. */
async function assertStartable(config: Config): Promise<void> {
  createOutboundPolicy(config.outboundAllow)
  const isRunning = isServerRunning(config)
  await assertDatabaseUsable(config)
  if (isRunning) return // it has its ports
  const { host, port, metrics } = config
  await assertMayListen({ host, port, ...LISTEN_VARIABLES })
  if (metrics) await assertMayListen({ ...metrics, ...METRICS_VARIABLES })
}

/**
 * Checks everything that an installation needs; a server may be running. Nothing is changed.
 * @param checkDatabase by default the whole file is read, which a running server has no time for
 */
export async function examineInstallation(
  config: Config,
  checkDatabase: (config: Config) => Promise<Check[]> = examineDatabase,
): Promise<Check[]> {
  const checks: Check[] = []
  for (const [check, run] of Object.entries(HOST_CHECKS)) checks.push({ check, ...(await asFinding(() => run(config))) })
  checks.push(...(await checkDatabase(config)))
  // The database knows which key belongs to it, and which installation is the original.
  if (checks.every(({ check, state }) => check !== 'database' || state !== 'trouble')) {
    checks.push({ check: 'master key', ...(await asFinding(() => examineMasterKey(config))) })
    const readSetting = (setting: string) => peekSetting(config, setting)
    const why = await whyCopy(readSetting, config.sharesDatabase ? [] : identifyingFiles(config)).catch(() => undefined)
    if (why !== undefined) checks.push({ check: 'webhooks', ...warning(why) })
    checks.push({
      check: 'backup',
      ...(await asFinding(async () => judgeLastBackup(await readSetting(LAST_BACKUP), Date.now()))),
    })
    checks.push({ check: 'webhook deliveries', ...(await asFinding(() => examineWebhooks(config))) })
    checks.push({ check: 'files', ...(await asFinding(() => examineFiles(config))) })
    checks.push({ check: 'OTP defaults', ...(await asFinding(() => examineOtpDefaults(config))) })
    checks.push({ check: 'API keys', ...(await asFinding(() => examineApiKeys(config, Date.now() / 1000))) })
  }
  if (config.sharesDatabase)
    checks.push({ check: 'servers', ...(await asFinding(() => examineServers(config, Date.now() / 1000))) })
  if (config.bucket || config.otherBucket) {
    const readSetting = (name: string) => peekSetting(config, name)
    const finding = await asFinding(() => examineBuckets(config, readSetting))
    checks.push({ check: 'bucket', ...finding })
    if (finding.state !== 'trouble')
      checks.push({ check: 'bucket rules', ...(await asFinding(() => examineUsedBuckets(config, readSetting))) })
  }
  if (config.encoders === 0)
    checks.push({ check: 'encoders', ...(await asFinding(() => examineEncoders(config, Date.now() / 1000))) })
  if (config.transcriber) checks.push({ check: 'transcription', ...(await asFinding(() => examineTranscriber(config))) })
  if (config.alertMail) checks.push({ check: 'e-mail', ...(await asFinding(() => examineMail(config))) })
  const filesBucket = (await findFilesBucket(config, (name) => peekSetting(config, name)).catch(() => undefined))?.address
  const network = { ...config, bucket: filesBucket }
  return [...checks, ...(await examineNetwork(network, () => findUnknownProxy(config).catch(() => undefined)))]
}

/** Runs the program that transcribes, as a video would, on a second of silence. */
async function examineTranscriber(config: Config): Promise<Finding> {
  const { transcriber } = config
  if (!transcriber) return ok('Captions are not made of speech.')
  await access(transcriber.path, constants.X_OK).catch(() => {
    throw new Failure('unavailable', `${transcriber.path} is missing or no program. Correct REELGATE_TRANSCRIBE_COMMAND.`)
  })
  for (const file of transcriber.files)
    await access(file, constants.R_OK).catch(() => {
      throw new Failure('unavailable', `${file} is missing or cannot be read. Correct REELGATE_TRANSCRIBE_FILES.`)
    })
  try {
    await tryTranscriber({ sandbox: await openSandbox(config), transcriber, language: 'en' })
  } catch (error) {
    if (!(error instanceof Failure) || !(error.cause instanceof Error)) throw error
    throw new Failure('unavailable', `In its sandbox ${error.cause.message}`)
  }
  return ok(`${transcriber.path} runs in its sandbox.`)
}

/** Signs in to the mail server without sending anything, and looks for alerts that it did not take. */
async function examineMail(config: Config): Promise<Finding> {
  const { alertMail } = config
  if (!alertMail) return ok('Alerts are not sent by e-mail.')
  await checkMailServer(alertMail)
  const query =
    'select problem from mail where recipient is null and sent_at_s is null and problem is not null order by day desc limit 1'
  const [unsent] = await (await locateDatabase(config)).peekRows<{ problem: string }>('mail', query)
  if (unsent) return warning(`The last alert by e-mail was not sent: ${unsent.problem} Try it with reelgate alert test.`)
  return ok(`${serverName(alertMail)} takes mails for ${alertMail.to.join(', ')}.`)
}

const PROXY_MEMORY_S = 7 * 24 * 3600

/** A proxy that the server has met in the last days, and that is still not trusted. */
async function findUnknownProxy(config: Config): Promise<string | undefined> {
  const query = `select numbers from alert where cause = '${UNKNOWN_PROXY}' and at_s > ${Math.floor(Date.now() / 1000) - PROXY_MEMORY_S} order by id desc limit 1`
  const [alert] = await (await locateDatabase(config)).peekRows<{ numbers: string }>('alert', query)
  const { address }: { address?: string } = alert ? JSON.parse(alert.numbers) : {}
  return address !== undefined && unknownProxiesAmong(config.trustedProxies)(address) ? address : undefined
}

const MAX_NAMED = 3

async function examineWebhooks(config: Config): Promise<Finding> {
  const query = 'select id from webhook where failing_since_s is not null order by failing_since_s, id'
  const failing = await (await locateDatabase(config)).peekRows<{ id: string }>('webhook', query)
  if (failing.length === 0) return ok('No webhook is failing.')
  const ids = nameSome(failing.map(({ id }) => id))
  return warning(`Failing webhooks: ${ids}. See what one answers with reelgate webhook test, while the server runs.`)
}

/** An MP4 that is to be made again has no file, and extracted posters no time; both have one again, or a reason, when that has ended. */
const DAMAGED_FILES = `select file.type as kind, file.video_id as "videoId", coalesce(source.file, file.blob, file.video_id) as name,
    case when file.type = 'mp4' then file.enabled
      when file.attachment_id in ('drawn', 'first') and generation.posters_extracted_at_s is null then 1 else 0 end as remade
  from file join video on video.id = file.video_id
  left join source on source.video_id = file.video_id and source.number = file.source_number and file.type = 'original'
  left join generation on generation.video_id = file.video_id and generation.number = file.generation
  where damaged = 1 and video.deleted_at_s is null order by file.id`

const NOT_MIGRATED = 'Not known before the first start of this version.'

/** Files that were found missing or changed, by a check or by a request. */
async function examineFiles(config: Config): Promise<Finding> {
  const { peekRows, appliedMigrations, migrations } = await locateDatabase(config)
  if ((await appliedMigrations()).length < migrations.length) return ok(NOT_MIGRATED)
  const rows = await peekRows<FileName & { kind: FileKind; remade: number }>('file', DAMAGED_FILES)
  const damaged = rows.map(({ remade, ...file }) => ({ ...file, isMadeAgain: Number(remade) === 1 }))
  if (damaged.length === 0) return ok('None is known to be damaged; reelgate doctor --media reads all.')
  return (damaged.every(({ isMadeAgain }) => isMadeAgain) ? warning : failure)(describeDamagedFiles(damaged))
}

const OTP_DEFAULTS = `select name as account, '' as "videoId", 1 as count, otp_defaults as options
    from account where otp_defaults is not null
  union all select account.name, min(video.id), count(*), video.otp_defaults
    from video join account on account.id = video.account_id
    where video.otp_defaults is not null and video.deleted_at_s is null
    group by account.name, video.otp_defaults order by 1, 2`

/** Defaults that are refused today: an OTP without its watermark must not be issued, so none is. */
async function examineOtpDefaults(config: Config): Promise<Finding> {
  const { peekRows, appliedMigrations, migrations } = await locateDatabase(config)
  if ((await appliedMigrations()).length < migrations.length) return ok(NOT_MIGRATED)
  const outbound = createOutboundPolicy(config.outboundAllow)
  type Row = { account: string; videoId: string; count: number | string; options: string }
  const refused = (await peekRows<Row>('video', OTP_DEFAULTS)).flatMap(({ account, videoId, count, options }) => {
    const why = whyRefused(outbound, parseDefaults(options))
    if (why === undefined) return []
    const others = Number(count) - 1
    const video = `video ${videoId}${others > 0 ? ` and ${others} more with the same` : ''} of `
    return [{ why, of: `${videoId && video}account "${account}"` }]
  })
  const [first] = refused
  if (!first) return ok('None makes OTPs fail.')
  return failure(
    `The OTP defaults of ${nameSome(refused.map(({ of }) => of))} refuse every OTP: ${first.why} Save others in the console, under Develop or in the video's Protection, or over the API.`,
  )
}

/** Those that share the database, by their signs of life. */
async function examineServers(config: Config, nowS: number): Promise<Finding> {
  const { peekRows } = await locateDatabase(config)
  const query = 'select name, version, state, drained, beat_at_s as "beatAtS" from server order by name'
  const servers = await peekRows<ServerSigns & { name: string; version: string }>('server', query)
  if (servers.length === 0) return ok('None runs.')
  const described = servers.map((server) => ({ ...server, is: stateOf(server, nowS) }))
  const versions = new Set(servers.map(({ version }) => version))
  const list = described.map(({ name, is, version }) => `${name} ${is}${versions.size > 1 ? ` (${version})` : ''}`).join(', ')
  const silent = described.some(({ is }) => is === 'silent')
  return silent ? warning(`${list}. The others take over the work of a silent one after ten seconds.`) : ok(`${list}.`)
}

/** Whether workers take what this server does not encode. */
async function examineEncoders(config: Config, nowS: number): Promise<Finding> {
  const { peekRows, appliedMigrations, migrations } = await locateDatabase(config)
  if ((await appliedMigrations()).length < migrations.length) return ok(NOT_MIGRATED)
  const servers = config.sharesDatabase
    ? await peekRows<{ name: string }>('server', 'select name from server where encoder_slots > 0')
    : []
  if (servers.length > 0) return ok('Other servers encode.')
  const query = `select name, kinds from worker where drained = 0 and suspended_reason is null and last_seen_at_s >= ${Math.floor(nowS) - MAX_ABSENCE_S}`
  const workers = await peekRows<{ name: string; kinds: string }>('worker', query)
  const missing = CHUNK_KINDS.filter((kind) => !workers.some(({ kinds }) => kinds.split(',').includes(kind)))
  if (missing.length === 0) return ok(`Workers encode: ${nameSome(workers.map(({ name }) => name))}.`)
  const what = missing.map((kind) => (kind === 'audio' ? 'sound' : kind)).join(' and ')
  return warning(
    `REELGATE_ENCODERS is 0, and no worker has asked for ${what} in the last ten minutes: videos wait. Start one (reelgate worker list), or set REELGATE_ENCODERS.`,
  )
}

async function examineApiKeys(config: Config, nowS: number): Promise<Finding> {
  const [fromS, toS] = [Math.floor(nowS), Math.floor(nowS + KEY_WARNING_S)]
  const query = `select id from api_key where revoked_at_s is null and expires_at_s > ${fromS} and expires_at_s <= ${toS} order by expires_at_s, id`
  const ending = await (await locateDatabase(config)).peekRows<{ id: string }>('api_key', query)
  if (ending.length === 0) return ok('No API key ends in the next 14 days.')
  return warning(
    `API keys that end in the next 14 days: ${nameSome(ending.map(({ id }) => id))}. Replace one with reelgate key rotate.`,
  )
}

function nameSome(ids: readonly string[]): string {
  const more = ids.length - MAX_NAMED
  return ids.slice(0, MAX_NAMED).join(', ') + (more > 0 ? ` and ${more} more` : '')
}

async function examineMasterKey(config: Config): Promise<Finding> {
  const state = await checkMasterKey(config)
  if (state === 'none') return ok('There is none yet: the first start creates it.')
  if (state === 'being-rotated')
    return warning('A rotation is not finished. A start of the server continues it, as does reelgate key rotate-master.')
  if (state === 'has-unneeded')
    return warning(`${config.masterKeyVariable} has an older key, too, and nothing needs it any more. Remove it there.`)
  return ok('It exists and belongs to this installation.')
}

const MAX_BACKUP_AGE_DAYS = 7

function judgeLastBackup(setting: string | undefined, nowMs: number): Finding {
  const last = parseLastBackup(setting)
  if (!last) return warning('There is no good backup yet. Make one with reelgate backup FOLDER, on another disk.')
  const ageDays = Math.max(0, nowMs / 1000 - last.atS) / 86_400
  const age = ageDays < 1 ? 'less than a day' : `${Math.floor(ageDays)} days`
  return ageDays <= MAX_BACKUP_AGE_DAYS
    ? ok(`The last good backup is ${age} old.`)
    : warning(`The last good backup is ${age} old. Run reelgate backup FOLDER, from a timer.`)
}

/** A check that fails with an error has found that error. */
async function asFinding(run: () => Promise<Finding>): Promise<Finding> {
  try {
    return await run()
  } catch (error) {
    const known = hostFailure(error) ?? error
    return failure(known instanceof Error ? known.message : String(known))
  }
}
