// Without script: the same shop by forms and pages that load themselves anew.
import { expect, test } from '../fixtures/shop';
import * as act from '../pages/act';
import * as see from '../pages/see';

// What is loaded in advance for the script is of no use here, and Chromium says so.
test.use({ expectedConsole: [/preloaded using link preload but not used/] });

test('pays, and sees it in the history', async ({ page, shop }) => {
  const order = await act.pay(page);
  await expect(page.getByTestId('confirm')).toBeVisible();
  expect((await shop.pg.ledger()).calls.confirm.received).toBe(0);
  await page.getByTestId('confirm').click();
  await see.stage(page, 'paid');
  await page.getByTestId('stage').locator('a[href="/orders"]').click();
  await see.historyStatus(page, order, 'paid');
  await see.oneCharge(shop, order);
});

test('a slow bank: the waiting page loads itself anew until it is paid', async ({ page, shop }) => {
  await shop.pg.scenario({ delayMs: 5_000 });
  const order = await act.pay(page);
  let loads = 0;
  page.on('domcontentloaded', () => (loads += 1));
  await page.getByTestId('confirm').click();
  await see.stage(page, 'checking');
  await expect(see.payControls(page)).toHaveCount(0);
  await page.goto(`/orders/${order}`);
  await see.orderStatus(page, 'checking');
  await expect(see.payControls(page)).toHaveCount(0);
  await page.goBack();
  await see.stage(page, 'paid', 15_000);
  expect(loads).toBeGreaterThan(3);
  await see.oneCharge(shop, order);
});

test('clicks twice: one charge', async ({ page, shop }) => {
  await shop.pg.scenario({ delayMs: 2_000 });
  const order = await act.pay(page);
  await page.getByTestId('confirm').dblclick();
  await see.stage(page, 'paid');
  await see.oneCharge(shop, order);
});

test('declined: not charged, and paying again works', async ({ page, shop }) => {
  await shop.pg.scenario({ decline: {} });
  const order = await act.payWithoutScript(page);
  await see.stage(page, 'not_charged');
  await see.noCharge(shop);
  await shop.pg.scenario({});
  const again = await act.openWindow(page);
  expect(again).not.toBe(order);
  await act.payInWindow(page);
  await page.getByTestId('confirm').click();
  await see.stage(page, 'paid');
  await see.oneCharge(shop, again);
});

test('window closed: it can be paid', async ({ page, shop }) => {
  const order = await act.orderAndOpenWindow(page);
  await page.getByTestId('pg-close').click();
  await expect(page.getByTestId('notice')).toBeVisible();
  expect(await act.openWindow(page)).toBe(order);
  await act.payInWindow(page);
  await page.getByTestId('confirm').click();
  await see.stage(page, 'paid');
  await see.oneCharge(shop, order);
});

test.describe('all places taken', () => {
  test.use({ shopEnv: { JARI_PG_CAP: '1', JARI_PG_RESERVE: '0' } });

  test('not charged, and paying again works', async ({ page, shop }) => {
    const order = await act.pay(page);
    await shop.pg.scenario({ delayMs: 5_000 });
    const other = await act.anotherShopper(shop);
    const { answered } = await act.theyPay(shop, [other]);
    await page.getByTestId('confirm').click();
    await see.stage(page, 'not_charged');
    await expect(see.payControls(page)).not.toHaveCount(0);
    expect((await shop.pg.ledger()).calls.confirm.received).toBe(1);
    expect(await answered).toEqual([200]);

    await shop.pg.scenario({});
    expect(await act.openWindow(page)).toBe(order);
    await act.payInWindow(page);
    await page.getByTestId('confirm').click();
    await see.stage(page, 'paid');
    const { orders } = await shop.pg.ledger();
    expect(orders[order]).toMatchObject({ confirms: 1, charges: 1 });
    expect(orders[other.order]).toMatchObject({ confirms: 1, charges: 1 });
  });
});
