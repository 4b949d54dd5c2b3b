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

/** Watches the page from the confirm until 66 s, and goes to the history then. */
async function waitInVain(page: Page, order: string): Promise<void> {
  const begun = see.firstSeen(await see.logOf(page), 'confirming');
  while (Date.now() < begun + 66_000) {
    expect(await see.payControls(page).count()).toBe(0);
    await page.waitForTimeout(250);
  }

  await see.stage(page, 'still_unknown', 1_000);
  const log = await see.logOf(page);
  const ended = see.firstSeen(log, 'still_unknown') - Math.min(begun, await see.confirmSent(page));
  see.note(test.info(), 'ms from confirm to the end', ended);
  expect(ended).toBeGreaterThanOrEqual(65_000 - see.DRAWING_MS);
  expect(ended).toBeLessThanOrEqual(67_000);
  // Every change of the page, not only what was there each 250 ms.
  expect(see.offersBetween(log, begun)).toEqual([]);
  await expect(page.getByTestId('stage')).toContainText('결과는 주문내역에 나타나요');

  await page.getByTestId('stage').locator('a[href="/orders"]').click();
  await see.historyStatus(page, order, 'checking');
  await expect(see.payControls(page)).toHaveCount(0);
}

/** Lets the gateway answer again, and waits until the open history shows the truth without a click. */
async function lift(page: Page, shop: Shop, order: string, scenario: Scenario, truth: see.Stage) {
  const lifted = Date.now();
  await shop.pg.scenario(scenario);
  await see.historyStatus(page, order, truth, 70_000);
  see.note(test.info(), 'ms from the first answer to the truth', Date.now() - lifted);
}

test('never answers and never charges: the history says so by itself', async ({ page, shop }) => {
  await see.keepLog(page.context());
  const order = await act.orderAndOpenWindow(page);
  const healthy = { confirmWindowMs: CONFIRM_WINDOW_MS };
  await shop.pg.scenario({ ...healthy, stop: true, operations: everything });
  await act.payInWindow(page);
  await see.stage(page, 'confirming');
  await waitInVain(page, order);

  await lift(page, shop, order, healthy, 'not_charged');
  await see.noCharge(shop);
  await page.goto(`/checkout/${order}`);
  await expect(see.payControls(page).and(page.getByTestId('pay'))).toBeVisible();
});

test('charges and never answers: the history says paid by itself', async ({ page, shop }) => {
  await see.keepLog(page.context());
  const order = await act.orderAndOpenWindow(page);
  const mute = { webhooks: { drop: 1 } };
  await shop.pg.scenario({ ...mute, hang: { when: 'after', ms: 600_000 } });
  await act.payInWindow(page);
  await see.stage(page, 'confirming');
  await expect.poll(async () => (await shop.pg.ledger()).orders[order]?.charges).toBe(1);
  await shop.pg.scenario({ ...mute, stop: true, operations: everything });
  await waitInVain(page, order);

  await lift(page, shop, order, mute, 'paid');
  await see.oneCharge(shop, order);
});
