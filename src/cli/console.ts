import { readConfig } from '../config/config.ts'
import { ConsoleLink } from '../control/server-commands.ts'
import { assertServerRuns } from '../control/socket.ts'
import { Failure } from '../errors.ts'
import { PROGRAM_NAME } from '../program-name.ts'
import { isKeptByJournal } from './journal.ts'
import { type JsonOption, parseResult, printResult, runOnServer } from './run-command.ts'

/**
 * Prints a link that signs a person in to the console once.
 * @param user undefined: the oldest administrator
 * @throws Failure `forbidden` where the output is stored, because a link is a secret
 */
export async function printConsoleLink(user: string | undefined, options: JsonOption): Promise<void> {
  const config = readConfig()
  assertServerRuns(config)
  if (isKeptByJournal(config))
    throw new Failure('forbidden', `The journal would keep the link. Run "${PROGRAM_NAME} console link" on a terminal.`)
  const link = parseResult(ConsoleLink, await runOnServer(config, 'console link', { user }))
  if (options.json) return printResult(link, options)
  const minutes = Math.round((link.expiresAtS - Date.now() / 1000) / 60)
  printResult(
    `This link signs in ${link.user} once, within ${minutes} minutes. Then set a new password or a passkey.\n\n  ${link.url}\n`,
    options,
  )
}
