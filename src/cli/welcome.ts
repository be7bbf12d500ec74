import packageJson from '../../package.json' with { type: 'json' }
import type { Config } from '../config/config.ts'
import { hasKeyFile } from '../installation/master-key.ts'
import { PROGRAM_NAME } from '../program-name.ts'
import type { ReelgateServer } from '../server.ts'
import { linkUrl } from '../users/sign-in-link.ts'
import { isKeptByJournal } from './journal.ts'
import { formatPhrase } from './recovery.ts'

/** The output of a start: one line, and after the first start the secrets to keep and the next steps. */
export function welcomeText(config: Config, server: ReelgateServer): string {
  const { url, firstStart, consoleAccess, demoUrl, sandboxAdvice } = server
  const paragraphs = [`Reelgate ${packageJson.version} serves ${config.publicUrl ?? url} with the data in ${config.dataDir}`]
  const isKept = isKeptByJournal(config)
  const token = isKept ? undefined : firstStart?.consoleToken
  const link = consoleAccess && token && linkUrl(consoleAccess.url, token)
  if (link) paragraphs.push('Open the console with this link. It signs you in once, within 24 hours:', `  ${link}`)
  if (firstStart) paragraphs.push(...(isKept ? secretCommands(firstStart) : secrets(config, firstStart)))
  if (sandboxAdvice) paragraphs.push([sandboxAdvice.effect, ...sandboxAdvice.cures.map((cure) => `  - ${cure}`)].join('\n'))
  const next = [
    ...(consoleAccess && !link ? [`The console      ${wayIn(consoleAccess)}`] : []),
    ...(demoUrl ? [`A demo video     ${demoUrl}  (on this machine only)`] : []),
    ...(firstStart ? [`Your own video   ${PROGRAM_NAME} try video.mp4`] : []),
  ]
  if (next.length > 0) paragraphs.push(next.join('\n'))
  return `${paragraphs.join('\n\n')}\n`
}

function wayIn({ url, canSignIn }: NonNullable<ReelgateServer['consoleAccess']>): string {
  return canSignIn ? url : `${PROGRAM_NAME} console link`
}

type FirstStart = NonNullable<ReelgateServer['firstStart']>

function secrets(config: Config, { account, recoveryPhrase }: FirstStart): string[] {
  const paragraphs = account
    ? [
        'The first account was created. Its API secret is shown only this once:',
        `  account     ${account.accountId}\n  API secret  ${account.apiKey}`,
      ]
    : []
  if (recoveryPhrase) {
    paragraphs.push(
      `The master key is in ${config.masterKeyFile}: without it no video opens. Its recovery phrase is shown only this once. Write it down
and keep it away from this machine; \`${PROGRAM_NAME} key restore\` restores the file from it.`,
      formatPhrase(recoveryPhrase),
    )
  } else if (!hasKeyFile(config)) {
    paragraphs.push(
      `The master key is the one of ${config.masterKeyVariable}: without it no video opens. You store it yourself, so no recovery phrase is shown.`,
    )
  }
  return paragraphs
}

/** For an output that is stored: logs are shipped and backed up, so they must not hold secrets. */
function secretCommands({ account, recoveryPhrase }: FirstStart): string[] {
  const rows = [
    ...(account ? [`  An API secret for your site    ${PROGRAM_NAME} key create ${account.accountId}`] : []),
    ...(recoveryPhrase ? [`  The master key as 24 words     ${PROGRAM_NAME} key phrase`] : []),
  ]
  if (rows.length === 0) return []
  return [
    `This output is kept in the journal, so it has no secrets. Run these on a terminal and keep what they print:`,
    rows.join('\n'),
  ]
}
