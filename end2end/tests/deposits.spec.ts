// A virtual account: the page says where to, how much and until when; a deposit pays it, a forged one does not.
import { expect, test } from '../fixtures/shop';
import * as act from '../pages/act';
import * as see from '../pages/see';

test('waits for the deposit, is paid by it, and waits again when it is taken back', async ({ page, shop }) => {
  const order = await act.orderAndOpenWindow(page);
  await page.getByTestId('pg-pay-account').click();
  await see.stage(page, 'awaiting_deposit');
  await expect(page.getByTestId('deposit-number')).not.toBeEmpty();
  await expect(page.getByTestId('deposit-amount')).toContainText('원');
  await expect(see.payControls(page)).toHaveCount(0);

  await page.goto(`/orders/${order}`);
  await see.orderStatus(page, 'awaiting_deposit');
  await shop.pg.deposit(order, { forged: 'wrongSecret' });
  await shop.pg.deposit(order, { forged: 'noSecret' });
  await expect
    .poll(async () => {
      const metrics = await page.context().request.get(`${shop.url}/metrics`);
      return /webhook_events_total\{gateway="toss",result="forged"\} 2/.test(await metrics.text());
    })
    .toBe(true);
  await page.reload();
  await see.orderStatus(page, 'awaiting_deposit');

  await shop.pg.deposit(order);
  await see.attemptStatus(page.context(), shop, order, 'approved');
  await page.reload();
  await see.orderStatus(page, 'paid');
  await see.oneCharge(shop, order);

  await shop.pg.deposit(order, { undo: true });
  await see.attemptStatus(page.context(), shop, order, 'awaiting_deposit');
  await page.reload();
  await see.orderStatus(page, 'awaiting_deposit');
});
