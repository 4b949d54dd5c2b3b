// A gateway that never answers: nothing to pay with is offered in the whole wait, and the history tells in the end.
import { expect, test, type Scenario, type Shop } from '../fixtures/shop';
import type { Page } from '@playwright/test';
import * as act from '../pages/act';
import * as see from '../pages/see';

/** The server gives up its own call at 60 s; what was not booked is certain this long after. */
const CONFIRM_WINDOW_MS = 3_000;

test.use({ shopEnv: { JARI_PG_CONFIRM_WINDOW_MS: String(CONFIRM_WINDOW_MS) } });
test.setTimeout(240_000);

const everything = ['confirm', 'get', 'cancel'];

/** Pays, and watches the page from the confirm until 66 s. */
async function waitInVain(page: Page, shop: Shop, scenario: Scenario): Promise<string> {
  await see.keepLog(page.context());
  const order = await act.orderAndOpenWindow(page);
  await shop.pg.scenario(scenario);
  await act.payInWindow(page);
  await see.stage(page, 'confirming');
  const begun = see.firstSeen(await see.logOf(page), 'confirming');
  while (Date.now() < begun + 66_000) {
    expect(await see.payControls(page).count()).toBe(0);
    await page.waitForTimeout(250);
  }

  await see.stage(page, 'still_unknown', 1_000);
  const log = await see.logOf(page);
  const ended = see.firstSeen(log, 'still_unknown') - begun;
  see.note(test.info(), 'ms from confirm to the end', ended);
  expect(ended).toBeGreaterThanOrEqual(65_000 - see.DRAWING_MS);
  expect(ended).toBeLessThanOrEqual(67_000);
  // Every change of the page, not only what was there each 250 ms.
  expect(see.offersBetween(log, begun)).toEqual([]);
  await expect(page.getByTestId('stage')).toContainText('결과는 주문내역에 나타나요');

  await page.getByTestId('stage').locator('a[href="/orders"]').click();
  await see.historyStatus(page, order, 'checking');
  await expect(see.payControls(page)).toHaveCount(0);
  return order;
}

test('never answers and never charges: the history says so by itself', async ({ page, shop }, info) => {
  const scenario = { confirmWindowMs: CONFIRM_WINDOW_MS };
  const order = await waitInVain(page, shop, { ...scenario, stop: true, operations: everything });

  const lifted = Date.now();
  await shop.pg.scenario(scenario);
  await see.historyStatus(page, order, 'not_charged', 80_000);
  see.note(info, 'ms from the first answer to the truth', Date.now() - lifted);
  await see.noCharge(shop);
  await page.goto(`/checkout/${order}`);
  await expect(see.payControls(page).and(page.getByTestId('pay'))).toBeVisible();
});

test('charges and never answers: the history says paid by itself', async ({ page, shop }, info) => {
  const order = await waitInVain(page, shop, {
    hang: { when: 'after', ms: 600_000 },
    operations: everything,
    webhooks: { drop: 1 },
  });
  await see.oneCharge(shop, order);

  const lifted = Date.now();
  await shop.pg.scenario({});
  await see.historyStatus(page, order, 'paid', 80_000);
  see.note(info, 'ms from the first answer to the truth', Date.now() - lifted);
  await see.oneCharge(shop, order);
});
