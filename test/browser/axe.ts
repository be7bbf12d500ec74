import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import type { Frame, Page } from 'playwright-core'

type Violation = { id: string; help: string; nodes: { html: string }[] }

let script: Promise<string> | undefined

/** What axe-core finds wrong with a page, or a frame of it (WCAG 2.2 AA and its authors' best practices). @param rules of axe; without them all */
export async function judgeByAxe(page: Page | Frame, rules?: readonly string[]): Promise<string[]> {
  script ??= readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
  await page.evaluate(`if (!globalThis.axe) { ${await script} }`) // past the policy, which allows no script but the page's own
  // Without `resultTypes` axe describes each element that passed a rule, too.
  const options = JSON.stringify({ resultTypes: ['violations'], runOnly: rules })
  const { violations } = await page.evaluate<{ violations: Violation[] }>(`axe.run(${options})`)
  return violations.flatMap(({ id, help, nodes }) => nodes.map(({ html }) => `${id} (${help}): ${html.slice(0, 200)}`))
}
