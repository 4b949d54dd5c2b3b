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

for (const words of [
  { locale: 'ko-KR', offer: '아직 입금된 금액이 없어요', nothing: '돌려드릴 금액도 없어요', refunded: '환불' },
  { locale: 'en-US', offer: 'Nothing has been paid yet', nothing: 'No money came', refunded: 'refund' },
]) {
  test.describe(`in ${words.locale}`, () => {
    test.use({ locale: words.locale });

    test('is cancelled before anybody paid, and no page says that money went back', async ({ page, shop }) => {
      const order = await act.orderAndOpenWindow(page);
      await page.getByTestId('pg-pay-account').click();
      await see.stage(page, 'awaiting_deposit');
      await page.goto(`/orders/${order}`);
      await expect(page.locator('.cancel')).toContainText(words.offer);
      await shop.pg.scenario({ operations: ['cancel'], delayMs: 2_000 });
      await page.getByTestId('cancel').click();
      await see.orderStatus(page, 'closing_account');
      await expect(page.getByTestId('deposit-number')).toHaveCount(0);
      await expect(page.getByTestId('cancel')).toHaveCount(0);
      // By itself.
      await see.orderStatus(page, 'closed_unpaid', 20_000);
      await expect(page.locator('main')).toContainText(words.nothing);
      // The development panel beside it shows the gateway's own words.
      const said = await page.locator('main').evaluate((main) => {
        const copy = main.cloneNode(true) as HTMLElement;
        for (const beside of copy.querySelectorAll('aside')) beside.remove();
        return copy.textContent ?? '';
      });
      expect(said).toContain(words.nothing);
      expect(said.toLowerCase()).not.toContain(words.refunded);
      await expect(see.payControls(page)).toHaveCount(0);
      await page.goto(`/checkout/${order}`);
      await see.stage(page, 'closed_unpaid');
      await page.goto('/orders');
      await see.historyStatus(page, order, 'closed_unpaid');
      await expect(shop.pg.deposit(order)).rejects.toThrow();
      await see.noCharge(shop);
    });
  });
}

test('a deposit that is faster than its cancel is paid', async ({ page, shop }) => {
  const order = await act.orderAndOpenWindow(page);
  await page.getByTestId('pg-pay-account').click();
  await see.stage(page, 'awaiting_deposit');
  await page.goto(`/orders/${order}`);
  await shop.pg.scenario({ operations: ['cancel'], delayMs: 3_000 });
  await page.getByTestId('cancel').click();
  await see.orderStatus(page, 'closing_account');
  await shop.pg.deposit(order);
  await see.orderStatus(page, 'paid', 30_000);
  await see.oneCharge(shop, order);
});
