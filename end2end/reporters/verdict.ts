// Prints what tests measured, and the one line that counts, last: `browser: 12 passed, 0 failed`.
import type { FullConfig, FullResult, Reporter, Suite } from '@playwright/test/reporter';

export default class Verdict implements Reporter {
  private suite: Suite | undefined;

  onBegin(_config: FullConfig, suite: Suite): void {
    this.suite = suite;
  }

  onEnd(_result: FullResult): void {
    const tests = this.suite?.allTests() ?? [];
    for (const test of tests) {
      for (const { type, description } of test.results.flatMap((result) => result.annotations)) {
        console.log(`measured: ${test.title}: ${type}: ${description ?? ''}`);
      }
    }
    // What was skipped or never reached is not passed.
    const passed = tests.filter((test) => test.outcome() === 'expected').length;
    console.log(`\nbrowser: ${passed} passed, ${tests.length - passed} failed`);
  }

  printsToStdio(): boolean {
    return false;
  }
}
