import { expect, test } from 'vitest'
import { describeEmbedded } from './describe-embedded.ts'
import { EMBEDDED_SOURCES, type EmbeddedSource, makeEmbedded } from './embedded-sources.ts'

test('I-22, S-01, S-02: what becomes of captions and chapters inside of files is what docs/reference/embedded-text.md says', async () => {
  const rows = await Promise.all(EMBEDDED_SOURCES.map(describeRow))
  await expect(`${HEAD}${rows.join('\n')}\n`).toMatchFileSnapshot('../../docs/reference/embedded-text.md')
})

const HEAD = `# Captions and chapters inside of files

What becomes of them, file by file. Captions are hidden until their owner shows them ([videos](../videos.md#captions-and-chapters-inside-a-file)).
The test \`test/assets/embedded-captions.test.ts\` makes these files and writes this page.

| File | Captions | Chapters | Said of the video |
|---|---|---|---|
`

async function describeRow(made: EmbeddedSource): Promise<string> {
  const { captions, chapters, notices } = await describeEmbedded(await makeEmbedded(made))
  return `| ${made.is} (${made.file.split('.')[1]}) | ${captions} | ${chapters} | ${notices} |`
}
