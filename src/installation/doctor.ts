import { access, constants, open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Config } from '../config.ts'
import { openSandbox, sandboxAdvice } from '../encode/sandbox.ts'
import { Failure, hostFailure } from '../errors.ts'
import { type Check, type Finding, failure, judgeSync, ok, timeSyncs, warning } from '../health-check.ts'
import { hasRoomIn, isFull } from '../storage/space.ts'
import { isRestoredCopy, WHY_PAUSED } from '../webhooks/restored-copy.ts'
import { examineDatabase, identifyingFiles, peekSetting } from './database.ts'
import { checkMasterKey } from './master-key.ts'

const OF_THE_MACHINE: Readonly<Record<string, (config: Config) => Promise<Finding>>> = {
  async 'data folder'({ dataDir }) {
    await access(dataDir, constants.R_OK | constants.W_OK).catch(() => {
      throw new Failure(
        'unavailable',
        `${dataDir} is missing or cannot be written. Correct its permissions, or set REELGATE_DATA.`,
      )
    })
    return (await isFull(dataDir))
      ? failure(`${dataDir} cannot be written: the disk is full. Delete videos, which still works, or make room on it otherwise.`)
      : ok(`${dataDir} can be written.`)
  },
  async 'free space'({ dataDir }) {
    return (await hasRoomIn([dataDir], 0))
      ? ok('There is enough.')
      : warning('The disk is nearly full: uploads are refused and encodes wait. Make room on it.')
  },
  async disk({ dataDir }) {
    const path = join(dataDir, `doctor-${process.pid}`)
    const file = await open(path, 'wx', 0o600)
    try {
      await rm(path) // open still: whatever happens, nothing is left of it
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
}

/** Looks at everything that an installation stands on; beside a running server, too. Nothing is changed. */
export async function examineInstallation(config: Config): Promise<Check[]> {
  const checks: Check[] = []
  for (const [check, look] of Object.entries(OF_THE_MACHINE)) checks.push({ check, ...(await inWords(() => look(config))) })
  checks.push(...(await examineDatabase(config)))
  // Whose key it must be is known to the database, and which installation is the original.
  if (checks.every(({ check, state }) => check !== 'database' || state !== 'trouble')) {
    checks.push({ check: 'master key', ...(await inWords(() => examineMasterKey(config))) })
    const noted = (setting: string) => peekSetting(config, setting)
    if (await isRestoredCopy(noted, identifyingFiles(config)).catch(() => false))
      checks.push({ check: 'webhooks', ...warning(WHY_PAUSED) })
  }
  return checks
}

async function examineMasterKey(config: Config): Promise<Finding> {
  return (await checkMasterKey(config))
    ? ok('It is there, and this installation’s.')
    : ok('There is none yet: the first start makes it.')
}

/** What keeps a look from its end is what it has found. */
async function inWords(look: () => Promise<Finding>): Promise<Finding> {
  try {
    return await look()
  } catch (error) {
    const found = hostFailure(error) ?? error
    return failure(found instanceof Error ? found.message : String(found))
  }
}
