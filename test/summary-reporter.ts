import type { Reporter, TestModule } from 'vitest/node'

/** The last line of a run: `N passed, N failed, N skipped`. */
export class SummaryReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], errors: readonly unknown[]): void {
    const tests = modules.flatMap((module) => [...module.children.allTests()])
    const inState = (state: string) => tests.filter((test) => test.result().state === state).length
    // A file that cannot be loaded has no tests to count, and an error may belong to no test.
    const broken = modules.filter(
      (module) => module.state() === 'failed' && ![...module.children.allTests('failed')].length,
    ).length
    const failed = inState('failed') + broken + errors.length
    console.log(`${inState('passed')} passed, ${failed} failed, ${inState('skipped')} skipped`)
  }
}
