// Without script: the same cancel by a form and a page that loads itself anew.
import { expect, test } from '../fixtures/shop';
import * as act from '../pages/act';
import * as see from '../pages/see';

// What is loaded in advance for the script is of no use here, and Chromium says so.
test.use({ expectedConsole: [/preloaded using link preload but not used/] });

test('cancels from the order page', async ({ page, shop }) => {
  const order = await act.payWithoutScript(page);
  await see.stage(page, 'paid');
  await page.goto(`/orders/${order}`);
  await shop.pg.scenario({ operations: ['cancel'], delayMs: 2_000 });
  await page.getByTestId('cancel').click();
  await see.orderStatus(page, 'returning_money');
  await expect(page.getByTestId('cancel')).toHaveCount(0);
  await see.orderStatus(page, 'refunded', 20_000);
  await expect(page.getByTestId('refund')).toHaveAttribute('data-status', 'done');
  expect((await shop.pg.ledger()).orders[order]).toMatchObject({ charges: 1, cancels: 1 });
});
