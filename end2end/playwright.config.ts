// Which browser, how it is set up, and which files see which set-up. The programs are started by fixtures/shop.ts.
import { defineConfig } from '@playwright/test';

const launchOptions = {
  executablePath: process.env.CHROME_PATH ?? '/usr/bin/chromium',
  args: [
    '--no-sandbox',
    '--disable-gpu',
    '--disable-quic',
    '--no-first-run',
    // A test browser calls nobody but the shop.
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
  ],
};

const noscript = '**/*.noscript.spec.ts';
const lifecycle = '**/*.lifecycle.spec.ts';

export default defineConfig({
  testDir: './tests',
  outputDir: './test-results',
  fullyParallel: true,
  forbidOnly: true,
  // A test that passes at the second try has found something.
  retries: 0,
  // Most tests wait for a slow gateway, so two get along on two cores.
  workers: 2,
  timeout: 120_000,
  expect: { timeout: 10_000 },
  reporter: [['list'], ['./reporters/verdict.ts']],
  use: {
    launchOptions,
    locale: 'ko-KR',
    timezoneId: 'Asia/Seoul',
    trace: 'off',
    screenshot: 'only-on-failure',
  },
  projects: [
    { name: 'chromium', testMatch: '**/*.spec.ts', testIgnore: [noscript, lifecycle] },
    { name: 'noscript', testMatch: noscript, use: { javaScriptEnabled: false } },
    // Its browser is started by fixtures/lifecycle.ts. A page that comes back from the back/forward cache fires no
    // `load`: these tests say `page.goBack({ waitUntil: 'commit' })`.
    { name: 'lifecycle', testMatch: lifecycle },
  ],
});
