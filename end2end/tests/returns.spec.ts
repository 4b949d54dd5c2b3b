// The address of return, of either window: opened in another browser it is nothing, opened again it tells the truth, and one
// that comes too late is not charged.
import type { Page } from '@playwright/test';
import { expect, test } from '../fixtures/shop';
import * as act from '../pages/act';
import * as see from '../pages/see';

test.use({ shopEnv: { JARI_GATEWAYS: 'toss,kakaopay' } });

/** Pays in the window, and is kept on the way back: the address that the window leads to, which nobody has opened yet. */
async function payAndStayAway(page: Page): Promise<string> {
  const returned = page.waitForRequest((request) => request.url().includes('/return/'));
  await page.route('**/return/**', (route) => route.fulfill({ contentType: 'text/html', body: '<p>on the way</p>' }));
  await page.getByTestId('pg-pay').click();
  const back = (await returned).url();
  await expect(page.locator('body')).toHaveText('on the way');
  await page.unroute('**/return/**');
  return back;
}

for (const gateway of ['toss', 'kakaopay']) {
  test.describe(`from the window of ${gateway}`, () => {
    // The other browser's page is a 404.
    test.use({ expectedConsole: [/status of 404/] });

    test(`an address of return in another browser charges nothing, and then pays once (${gateway})`, async ({
      page,
      shop,
      anotherShopper,
    }) => {
      const order = await act.order(page);
      await act.choose(page, gateway);
      const id = await act.openWindow(page);
      const back = await payAndStayAway(page);

      const stranger = await anotherShopper();
      expect((await stranger.goto(back))?.status()).toBe(404);
      await expect(stranger.locator('body')).not.toContainText(order);
      await expect(stranger.getByTestId('stage')).toHaveCount(0);
      expect((await shop.pg.ledger()).calls.confirm.received).toBe(0);
      await see.noCharge(shop);

      await page.goto(back);
      await see.stage(page, 'paid');
      // Replayed, as often as anybody likes.
      for (let again = 0; again < 2; again += 1) {
        await page.goto(back);
        await see.stage(page, 'paid');
        await expect(see.payControls(page)).toHaveCount(0);
      }
      expect((await shop.pg.ledger()).calls.confirm.received).toBe(1);
      await see.oneCharge(shop, id);
    });
  });
}

test('a payment that was authenticated too long ago is not charged, and can be paid anew (toss)', async ({ page, shop }) => {
  await shop.pg.scenario({ confirmWindowMs: 1 });
  await act.order(page);
  await act.choose(page, 'toss');
  await act.openWindow(page);
  await act.payInWindow(page);
  await see.stage(page, 'not_charged');
  await see.noCharge(shop);
  await shop.pg.scenario({});
  await act.choose(page, 'toss');
  const next = await act.openWindow(page);
  await act.payInWindow(page);
  await see.stage(page, 'paid');
  await see.oneCharge(shop, next);
});
