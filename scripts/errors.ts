import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type ErrorRow, FAILURES, type FailureRow, REFUSALS } from '../src/error-catalogue.ts'

// `npm run docs` writes docs/errors.md; test/docs/errors-page.test.ts fails while it is out of date.

export const PATH = join(import.meta.dirname, '../docs/errors.md')

export function errorsPage(): string {
  return `# Errors

Made from \`src/error-catalogue.ts\` by \`npm run docs\`: change it there. A running server has the same rows in its API
reference, \`/docs/api#errors\`, and the header \`Link: <…>; rel="help"\` of an answer leads to its row.

## API, v2 and uploads

\`/api\` answers \`{"message", "code", "requestId"}\`, v2 \`{"error"}\`, an upload \`<Error><Code>…\` with a code of S3. The
message is mostly more specific than the sentence here. \`Retry-After\` comes with 429 and 503, \`Allow\` with 405.

${table(
  ['Code', 'API', 'v2', 'Upload', 'Playback', 'What it means', 'What helps'],
  Object.entries(FAILURES).map(([code, failure]) => {
    const { status, v2Status = status, s3, play = 'bad-request', sentence, remedy }: FailureRow = failure
    return [`\`${code}\``, status, v2Status, `${status} \`${s3}\``, `\`${play}\``, sentence, remedy]
  }),
)}

In v2, 200 is \`{"error":"No video found"}\`; an unknown operation, and an unknown video that was to be deleted, are 404. A
method that an address of playback does not have is \`bad-request\` with status 405. Headers of more than 16 kB are 431 with
the code \`too-large\`, before it is known which interface they are for.

## Playback

\`/play\`, \`/media\` and \`/download\` answer \`{"code", "message", "requestId"}\` and facts such as \`waitMs\`
([playback protocol](reference/playback-protocol.md#9-refusals)). The player has sentences of its own for viewers, in
\`web/player/refusals.ts\`. Reasons that the browser finds itself (\`insecure-page\`, \`unsupported-browser\`, …) have no
status; [embedding](embedding.md#messages-that-viewers-see) has their sentences.

${table(
  ['Code', 'Status', 'What it means', 'What helps'],
  Object.entries(REFUSALS).map(([code, refusal]) => {
    const { status, sentence, remedy = 'The player continues by itself.' }: ErrorRow = refusal
    return [`\`${code}\``, status, sentence, remedy]
  }),
)}
`
}

function table(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const line = (cells: readonly (string | number)[]) => `| ${cells.join(' | ')} |`
  return [line(head), `|${'---|'.repeat(head.length)}`, ...rows.map(line)].join('\n')
}

if (import.meta.main) writeFileSync(PATH, errorsPage())
