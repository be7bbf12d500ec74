import { chmod, cp, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import type { Golden } from '../golden.ts'
import { makeLocation } from '../installation-folder.ts'
import { DATABASE } from '../postgres.ts'
import { changeRows } from '../rows.ts'

/**
 * An installation that version 0.2.0 made and its `migrate` moved to PostgreSQL: one ready video of 40 s without sound, in a folder, with
 * tags; a webhook; a second account; a session of bob's; and an OTP of ann's, whose position is 25.5 s. `master.key` opens nothing else.
 */
const FOLDER = join(import.meta.dirname, 'installation-0.2.0')
const API_KEY = '8xJ1JExSYtTmX26cDK5V0r1EiZGg60z9OWWliWxj9BaMrY83FbfNv0vZlEs7UzpW'
const VIDEO = '29659ce2ec9cef04dc26c7c2a2aacb9f'
export const OTP_OF_ANN = 'bU3CLx38WVSRN3btzaNtYvHUTQQDlmgx4YJc8lvVFDbGWhrNz0aymOEx494zCpyf'

/** That installation, stopped; its OTP and position are of this hour. It is removed when the test has finished. */
export async function makeInstallation020(database = DATABASE): Promise<Golden> {
  const location = await makeLocation({ database })
  onTestFinished(() => location.remove())
  await cp(join(FOLDER, 'media'), location.dataDir, { recursive: true })
  await cp(join(FOLDER, 'master.key'), location.masterKeyFile)
  await chmod(location.masterKeyFile, 0o600)
  changeRows(location, await readFile(join(FOLDER, `${database}.sql`), 'utf8'))
  const nowS = Math.floor(Date.now() / 1000)
  changeRows(location, 'update otp set issued_at_s = ?, expires_at_s = ? where spent_at_s is null', nowS, nowS + 3600)
  changeRows(location, 'update watch_position set saved_at_s = ?', nowS)
  return { ...location, owner: { apiKey: API_KEY }, videoId: VIDEO }
}
