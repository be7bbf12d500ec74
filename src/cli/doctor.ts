import type { Config } from '../config.ts'
import { examineInstallation } from '../doctor.ts'
import { Failure } from '../errors.ts'

/** Prints what each look found. @throws Failure when one of them found trouble */
export async function doctor(config: Config, { json }: { json?: true }): Promise<void> {
  const checks = await examineInstallation(config)
  const lines = checks.map(({ check, state, says }) => `${state.padEnd(8)} ${check.padEnd(20)} ${says}\n`)
  process.stdout.write(json ? `${JSON.stringify(checks)}\n` : lines.join(''))
  const troubles = checks.filter(({ state }) => state === 'trouble')
  if (troubles.length > 0)
    throw new Failure('unavailable', `Trouble: ${troubles.map(({ check }) => check).join(', ')}. What to do is said above.`)
}
