// The address of return, of either window: opened in another browser it is nothing, opened again it tells the truth, and one
// that comes too late is not charged.
import type { Page } from '@playwright/test';
import { expect, test } from '../fixtures/shop';
import * as act from '../pages/act';
import * as see from '../pages/see';

test.use({ shopEnv: { JARI_GATEWAYS: 'toss,kakaopay' } });

/** Pays in the window, and is kept on the way back: the address that the window leads to, which nobody has opened yet. */
async function payAndStayAway(page: Page): Promise<string> {
  const sent = await page.getByTestId('pg-pay').evaluate((button: HTMLButtonElement) => {
    const form = button.form;
    if (!form) throw new Error('no form');
    // A browser follows the answer by itself: so the form is sent without one.
    const fields = [...new FormData(form, button)].map(([name, value]) => [name, String(value)]);
    return { to: new URL(form.getAttribute('action') ?? '', location.href).href, fields: Object.fromEntries(fields) };
  });
  const answer = await page.request.post(sent.to, { form: sent.fields, maxRedirects: 0 });
  expect([302, 303]).toContain(answer.status());
  return new URL(answer.headers()['location'] ?? '', sent.to).href;
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
