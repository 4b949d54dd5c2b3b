// The page that opens the gateway's window by the gateway's own script, here a stub of it.
import type { Page } from '@playwright/test';
import { expect, test, type Env, type Shop } from '../fixtures/shop';
import * as act from '../pages/act';
import * as see from '../pages/see';

const SCRIPT = 'https://js.tosspayments.com/v2/standard';

const real = (shop: Shop): Env => ({
  JARI_FAKE_PG: 'off',
  JARI_TOSS_CLIENT_KEY: 'test_ck_shop',
  JARI_TOSS_SECRET_KEY: 'test_sk_fake',
  JARI_TOSS_URL: shop.pg.url,
});

/** A script that leads to the fake gateway's window, as the real one leads to its own. */
async function stub(page: Page, shop: Shop): Promise<void> {
  const body = `
    window.TossPayments = (clientKey) => ({
      payment: ({ customerKey }) => ({
        requestPayment: async (asked) => {
          if (customerKey !== '@@ANONYMOUS' || asked.method !== 'CARD') throw new Error('asked for something else');
          const query = new URLSearchParams({
            gateway: 'toss', clientKey, orderId: asked.orderId, orderName: asked.orderName,
            amount: String(asked.amount.value), successUrl: asked.successUrl, failUrl: asked.failUrl,
          });
          location.assign('${shop.pg.url}/window?' + query);
        },
      }),
    });
    window.TossPayments.ANONYMOUS = '@@ANONYMOUS';`;
  await page.route(SCRIPT, (route) => route.fulfill({ contentType: 'application/javascript', body }));
}

test('the gateway’s own script opens its window, and the payment is completed as ever', async ({ page, shop }) => {
  await shop.restart(real(shop));
  await stub(page, shop);
  const order = await act.orderAndOpenWindow(page);
  await act.payInWindow(page);
  await see.stage(page, 'paid');
  await see.oneCharge(shop, order);
});

test.describe('when the script cannot be had', () => {
  test.use({ expectedConsole: [/ERR_FAILED|Failed to load resource/] });

  test('it is said so, nothing is charged, and there is a way back', async ({ page, shop }) => {
    await shop.restart(real(shop));
    await page.route(SCRIPT, (route) => route.abort());
    await act.order(page);
    await page.getByTestId('pay').click();
    await expect(page.locator('[data-say="blocked"]')).toBeVisible();
    await expect(page.locator('[data-say="opening"]')).toBeHidden();
    await page.getByTestId('back').click();
    await see.stage(page, 'offer');
    expect((await shop.pg.ledger()).calls.confirm.received).toBe(0);
  });

  test('a shopper who closes the window can pay again', async ({ page, shop }) => {
    await shop.restart(real(shop));
    const body = `
      window.TossPayments = () => ({ payment: () => ({ requestPayment: async () => {
        throw Object.assign(new Error('closed'), { code: 'USER_CANCEL' });
      } }) });`;
    await page.route(SCRIPT, (route) => route.fulfill({ contentType: 'application/javascript', body }));
    await act.order(page);
    await page.getByTestId('pay').click();
    await expect(page.locator('[data-say="closed"]')).toBeVisible();
    await page.getByTestId('back').click();
    await see.stage(page, 'offer');
  });
});
