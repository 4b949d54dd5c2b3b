// The order history by state, and the receipt of what was paid: plain links, so the same with and without script.
import { expect, test } from '../fixtures/shop';
import * as act from '../pages/act';
import * as see from '../pages/see';

test('orders are shown by their state, and the address says which', async ({ page, shop }) => {
  const paid = await act.pay(page);
  await see.stage(page, 'paid');
  const open = await act.order(page);
  await page.goto('/orders');
  const rows = page.getByTestId('order-row');
  await expect(rows).toHaveCount(2);
  await page.getByTestId('group-paid').click();
  await expect(rows).toHaveCount(1);
  await expect(rows).toHaveAttribute('data-order', paid);
  await expect(page.getByTestId('group-paid')).toHaveAttribute('aria-current', 'page');
  await page.getByTestId('group-pending').click();
  await expect(rows).toHaveAttribute('data-order', open);
  await page.getByTestId('group-refunded').click();
  await expect(rows).toHaveCount(0);
  await page.goto('/orders?state=nothing-we-know');
  await expect(rows).toHaveCount(2);
  expect(Object.keys((await shop.pg.ledger()).orders)).toHaveLength(1);
});

test('what was paid has a receipt, and on paper nothing else is on it', async ({ page, anotherShopper }) => {
  const order = await act.pay(page);
  await see.stage(page, 'paid');
  await page.goto(`/orders/${order}`);
  await page.getByTestId('to-receipt').click();
  await expect(page.getByTestId('receipt')).toContainText('18,000원');
  await page.emulateMedia({ media: 'print' });
  await expect(page.locator('.site-header')).toBeHidden();
  await expect(page.getByTestId('receipt')).toBeVisible();

  const other = await anotherShopper();
  const answer = await other.request.get(`/orders/${order}/receipt`);
  expect(answer.status()).toBe(404);
});

test('what was not paid has none', async ({ page }) => {
  const order = await act.order(page);
  const answer = await page.request.get(`/orders/${order}/receipt`);
  expect(answer.status()).toBe(404);
});
