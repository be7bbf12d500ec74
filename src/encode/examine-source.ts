import { findTranscribeLanguage, isLoudnessNormalized } from '../accounts/account-store.ts'
import { recordAuditEvent } from '../audit/audit-log.ts'
import { findReplacement, updateReplacement } from '../catalogue/replacement-store.ts'
import { moveStatus } from '../catalogue/status.ts'
import { hasReviewedCaptions, insertTranscription } from '../catalogue/transcription-store.ts'
import type { Db } from '../db/database.ts'
import type { ReplacementRow } from '../db/tables.ts'
import type { Claim } from '../jobs/claims.ts'
import type { Sandbox } from '../sandbox/bubblewrap.ts'
import type { SealedSource } from '../sandbox/media-run.ts'
import { type CapacityDeps, chooseEncoder } from './capacity.ts'
import { takeDubs } from './dub.ts'
import { type Embedded, takeOver } from './embedded.ts'
import { findSealedSource } from './encode-deps.ts'
import { type FailDeps, failVideo } from './fail-video.ts'
import { findGeneration, findPlayedGeneration } from './generation-store.ts'
import { planVideo } from './grid.ts'
import { findLostDubs, leaveOutDubs } from './lost-dubs.ts'
import { MediaFailure } from './media-failure.ts'
import { insertPlanned } from './next-generation.ts'
import type { Plan } from './plan.ts'
import { probeSource } from './probe.ts'
import { type Part, planCut } from './trim.ts'

export type ExamineDeps = FailDeps &
  CapacityDeps & {
    sandbox: Sandbox
    /** Whether this server has a program that makes captions of speech. */
    transcribes: boolean
  }

/**
 * From a source to its plan: probe, ladder, grid, content key and chunks, in one transaction. A source that is not media fails the video;
 * one that was to replace what the video plays changes nothing.
 */
export async function examineSource(deps: ExamineDeps, videoId: string, claim: Claim, signal: AbortSignal) {
  const replacement = await findPendingReplacement(deps.db, videoId)
  const sourceNumber = replacement?.sourceNumber ?? FIRST_SOURCE
  const source = await findSealedSource(deps, videoId, sourceNumber)
  if (!source) return // deleted meanwhile
  await deps.write((tx) => moveStatus(tx, videoId, 'Processing'))
  const part = replacement && findPart(replacement)
  const normalizesLoudness = await isLoudnessNormalized(deps.db, videoId)
  const examined = await planSource(deps.sandbox, source, { replacement, part, normalizesLoudness, signal })
  if (examined instanceof MediaFailure)
    return failVideo(deps, { videoId, sourceNumber, error: examined, fence: claim.isHeld, signal })
  const { plan, embedded } = examined
  const lostDubs =
    replacement?.kind === 'trim' ? await findLostDubs(deps, videoId, await findPlayedPlan(deps.db, videoId), signal) : []
  const encoder = await chooseEncoder(deps, plan)
  await claim.settle(async (tx) => {
    const current = await findPendingReplacement(tx, videoId)
    if (current?.sourceNumber !== replacement?.sourceNumber || current?.requestedAtS !== replacement?.requestedAtS) return // cancelled
    const withDubs = replacement?.kind === 'trim' ? takeDubs(await findPlayedPlan(tx, videoId), plan) : plan
    const planned = await leaveOutDubs(tx, videoId, withDubs, lostDubs)
    const generation = await insertPlanned(deps, tx, { videoId, sourceNumber, plan: planned }, { encoder })
    if (generation === undefined) return
    if (replacement) return updateReplacement(tx, videoId, { generation })
    const { accountId } = (await findPlayedGeneration(tx, videoId)) ?? {}
    if (accountId === undefined) return
    const atS = deps.wallNowS()
    await takeOver(tx, { accountId, videoId, atS }, embedded, plan.startS)
    if (deps.transcribes && plan.audioTrack) await requestByItself(tx, { accountId, videoId, atS })
  })
  if (replacement) return
  if (embedded.captions.length > 0) void deps.signals.send('work-queued', 'captions')
  if (deps.transcribes) void deps.signals.send('work-queued', 'transcription')
}

/** Captions of the speech, where the account wants them for all new videos. */
async function requestByItself(tx: Db, { accountId, videoId, atS }: { accountId: string; videoId: string; atS: number }) {
  const language = await findTranscribeLanguage(tx, accountId)
  if (language === undefined || (await hasReviewedCaptions(tx, videoId, language))) return
  await insertTranscription(tx, { videoId, language, createdAtS: atS })
  const details = { language }
  await recordAuditEvent(tx, { atS, accountId, by: 'server', kind: 'transcription:requested', subjects: [videoId], details })
}

/** @throws Error when the video plays nothing */
async function findPlayedPlan(db: Db, videoId: string): Promise<Plan> {
  const { generation = 0 } = (await findPlayedGeneration(db, videoId)) ?? {}
  const played = await findGeneration(db, { videoId, generation })
  if (!played) throw new Error('only a video that plays is trimmed')
  return played.plan
}

/** A replacement of a video that is wanted and whose file is here. */
async function findPendingReplacement(db: Db, videoId: string): Promise<ReplacementRow | undefined> {
  const replacement = await findReplacement(db, videoId)
  return replacement?.problem === null && replacement.sourceNumber !== null ? replacement : undefined
}

const FIRST_SOURCE = 1

/** A trim's part of the file. */
function findPart({ startS, endS }: ReplacementRow): Part | undefined {
  return startS === null || endS === null ? undefined : { startS, endS }
}

type Examination = {
  replacement: ReplacementRow | undefined
  part: Part | undefined
  normalizesLoudness: boolean
  signal: AbortSignal
}
type Examined = { plan: Plan; embedded: Embedded }

async function planSource(
  sandbox: Sandbox,
  source: SealedSource,
  { replacement, part, normalizesLoudness, signal }: Examination,
): Promise<Examined | MediaFailure> {
  try {
    const probe = await probeSource(sandbox, source, signal)
    const { embedded } = probe
    const notices = [...probe.notices, ...(replacement ? keptNotices(embedded, part) : embedded.notices)]
    const plan: Plan = { ...planVideo({ ...probe, notices }), ...(normalizesLoudness ? { normalizesLoudness } : {}) }
    return { plan: part ? planCut(plan, { startS: part.startS, endS: Math.min(part.endS, plan.durationS) }) : plan, embedded }
  } catch (error) {
    if (error instanceof MediaFailure) return error
    throw error
  }
}

/** Captions and chapters belong to the video, not to its file: those of a file that replaces another are not taken over. */
function keptNotices({ captions, chapters }: Embedded, part: Part | undefined): string[] {
  const found = [...(captions.length > 0 ? ['captions'] : []), ...(chapters.length > 0 ? ['chapters'] : [])].join(' and ')
  return part || found === '' ? [] : [`The file contains ${found}: those of the video stay as they are.`]
}
