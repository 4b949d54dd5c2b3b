// The tests' own ground: a fresh shop starts, ends and returns, and a misbehaving page is noticed.
import { expect, test } from '../fixtures/shop';
import { watch } from '../fixtures/watch';

test('a fresh shop answers, and its gateway has seen nothing', async ({ shop }) => {
  expect((await fetch(`${shop.url}/healthz`)).status).toBe(200);
  expect((await shop.pg.ledger()).calls.confirm.received).toBe(0);
  expect(await shop.pg.payment('an-order', 1_000)).not.toBe(await shop.pg.payment('an-order', 1_000));
});

test('a killed shop is gone, and returns at the same address', async ({ shop }) => {
  await shop.kill9();
  await expect(fetch(`${shop.url}/healthz`)).rejects.toThrow();
  await shop.restart();
  expect((await fetch(`${shop.url}/healthz`)).status).toBe(200);
});

test('every way in which a page misbehaves is noticed', async ({ browser }) => {
  const context = await browser.newContext();
  const complaints = await watch(context, [/on purpose/]);
  const page = await context.newPage();
  await page.route('**/*', (route) => {
    const isPage = route.request().resourceType() === 'document';
    return route.fulfill({
      status: isPage ? 200 : 409,
      contentType: 'text/html',
      headers: { 'content-security-policy': "img-src 'none'" },
      body: '<!doctype html><p>Here</p>',
    });
  });
  await page.goto('http://shop.test/');

  await page.evaluate(() => fetch('/conflict'));
  await page.evaluate(() => console.error('on purpose'));
  await page.evaluate(() => console.log('all is well'));
  expect(complaints).toEqual([]);

  await page.evaluate(() => console.warn('odd'));
  await page.evaluate(() => console.log('a hydration mismatch'));
  await page.evaluate(() => void setTimeout(() => { throw new Error('thrown'); }));
  await page.evaluate(() => void (new Image().src = 'http://elsewhere.test/a.png'));
  await expect.poll(() => complaints.join('\n')).toMatch(/policy violated: img-src/);
  await expect.poll(() => complaints.join('\n')).toMatch(/uncaught: Error: thrown/);
  expect(complaints.join('\n')).toMatch(/console warning: odd/);
  expect(complaints.join('\n')).toMatch(/console log: a hydration mismatch/);
  await context.close();
});
