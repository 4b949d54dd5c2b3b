// Pictures of every page for docs/screens, made on demand: npm run screens
import { defineConfig } from '@playwright/test';
import usual from './playwright.config';

export default defineConfig({
  ...usual,
  testDir: './screens',
  outputDir: './test-results/screens',
  reporter: [['list']],
  globalTeardown: './screens/index.ts',
  projects: [{ name: 'screens' }],
});
