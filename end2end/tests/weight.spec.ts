// What a shopper's browser must load before the page is awake: how much, how early it is asked for, and how long it is kept.
import { expect, test } from '../fixtures/shop';
import * as act from '../pages/act';
import * as see from '../pages/see';

/** Bytes of brotli. */
const MOST = { wasm: 150_000, js: 10_000, css: 10_000 };

test('program, script and style are light, compressed beforehand, and kept for a year', async ({ page, shop }, info) => {
  await page.goto('/');
  const named = await page.evaluate(() => {
    const href = (selector: string) => document.querySelector(selector)?.getAttribute('href') ?? '';
    return {
      wasm: href('link[rel="preload"][as="fetch"]'),
      js: href('link[rel="modulepreload"]'),
      css: href('link[rel="stylesheet"]'),
    };
  });
  for (const [kind, most] of Object.entries(MOST)) {
    const name = named[kind as keyof typeof named];
    expect(name, 'named by its content').toMatch(new RegExp(`^/pkg/jari-[0-9a-f]{16}\\.${kind}$`));
    const answer = await fetch(shop.url + name, { headers: { 'accept-encoding': 'br' }, method: 'HEAD' });
    expect(answer.headers.get('content-encoding')).toBe('br');
    expect(answer.headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
    expect(answer.headers.get('vary')).toBe('accept-encoding');
    const bytes = Number(answer.headers.get('content-length'));
    see.note(info, `bytes of ${kind} with brotli`, bytes);
    expect(bytes).toBeGreaterThan(0);
    expect(bytes).toBeLessThanOrEqual(most);
    // Another build's name is no file, and a name that says nothing of the content is asked about each time.
    expect((await fetch(shop.url + name.replace(/-[0-9a-f]{16}/, '-0123456789abcdef'))).status).toBe(404);
    const plain = await fetch(shop.url + name.replace(/-[0-9a-f]{16}/, ''), { method: 'HEAD' });
    expect([plain.status, plain.headers.get('cache-control')]).toEqual([200, 'no-cache']);
  }
});

test('a second page loads none of it again', async ({ page }) => {
  await act.order(page);
  await expect(page.locator('body')).toHaveAttribute('data-hydrated', 'true');
  await page.goto('/');
  const order = await act.orderFromHere(page);
  expect(order).not.toBe('');
  await expect(page.locator('body')).toHaveAttribute('data-hydrated', 'true');
  const sent = await page.evaluate(() =>
    (performance.getEntriesByType('resource') as PerformanceResourceTiming[])
      .filter((entry) => entry.name.includes('/pkg/'))
      .map((entry) => ({ kind: entry.name.split('.').at(-1), bytes: entry.transferSize })),
  );
  expect(sent.map(({ kind }) => kind)).toContain('wasm');
  expect(sent.filter(({ bytes }) => bytes > 0)).toEqual([]);
});
