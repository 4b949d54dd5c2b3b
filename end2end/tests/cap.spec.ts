// All places at the gateway are taken: refused at once, not charged, and the same payment goes through later.
import { expect, test } from '../fixtures/shop';
import * as act from '../pages/act';
import * as see from '../pages/see';

test.use({ shopEnv: { JARI_PG_CAP: '1', JARI_PG_RESERVE: '0' } });

test('all places taken: not charged, and paying again later works', async ({ page, shop }) => {
  await see.keepLog(page.context());
  const order = await act.orderAndOpenWindow(page);
  await shop.pg.scenario({ delayMs: 5_000 });
  const other = await act.anotherPays(shop);

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

  expect(await other.answered).toBe(200);
  await page.getByTestId('pay').click();
  await see.stage(page, 'paid', 20_000);
  const again = (await see.logOf(page)).findLast((glimpse) => glimpse.stage === 'confirming');
  await see.offeredNothing(page, again?.at ?? 0);

  const ledger = await shop.pg.ledger();
  expect(ledger.orders[order]).toMatchObject({ confirms: 1, charges: 1 });
  expect(ledger.orders[other.order]).toMatchObject({ confirms: 1, charges: 1 });
  expect(ledger.peakInFlight.confirm).toBe(1);
});
