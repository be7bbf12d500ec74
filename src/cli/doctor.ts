import type { Config } from '../config/config.ts'
import { Failure } from '../errors.ts'
import type { Check } from '../health-check.ts'
import { examineInstallation } from '../installation/doctor.ts'
import { checkMedia, type MediaFinding, type MediaOptions, type SendCommand } from './media-check.ts'

/** Prints the result of each check. @throws Failure when one of them failed */
export async function doctor(config: Config, options: MediaOptions & { media?: true }, ask: SendCommand): Promise<void> {
  const { json, media } = options
  const checks: (Check | (Check & MediaFinding))[] = await examineInstallation(config)
  const hasDatabase = checks.every(({ check, state }) => check !== 'database' || state !== 'trouble')
  if (media && hasDatabase) checks.push({ check: 'media', ...(await checkMedia(config, options, ask)) })
  const lines = checks.map(({ check, state, says }) => `${state.padEnd(8)} ${check.padEnd(20)} ${says}\n`)
  process.stdout.write(json ? `${JSON.stringify(checks)}\n` : lines.join(''))
  const failed = checks.filter(({ state }) => state === 'trouble')
  if (failed.length > 0)
    throw new Failure('unavailable', `Failed checks: ${failed.map(({ check }) => check).join(', ')}. See above for remedies.`)
}
