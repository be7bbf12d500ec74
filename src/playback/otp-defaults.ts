import { type Actor, recordAuditEvent } from '../audit/audit-log.ts'
import type { Db } from '../db/database.ts'
import type { Write } from '../db/write.ts'
import { Failure, videoNotFound } from '../errors.ts'
import type { OutboundPolicy } from '../outbound/policy.ts'
import { type CacheDeps, cachedRows } from '../signals/cached-rows.ts'
import { parseWatermarks } from '../watermark/watermark.ts'
import { findAccountDefaults, findBothDefaults, saveAccountDefaults, saveVideosDefaults } from './otp-defaults-store.ts'

/** Options of OTPs by name, as their owner sent them; checked when they were saved. */
export type DefaultOptions = Readonly<Record<string, unknown>>

/** The defaults that apply to an OTP: those of the video go before those of the account. */
export type OtpDefaults = {
  ofVideo: DefaultOptions
  ofAccount: DefaultOptions
  /** Whether an empty `annotate` or `whitelisthref` of an OTP removes the default. */
  areRemovable: boolean
}

export const NO_DEFAULTS: OtpDefaults = { ofVideo: {}, ofAccount: {}, areRemovable: false }

export type OtpDefaultsDeps = { db: Db; write: Write; wallNowS: () => number }

/** The defaults for an OTP of a video. Cached while the rows are unchanged, so a change applies to the next OTP. */
export type FindOtpDefaults = (accountId: string, videoId: string) => Promise<OtpDefaults | undefined> | OtpDefaults

export function createOtpDefaultsFinder({ db, ...cache }: { db: Db } & CacheDeps): FindOtpDefaults {
  return cachedRows(cache, (accountId: string, videoId: string) => findOtpDefaults(db, accountId, videoId))
}

async function findOtpDefaults(db: Db, accountId: string, videoId: string): Promise<OtpDefaults> {
  const row = await findBothDefaults(db, accountId, videoId)
  if (!row || (row.ofVideo === null && row.ofAccount === null)) return NO_DEFAULTS
  return {
    ofVideo: parseDefaults(row.ofVideo),
    ofAccount: parseDefaults(row.ofAccount),
    areRemovable: row.areRemovable === 1,
  }
}

export async function getAccountDefaults({ db }: Pick<OtpDefaultsDeps, 'db'>, accountId: string): Promise<DefaultOptions> {
  return parseDefaults(await findAccountDefaults(db, accountId))
}

/** Replaces the defaults of an account. @param options checked; without any there are no defaults */
export async function setAccountDefaults(
  { write, wallNowS }: OtpDefaultsDeps,
  { accountId, by }: { accountId: string; by: Actor },
  options: DefaultOptions,
): Promise<void> {
  const atS = wallNowS()
  await write(async (tx) => {
    await saveAccountDefaults(tx, accountId, formatDefaults(options))
    await recordAuditEvent(tx, { ...changed(options), atS, accountId, by, subjects: [accountId] })
  })
}

/**
 * Replaces the defaults of videos, of all or none.
 * @returns how many videos
 * @throws Failure `not-found` when one of them is not the account's
 */
export async function setVideosDefaults(
  { write, wallNowS }: OtpDefaultsDeps,
  { accountId, by, ...request }: { accountId: string; videoIds: readonly string[]; by: Actor },
  options: DefaultOptions,
): Promise<number> {
  const videoIds = [...new Set(request.videoIds)]
  if (videoIds.length === 0) return 0
  const atS = wallNowS()
  await write(async (tx) => {
    if ((await saveVideosDefaults(tx, accountId, videoIds, formatDefaults(options))) < videoIds.length) throw videoNotFound()
    await recordAuditEvent(tx, { ...changed(options), atS, accountId, by, subjects: videoIds })
  })
  return videoIds.length
}

/** @param stored null: none */
export function parseDefaults(stored: string | null): DefaultOptions {
  return stored === null ? {} : JSON.parse(stored)
}

/** As they are stored: null without any. */
export function formatDefaults(options: DefaultOptions): string | null {
  return Object.keys(options).length === 0 ? null : JSON.stringify(options)
}

function changed(options: DefaultOptions) {
  return { kind: 'otp-defaults:changed', details: { options: Object.keys(options) } } as const
}

/**
 * Why every OTP with these defaults is refused; undefined: none is. They were checked when they were saved, which may have been by
 * an older version, or under another outbound policy.
 */
export function whyRefused(outbound: OutboundPolicy, { annotate }: DefaultOptions): string | undefined {
  try {
    parseWatermarks(outbound, annotate)
    return undefined
  } catch (error) {
    if (error instanceof Failure) return error.message
    throw error
  }
}
