// A paid order is cancelled from its page: asked once, said to be waiting, and told only when the gateway has done it.
import { AxeBuilder } from '@axe-core/playwright';
import { expect, test } from '../fixtures/shop';
import * as act from '../pages/act';
import * as see from '../pages/see';

const languages = [
  { locale: 'ko-KR', waiting: '은행의 답을 기다리고 있어요', done: '환불됐어요' },
  { locale: 'en-US', waiting: "waiting for the bank's word", done: 'Refunded' },
];

for (const words of languages) {
  test.describe(`in ${words.locale}`, () => {
    test.use({ locale: words.locale });

    test('a slow bank: waiting is said to be waiting, and the result comes by itself', async ({ page, shop }) => {
      const order = await act.pay(page);
      await see.stage(page, 'paid');
      await page.goto(`/orders/${order}`);
      await see.orderStatus(page, 'paid');
      await shop.pg.scenario({ operations: ['cancel'], delayMs: 2_500 });
      await page.getByTestId('cancel').click();
      await see.orderStatus(page, 'returning_money');
      await expect(page.getByTestId('refund')).toContainText(words.waiting);
      await expect(page.getByTestId('cancel')).toHaveCount(0);
      await expect(see.payControls(page)).toHaveCount(0);
      const { violations } = await new AxeBuilder({ page }).analyze();
      expect(violations.map(({ id }) => id)).toEqual([]);

      await see.orderStatus(page, 'refunded', 20_000);
      await expect(page.getByTestId('refund')).toContainText(words.done);
      const ledger = await shop.pg.ledger();
      expect(ledger.orders[order]).toMatchObject({ charges: 1, cancels: 1 });
      expect(ledger.calls.cancel.received).toBe(1);
      await page.goto('/orders');
      await see.historyStatus(page, order, 'refunded');
    });
  });
}

test('clicked twice: one refund', async ({ page, shop }) => {
  const order = await act.pay(page);
  await see.stage(page, 'paid');
  await page.goto(`/orders/${order}`);
  await shop.pg.scenario({ operations: ['cancel'], delayMs: 1_000 });
  await page.getByTestId('cancel').dblclick();
  await see.orderStatus(page, 'refunded', 20_000);
  await expect(page.getByTestId('refund')).toHaveCount(1);
  expect((await shop.pg.ledger()).calls.cancel.received).toBe(1);
});

test('refused by the gateway: the order stays paid, and the page says so', async ({ page, shop }) => {
  const order = await act.pay(page);
  await see.stage(page, 'paid');
  await page.goto(`/orders/${order}`);
  await shop.pg.scenario({
    operations: ['cancel'],
    error: { status: 403, code: 'NOT_CANCELABLE_PAYMENT' },
  });
  await page.getByTestId('cancel').click();
  await expect(page.getByTestId('refund')).toHaveAttribute('data-status', 'refused_by_gateway', {
    timeout: 20_000,
  });
  await see.orderStatus(page, 'paid');
  await see.oneCharge(shop, order);
});
