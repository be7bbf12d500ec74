import packageJson from '../../package.json' with { type: 'json' }
import type { Config } from '../config.ts'
import type { ReelgateServer } from '../server.ts'
import { formatPhrase } from './recovery.ts'

/** The output of a start: one line, and after the first start the secrets to keep and the next steps. */
export function welcomeText(config: Config, { url, firstStart, demoUrl, sandboxAdvice }: ReelgateServer): string {
  const paragraphs = [`Reelgate ${packageJson.version} serves ${config.publicUrl ?? url} with the data in ${config.dataDir}`]
  if (firstStart?.account) {
    const { accountId, apiKey } = firstStart.account
    paragraphs.push(
      'The first account was created. Its API secret is shown only this once:',
      `  account     ${accountId}\n  API secret  ${apiKey}`,
    )
  }
  if (firstStart?.recoveryPhrase) {
    paragraphs.push(
      `The master key is in ${config.masterKeyFile}: without it no video opens. Its recovery phrase is shown only this once. Write it down
and keep it away from this machine; \`npx reelgate key restore\` restores the file from it.`,
      formatPhrase(firstStart.recoveryPhrase),
    )
  } else if (firstStart && config.masterKeyHex) {
    paragraphs.push(
      'The master key is the one in REELGATE_MASTER_KEY: without it no video opens. You store it yourself, so no recovery phrase is shown.',
    )
  }
  if (sandboxAdvice) paragraphs.push([sandboxAdvice.effect, ...sandboxAdvice.cures.map((cure) => `  - ${cure}`)].join('\n'))
  const next = [
    ...(demoUrl ? [`A demo video     ${demoUrl}  (on this machine only)`] : []),
    ...(firstStart ? ['Your own video   npx reelgate try video.mp4'] : []),
  ]
  if (next.length > 0) paragraphs.push(next.join('\n'))
  return `${paragraphs.join('\n\n')}\n`
}
