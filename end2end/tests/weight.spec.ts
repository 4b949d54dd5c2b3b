// What a shopper's browser must load before the page is awake.
import { expect, test } from '../fixtures/shop';
import * as see from '../pages/see';

const MOST_BYTES = 200 * 1024;

test('the program of all pages weighs at most 200 KB on its way', async ({ page, shop }, info) => {
  const asked = page.waitForRequest(/\.wasm$/);
  await page.goto('/orders');
  const wasm = (await asked).url();
  const answer = await fetch(wasm, { headers: { 'accept-encoding': 'br' }, method: 'HEAD' });
  expect(new URL(wasm).origin).toBe(shop.url);
  expect(answer.headers.get('content-encoding')).toBe('br');
  const bytes = Number(answer.headers.get('content-length'));
  see.note(info, 'bytes of wasm with brotli', bytes);
  expect(bytes).toBeGreaterThan(0);
  expect(bytes).toBeLessThanOrEqual(MOST_BYTES);
});
