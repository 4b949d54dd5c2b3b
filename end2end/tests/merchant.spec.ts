// An order of somebody else's shop: opened by its link, paid, and back to that shop with nothing but the order's name.
import { AxeBuilder } from '@axe-core/playwright';
import type { Page } from '@playwright/test';
import { expect, test } from '../fixtures/merchant';
import * as act from '../pages/act';
import * as see from '../pages/see';

for (const { language, soldBy, back } of [
  { language: 'ko', soldBy: '판매처', back: 'Vase & Co 쇼핑몰로 돌아가기' },
  { language: 'en', soldBy: 'Sold by', back: 'Back to Vase & Co' },
] as const) {
  test(`its page is in ${language}, names the shop and its lines, breaks no rule, and leads back`, async ({ page, shop, merchant }) => {
    const order = await merchant.order('A-1', language);
    await page.goto(order.checkoutUrl);
    await see.stage(page, 'offer');
    await expect(page).toHaveURL(`${shop.url}/checkout/${order.id}`);
    await expect(page.locator('html')).toHaveAttribute('lang', language);
    const summary = page.locator('.summary');
    await expect(summary).toContainText(soldBy);
    await expect(page.getByTestId('seller')).toHaveText(merchant.title);
    for (const line of merchant.lines) await expect(summary).toContainText(line.name);
    await expect(page.getByTestId('total')).toContainText('33,000');
    await expect(page.getByTestId('back-to-shop')).toHaveText(back);
    await breaksNoRule(page);

    await act.openWindow(page);
    await act.payInWindow(page);
    await see.stage(page, 'paid');
    await breaksNoRule(page);
    await see.oneCharge(shop, order.id);
    expect(await merchant.read(order)).toMatchObject({ status: 'paid', unknown: false });
    expect(merchant.cameBack).toEqual([]);

    await page.getByTestId('back-to-shop').click();
    await page.waitForURL(`${merchant.returnUrl}&order=${order.id}`);
    expect(merchant.cameBack).toEqual([`/done?cart=7&order=${order.id}`]);
  });
}

test('while it is in doubt the page offers no payment, leads back all the same, and the shop is told that it is unknown', async ({ page, shop, merchant }) => {
  await shop.pg.scenario({ stop: true });
  const order = await merchant.order('A-1', 'en');
  await page.goto(order.checkoutUrl);
  await act.openWindow(page);
  await act.payInWindow(page);
  await see.attemptStatus(page.context(), shop, order.id, 'approving');
  expect(await merchant.read(order)).toMatchObject({ status: 'pending', unknown: true });
  await page.goto(order.checkoutUrl);
  await expect(page.getByTestId('back-to-shop')).toBeVisible();
  await expect(see.payControls(page)).toHaveCount(0);
  await shop.pg.scenario({});
  await see.stage(page, 'paid', 90_000);
  await see.oneCharge(shop, order.id);
});

test('whoever has the address of the page and not the link sees nothing', async ({ page, merchant, anotherShopper }) => {
  const order = await merchant.order('A-1', 'en');
  await page.goto(order.checkoutUrl);
  await see.stage(page, 'offer');
  // Asked without a page: a page that is not there is complained about.
  const stranger = (await anotherShopper()).context();
  for (const address of [page.url(), `${order.checkoutUrl.slice(0, -64)}${'0'.repeat(64)}`]) {
    expect((await stranger.request.get(address)).status()).toBe(404);
  }
});

async function breaksNoRule(page: Page): Promise<void> {
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    const { violations } = await new AxeBuilder({ page }).analyze();
    const told = violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(' | ')}`);
    expect(told, colorScheme).toEqual([]);
  }
}
