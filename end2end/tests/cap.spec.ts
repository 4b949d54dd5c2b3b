// All places at the gateway are taken: refused at once, not charged, and the same payment goes through later.
import { expect, test, type Shop } from '../fixtures/shop';
import type { Page } from '@playwright/test';
import * as act from '../pages/act';
import * as see from '../pages/see';

const BANK_MS = 5_000;

/** Fills every place with others, pays in vain, and pays again when they are done. */
async function payWhileFull(page: Page, shop: Shop, places: number): Promise<void> {
  await see.keepLog(page.context());
  const others: act.Other[] = [];
  while (others.length < places) others.push(await act.anotherShopper(shop));
  const order = await act.orderAndOpenWindow(page);
  await shop.pg.scenario({ delayMs: BANK_MS });
  const { answered } = await act.theyPay(shop, others);

  const refused = page.waitForResponse((answer) => answer.url().endsWith('/api/payments/confirm'));
  await act.payInWindow(page);
  const answer = await refused;
  expect(answer.status()).toBe(503);
  expect(Number(answer.headers()['retry-after'])).toBeGreaterThan(0);
  expect(await answer.json()).toMatchObject({ code: 'pg_cap_reached', reach: 'not_sent' });

  await see.stage(page, 'not_charged');
  await expect(page.getByTestId('stage')).toContainText('청구된 금액은 없어요');
  await expect(see.payControls(page).and(page.getByTestId('pay'))).toBeVisible();
  expect((await shop.pg.ledger()).orders[order]).toBeUndefined();

  expect(await answered).toEqual(others.map(() => 200));
  await page.getByTestId('pay').click();
  await see.stage(page, 'paid', 20_000);
  const again = (await see.logOf(page)).findLast((glimpse) => glimpse.stage === 'confirming');
  await see.offeredNothing(page, again?.at ?? 0);

  const ledger = await shop.pg.ledger();
  for (const id of [order, ...others.map((other) => other.order)]) {
    expect(ledger.orders[id]).toMatchObject({ confirms: 1, charges: 1 });
  }
  expect(ledger.peakInFlight.confirm).toBe(places);
}

test.describe('one place', () => {
  test.use({ shopEnv: { JARI_PG_CAP: '1', JARI_PG_RESERVE: '0' } });

  test('is taken: not charged, and paying again later works', async ({ page, shop }) => {
    await payWhileFull(page, shop, 1);
  });
});

test('all 40 places are taken: the 41st is not charged, and paying again later works', async ({ page, shop }) => {
  await payWhileFull(page, shop, 40);
});
