// A shopper does not sit still while the bank takes 20 s: clicks twice, opens tabs, reloads, leaves, comes back.
// One charge every time, and no page offers to pay while nobody knows. Tabs are really hidden and throttled here,
// and left pages are kept where the browser keeps them.
import type { Page, TestInfo } from '@playwright/test';
import { expect, hide, show, test, type Shop } from '../fixtures/lifecycle';
import * as act from '../pages/act';
import * as see from '../pages/see';

const BANK_MS = 20_000;
const PAID_BY_MS = 30_000;

test.beforeEach(async ({ context }) => see.keepLog(context));

interface Begun {
  order: string;
  /** Epoch ms at which the page's confirm began. */
  at: number;
}

/** Pays, and returns when the server says that the confirm is with the bank. */
async function begin(page: Page, shop: Shop, address: string): Promise<Begun> {
  await shop.pg.scenario({ delayMs: BANK_MS });
  await page.goto(address);
  const order = await act.orderFromHere(page);
  await act.openWindow(page);
  await act.payInWindow(page);
  return begun(page, shop, order);
}

async function begun(page: Page, shop: Shop, order: string): Promise<Begun> {
  await see.attemptStatus(page.context(), shop, order, 'approving');
  return { order, at: see.firstSeen(await see.logOf(page), 'confirming') };
}

/** Whatever the shopper did: paid, one charge, and the shop's own pages say so. */
async function endsWell(page: Page, shop: Shop, address: string, { order }: Begun): Promise<void> {
  await see.oneCharge(shop, order);
  expect((await shop.pg.ledger()).calls.confirm.received).toBe(1);
  await page.goto(`${address}/orders`);
  await see.historyStatus(page, order, 'paid');
  await page.goto(`${address}/orders/${order}`);
  await see.orderStatus(page, 'paid');
  await page.goto(`${address}/checkout/${order}`);
  await see.stage(page, 'paid');
  await expect(see.payControls(page)).toHaveCount(0);
}

async function untilElapsed(page: Page, since: Begun, ms: number): Promise<void> {
  await page.waitForTimeout(Math.max(0, since.at + ms - Date.now()));
}

test('clicks everything twice', async ({ page, shop, address }) => {
  await shop.pg.scenario({ delayMs: BANK_MS });
  await page.goto(address);
  const order = await act.orderFromHere(page);
  await page.getByTestId('pay').dblclick();
  await page.getByTestId('pg-pay').dblclick();
  await page.getByTestId('stage').waitFor();
  const confirm = await begun(page, shop, order);
  await see.stage(page, 'paid', PAID_BY_MS);
  await see.offeredNothing(page, confirm.at);
  await endsWell(page, shop, address, confirm);
});

test('submits the confirm again and again', async ({ page, shop, address }) => {
  const confirms = act.confirmsOf(page);
  const confirm = await begin(page, shop, address);
  const data = confirms[0]?.postDataJSON() as Record<string, string>;
  const headers = { 'x-request-timeout-ms': '3000' };
  const resent = () => page.request.post(`${address}/api/payments/confirm`, { data, headers });
  const form = () => page.request.post(page.url().split('?')[0] ?? '', { form: data, maxRedirects: 0 });
  const answers = await Promise.all([resent(), form(), resent(), form()]);
  expect(answers.map((answer) => answer.status())).toEqual([202, 303, 202, 303]);
  await see.stage(page, 'paid', PAID_BY_MS);
  await see.offeredNothing(page, confirm.at);
  expect((await resent()).status()).toBe(200);
  await endsWell(page, shop, address, confirm);
});

test('opens the same address in a second tab', async ({ context, page, shop, address }) => {
  const confirm = await begin(page, shop, address);
  const second = await context.newPage();
  await second.goto(page.url());
  await see.stage(second, 'checking');
  await see.stage(second, 'paid', PAID_BY_MS);
  await see.offeredNothing(second, confirm.at);
  await show(page);
  await see.stage(page, 'paid');
  await see.offeredNothing(page, confirm.at);
  await endsWell(page, shop, address, confirm);
});

for (const seconds of [1, 16]) {
  test(`reloads at ${seconds} s`, async ({ page, shop, address }, info) => {
    const confirm = await begin(page, shop, address);
    await untilElapsed(page, confirm, seconds * 1_000);
    await page.reload();
    await see.stage(page, 'checking');
    await see.stage(page, 'paid', PAID_BY_MS);
    const log = await see.logOf(page);
    see.note(info, 'ms from confirm to paid', see.firstSeen(log, 'paid') - confirm.at);
    expect(see.offersBetween(log, confirm.at)).toEqual([]);
    await endsWell(page, shop, address, confirm);
  });
}

for (const kept of [true, false]) {
  test.describe(kept ? 'a browser that keeps the pages' : 'a browser that loads pages anew', () => {
    test.use({ keepsPages: kept });

    test('goes back and forward while the bank works', async ({ page, shop, address }, info) => {
      const confirm = await begin(page, shop, address);
      await page.goBack({ waitUntil: 'commit' });
      await expect(page.getByTestId('pg-pay')).toBeVisible();
      await page.goForward({ waitUntil: 'commit' });
      await see.stage(page, 'checking');
      await expectPersisted(info, page, kept);

      // Past the window to the page that offered to pay when it was left.
      await page.goBack({ waitUntil: 'commit' });
      await expect(page.getByTestId('pg-pay')).toBeVisible();
      await page.goBack({ waitUntil: 'commit' });
      await expect(page).toHaveURL(new RegExp(`/checkout/${confirm.order}$`));
      await see.stage(page, 'checking');
      await expectPersisted(info, page, kept);
      expect((await see.orderState(page.context(), shop, confirm.order)).attempt?.status).toBe('approving');
      await see.stage(page, 'paid', PAID_BY_MS);
      await see.offeredNothing(page, confirm.at);
      await endsWell(page, shop, address, confirm);
    });

    test('goes back from the window without having paid', async ({ page, shop, address }, info) => {
      await page.goto(address);
      const order = await act.orderFromHere(page);
      await act.openWindow(page);
      const polls: string[] = [];
      page.on('request', (request) => {
        if (request.url().includes('/api/orders/')) polls.push(request.url());
      });
      await page.goBack({ waitUntil: 'commit' });
      await see.stage(page, 'offer');
      await expectPersisted(info, page, kept);
      // A page that was kept has asked before its button came to life.
      if (kept) expect(polls.length).toBeGreaterThan(0);
      expect(await act.openWindow(page)).toBe(order);
      await act.payInWindow(page);
      await see.stage(page, 'paid');
      await see.oneCharge(shop, order);
    });

    test('comes back to a checkout that was paid in another tab', async ({ context, page, shop, address }, info) => {
      await page.goto(address);
      const order = await act.orderFromHere(page);
      await expect(page.locator('body')).toHaveAttribute('data-hydrated', 'true');
      await page.goto(`${address}/orders`);

      const other = await context.newPage();
      await other.goto(`${address}/checkout/${order}`);
      await act.openWindow(other);
      await act.payInWindow(other);
      await see.stage(other, 'paid');
      const paid = Date.now();

      await show(page);
      await page.goBack({ waitUntil: 'commit' });
      await see.stage(page, 'paid');
      await expect(see.payControls(page)).toHaveCount(0);
      await expectPersisted(info, page, kept);
      await see.offeredNothing(page, paid);
      await see.oneCharge(shop, order);
    });
  });
}

test('goes back to the window and pays there once more', async ({ page, shop, address }) => {
  const confirm = await begin(page, shop, address);
  await page.goBack({ waitUntil: 'commit' });
  await act.payInWindow(page);
  await see.stage(page, 'checking');
  await see.stage(page, 'paid', PAID_BY_MS);
  await see.offeredNothing(page, confirm.at);
  await endsWell(page, shop, address, confirm);
});

test('closes the tab at 1 s and looks at the order later', async ({ context, page, shop, address }) => {
  const confirm = await begin(page, shop, address);
  await untilElapsed(page, confirm, 1_000);
  const later = await context.newPage();
  await page.close();
  await later.goto(`${address}/orders`);
  await see.historyStatus(later, confirm.order, 'checking');
  await later.goto(`${address}/orders/${confirm.order}`);
  await see.orderStatus(later, 'checking');
  await expect(see.payControls(later)).toHaveCount(0);
  // By itself.
  await see.orderStatus(later, 'paid', PAID_BY_MS);
  await see.offeredNothing(later, confirm.at);
  await endsWell(later, shop, address, confirm);
});

test('looks at another tab meanwhile', async ({ context, page, shop, address }, info) => {
  const confirm = await begin(page, shop, address);
  const other = await context.newPage();
  await other.goto(address);
  await hide(page, other);

  // Timers of a hidden tab fire about once a second: the page must measure time, not count ticks.
  const ticks = await page.evaluate(async () => {
    let count = 0;
    const timer = setInterval(() => (count += 1), 10);
    await new Promise((resolve) => setTimeout(resolve, 5_000));
    clearInterval(timer);
    return count;
  });
  see.note(info, 'ticks of a 10 ms timer in 5 s of a hidden tab', ticks);
  expect(ticks).toBeLessThan(50);

  await see.attemptStatus(context, shop, confirm.order, 'approved', PAID_BY_MS);
  await show(page);
  await see.stage(page, 'paid');
  const log = await see.logOf(page);
  see.note(info, 'ms from confirm to checking', see.firstSeen(log, 'checking') - confirm.at);
  see.note(info, 'ms from confirm to paid', see.firstSeen(log, 'paid') - confirm.at);
  expect(see.offersBetween(log, confirm.at)).toEqual([]);
  await endsWell(page, shop, address, confirm);
});

test('leaves a checkout open that is paid in another tab', async ({ context, page, shop, address }) => {
  await page.goto(address);
  const order = await act.orderFromHere(page);
  await expect(page.locator('body')).toHaveAttribute('data-hydrated', 'true');
  const other = await context.newPage();
  await other.goto(`${address}/checkout/${order}`);
  await hide(page, other);
  await act.openWindow(other);
  await act.payInWindow(other);
  await see.stage(other, 'paid');

  await show(page);
  await see.stage(page, 'paid');
  await expect(see.payControls(page)).toHaveCount(0);
  await see.oneCharge(shop, order);
});

test.describe('a shop that is replaced meanwhile', () => {
  // Whoever asks while nobody serves hears so.
  test.use({ expectedConsole: [/net::ERR_(CONNECTION|EMPTY|SOCKET)/] });

  test('a page of before finds what the new one knows', async ({ context, page, shop, address }) => {
    await page.goto(address);
    const order = await act.orderFromHere(page);
    await expect(page.locator('body')).toHaveAttribute('data-hydrated', 'true');
    const other = await context.newPage();
    await other.goto(address);
    await hide(page, other);
    await shop.restart();
    await other.goto(`${address}/checkout/${order}`);
    await act.openWindow(other);
    await act.payInWindow(other);
    await see.stage(other, 'paid');

    await show(page);
    await see.stage(page, 'paid');
    await expect(see.payControls(page)).toHaveCount(0);
    await see.oneCharge(shop, order);
  });
});

/** The page last shown came out of the back/forward cache, or did not. */
async function expectPersisted(info: TestInfo, page: Page, kept: boolean): Promise<void> {
  const shown = (await see.logOf(page)).findLast((glimpse) => glimpse.event === 'pageshow');
  see.note(info, 'pageshow persisted', String(shown?.persisted));
  expect(shown?.persisted).toBe(kept);
}
