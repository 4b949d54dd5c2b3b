// A shopper does not sit still while the bank takes 20 s: clicks twice, opens tabs, reloads, leaves, comes back.
// One charge every time, and no page offers to pay while nobody knows. The browser's back/forward cache and its
// throttling of hidden tabs are on here.
import type { BrowserContext, Page, TestInfo } from '@playwright/test';
import { expect, test, type Shop } from '../fixtures/shop';
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
async function begin(page: Page, shop: Shop): Promise<Begun> {
  await shop.pg.scenario({ delayMs: BANK_MS });
  const order = await act.pay(page);
  return begunBy(page, shop, order);
}

async function begunBy(page: Page, shop: Shop, order: string): Promise<Begun> {
  await see.attemptStatus(page.context(), shop, order, 'approving');
  return { order, at: see.firstSeen(await see.logOf(page), 'confirming') };
}

/** Whatever the shopper did: paid, one charge, and the shop's own pages say so. */
async function endsWell(page: Page, shop: Shop, { order }: Begun): Promise<void> {
  await see.oneCharge(shop, order);
  expect((await shop.pg.ledger()).calls.confirm.received).toBe(1);
  await page.goto('/orders');
  await see.historyStatus(page, order, 'paid');
  await page.goto(`/orders/${order}`);
  await see.orderStatus(page, 'paid');
  await page.goto(`/checkout/${order}`);
  await see.stage(page, 'paid');
  await expect(see.payControls(page)).toHaveCount(0);
}

async function untilElapsed(page: Page, begun: Begun, ms: number): Promise<void> {
  await page.waitForTimeout(Math.max(0, begun.at + ms - Date.now()));
}

test('clicks everything twice', async ({ page, shop }) => {
  await shop.pg.scenario({ delayMs: BANK_MS });
  const order = await act.order(page);
  await page.getByTestId('pay').dblclick();
  await page.getByTestId('pg-pay').dblclick();
  await page.getByTestId('stage').waitFor();
  const begun = await begunBy(page, shop, order);
  await see.stage(page, 'paid', PAID_BY_MS);
  await see.offeredNothing(page, begun.at);
  await endsWell(page, shop, begun);
});

test('submits the confirm again and again', async ({ page, shop }) => {
  const confirms = act.confirmsOf(page);
  const begun = await begin(page, shop);
  const confirm = confirms[0]?.postDataJSON() as Record<string, string>;
  const resent = () =>
    page.request.post('/api/payments/confirm', {
      data: confirm,
      headers: { 'x-request-timeout-ms': '65000' },
    });
  const resubmitted = () =>
    page.request.post(new URL(page.url()).pathname, { form: confirm, maxRedirects: 0 });
  const [first, second, form, sameForm] = await Promise.all([
    resent(),
    resent(),
    resubmitted(),
    resubmitted(),
  ]);
  expect([first.status(), second.status()]).toEqual([202, 202]);
  expect([form.status(), sameForm.status()]).toEqual([303, 303]);
  await see.stage(page, 'paid', PAID_BY_MS);
  await see.offeredNothing(page, begun.at);
  expect((await resent()).status()).toBe(200);
  await endsWell(page, shop, begun);
});

test('opens the same address in a second tab', async ({ context, page, shop }) => {
  const begun = await begin(page, shop);
  const second = await context.newPage();
  await second.goto(page.url());
  await see.stage(second, 'checking');
  for (const tab of [page, second]) {
    await see.stage(tab, 'paid', PAID_BY_MS);
    await see.offeredNothing(tab, begun.at);
  }
  await endsWell(page, shop, begun);
});

for (const seconds of [1, 16]) {
  test(`reloads at ${seconds} s`, async ({ page, shop }, info) => {
    const begun = await begin(page, shop);
    await untilElapsed(page, begun, seconds * 1_000);
    await page.reload();
    await see.stage(page, 'checking');
    await see.stage(page, 'paid', PAID_BY_MS);
    const log = await see.logOf(page);
    see.note(info, 'ms from confirm to paid', see.firstSeen(log, 'paid') - begun.at);
    expect(see.offersBetween(log, begun.at)).toEqual([]);
    await endsWell(page, shop, begun);
  });
}

test('goes back to the window and forward again', async ({ page, shop }, info) => {
  const begun = await begin(page, shop);
  await page.goBack({ waitUntil: 'commit' });
  await expect(page.getByTestId('pg-pay')).toBeVisible();
  await page.goForward({ waitUntil: 'commit' });
  await see.stage(page, 'checking');
  notePersisted(info, await see.logOf(page), begun.at);
  await see.stage(page, 'paid', PAID_BY_MS);
  await see.offeredNothing(page, begun.at);
  await endsWell(page, shop, begun);
});

test('goes back to the checkout while the bank works', async ({ page, shop }, info) => {
  const begun = await begin(page, shop);
  await page.goBack({ waitUntil: 'commit' });
  await expect(page.getByTestId('pg-pay')).toBeVisible();
  await page.goBack({ waitUntil: 'commit' });
  await expect(page).toHaveURL(new RegExp(`/checkout/${begun.order}$`));
  await see.stage(page, 'checking');
  notePersisted(info, await see.logOf(page), begun.at);
  await see.stage(page, 'paid', PAID_BY_MS);
  await see.offeredNothing(page, begun.at);
  await endsWell(page, shop, begun);
});

test('goes back to the window and pays there once more', async ({ page, shop }) => {
  const begun = await begin(page, shop);
  await page.goBack({ waitUntil: 'commit' });
  await act.payInWindow(page);
  await see.stage(page, 'checking');
  await see.stage(page, 'paid', PAID_BY_MS);
  await see.offeredNothing(page, begun.at);
  await endsWell(page, shop, begun);
});

test('closes the tab at 1 s and looks at the order later', async ({ context, page, shop }) => {
  const begun = await begin(page, shop);
  await untilElapsed(page, begun, 1_000);
  await page.close();
  const later = await context.newPage();
  await later.goto('/orders');
  await see.historyStatus(later, begun.order, 'checking');
  await later.goto(`/orders/${begun.order}`);
  await see.orderStatus(later, 'checking');
  await expect(see.payControls(later)).toHaveCount(0);
  // By itself.
  await see.orderStatus(later, 'paid', PAID_BY_MS);
  await see.offeredNothing(later, begun.at);
  await endsWell(later, shop, begun);
});

test('looks at another tab meanwhile', async ({ context, page, shop }, info) => {
  const begun = await begin(page, shop);
  const other = await context.newPage();
  await other.goto('/');
  await hide(context, page, other);

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

  await see.attemptStatus(context, shop, begun.order, 'approved', PAID_BY_MS);
  await page.bringToFront();
  await expect.poll(() => page.evaluate(() => document.hidden)).toBe(false);
  await see.stage(page, 'paid');
  const log = await see.logOf(page);
  see.note(info, 'ms from confirm to paid', see.firstSeen(log, 'paid') - begun.at);
  expect(see.offersBetween(log, begun.at)).toEqual([]);
  await endsWell(page, shop, begun);
});

test('comes back to a checkout that was paid in another tab', async ({ context, page, shop }, info) => {
  const order = await act.order(page);
  await expect(page.locator('body')).toHaveAttribute('data-hydrated', 'true');
  await page.goto('/orders');

  const other = await context.newPage();
  await other.goto(`/checkout/${order}`);
  await act.openWindow(other);
  await act.payInWindow(other);
  await see.stage(other, 'paid');
  const paid = Date.now();

  await page.bringToFront();
  await page.goBack({ waitUntil: 'commit' });
  await see.stage(page, 'paid');
  await expect(see.payControls(page)).toHaveCount(0);
  notePersisted(info, await see.logOf(page), paid);
  await see.offeredNothing(page, paid);
  await see.oneCharge(shop, order);
});

test('leaves a checkout open that is paid in another tab', async ({ context, page, shop }) => {
  const order = await act.order(page);
  await expect(page.locator('body')).toHaveAttribute('data-hydrated', 'true');
  const other = await context.newPage();
  await other.goto(`/checkout/${order}`);
  await hide(context, page, other);
  await act.openWindow(other);
  await act.payInWindow(other);
  await see.stage(other, 'paid');

  await page.bringToFront();
  await see.stage(page, 'paid');
  await expect(see.payControls(page)).toHaveCount(0);
  await see.oneCharge(shop, order);
});

/** Really hides a tab behind another: the test driver otherwise makes each believe that it is looked at. */
async function hide(context: BrowserContext, page: Page, behind: Page): Promise<void> {
  for (const tab of [page, behind]) {
    const session = await context.newCDPSession(tab);
    await session.send('Emulation.setFocusEmulationEnabled', { enabled: false });
  }
  await behind.bringToFront();
  await expect.poll(() => page.evaluate(() => document.hidden)).toBe(true);
}

/** Says whether the browser kept the page, or loaded it anew. */
function notePersisted(info: TestInfo, log: see.Glimpse[], since: number): void {
  const shown = log.filter((glimpse) => glimpse.event === 'pageshow' && glimpse.at > since);
  const told = shown.map(({ path, persisted }) => `${path.replace(/\w{16,}/g, '…')} ${persisted}`);
  see.note(info, 'back/forward cache', told.join('; ') || 'no pageshow');
}
