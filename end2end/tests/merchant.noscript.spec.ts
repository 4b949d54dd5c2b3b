// An order of somebody else's shop, without script.
import { expect, test } from '../fixtures/merchant';
import * as act from '../pages/act';
import * as see from '../pages/see';

// What is loaded in advance for the script is of no use here, and Chromium says so.
test.use({ expectedConsole: [/preloaded using link preload but not used/] });

test('is opened by its link, paid, and leads back with the order\'s name', async ({ page, shop, merchant }) => {
  const order = await merchant.order('A-1', 'en');
  await page.goto(order.checkoutUrl);
  await see.stage(page, 'offer');
  await expect(page.getByTestId('seller')).toHaveText(merchant.title);
  await act.openWindow(page);
  await act.payInWindow(page);
  await page.getByTestId('confirm').click();
  await see.stage(page, 'paid');
  await see.oneCharge(shop, order.id);
  expect(await merchant.read(order)).toMatchObject({ status: 'paid' });
  await page.getByTestId('back-to-shop').click();
  await page.waitForURL(`${merchant.returnUrl}&order=${order.id}`);
  expect(merchant.cameBack).toEqual([`/done?cart=7&order=${order.id}`]);
});

test('a slow bank: the way back is open while nothing can be paid twice', async ({ page, shop, merchant }) => {
  await shop.pg.scenario({ delayMs: 5_000 });
  const order = await merchant.order('A-1', 'ko');
  await page.goto(order.checkoutUrl);
  await act.openWindow(page);
  await act.payInWindow(page);
  await page.getByTestId('confirm').click();
  await see.stage(page, 'checking');
  await expect(page.getByTestId('back-to-shop')).toBeVisible();
  await expect(see.payControls(page)).toHaveCount(0);
  await see.stage(page, 'paid', 15_000);
  await see.oneCharge(shop, order.id);
});
