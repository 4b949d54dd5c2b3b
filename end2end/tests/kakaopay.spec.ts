// A second way to pay, whose gateway opens each window itself and has neither keys nor webhooks: whatever the shopper does
// in its window, the truth comes out, with at most one charge.
import type { Page } from '@playwright/test';
import { expect, test } from '../fixtures/shop';
import * as act from '../pages/act';
import * as see from '../pages/see';

test.use({ shopEnv: { JARI_GATEWAYS: 'toss,kakaopay' } });

/** Orders, chooses KakaoPay and stops before its window's buttons; returns the order's id and the gateway's. */
async function orderAndOpen(page: Page): Promise<{ order: string; id: string }> {
  const order = await act.order(page);
  await act.choose(page, 'kakaopay');
  const id = await act.openWindow(page);
  return { order, id };
}

async function openAnother(page: Page, gateway: string): Promise<string> {
  await act.choose(page, gateway);
  return act.openWindow(page);
}

/** Presses a button of the window that stands behind "more". */
async function pressMore(page: Page, button: string): Promise<void> {
  await page.getByTestId('pg-more').click();
  await page.getByTestId(button).click();
}

test('paid by the keyboard alone', async ({ page, shop }) => {
  await act.order(page);
  const methods = page.getByRole('group', { name: '결제 수단' });
  await expect(methods.getByRole('radio')).toHaveCount(2);
  await expect(methods.getByRole('radio', { name: /토스페이먼츠/ })).toBeChecked();
  await methods.getByRole('radio', { name: /토스페이먼츠/ }).focus();
  await page.keyboard.press('ArrowDown');
  await expect(methods.getByRole('radio', { name: '카카오페이' })).toBeChecked();
  await page.keyboard.press('Tab');
  await expect(page.getByTestId('pay')).toBeFocused();
  await page.keyboard.press('Enter');
  const id = (await page.getByTestId('pg-order').innerText()).trim();
  await act.payInWindow(page);
  await see.stage(page, 'paid');
  await see.oneCharge(shop, id);
});

test.describe('on a phone', () => {
  test.use({
    isMobile: true,
    hasTouch: true,
    viewport: { width: 390, height: 844 },
    userAgent:
      'Mozilla/5.0 (Linux; Android 16; Pixel 9) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Mobile Safari/537.36',
  });

  test('the phone’s own window is opened', async ({ page, shop }) => {
    const { id } = await orderAndOpen(page);
    await expect(page.getByTestId('pg-device')).toContainText(/mobile/i);
    await act.payInWindow(page);
    await see.stage(page, 'paid');
    await see.oneCharge(shop, id);
  });
});

for (const [name, press, told] of [
  ['closed', (page: Page) => page.getByTestId('pg-close').click(), '결제창을 닫으셨어요'],
  ['refused in', (page: Page) => page.getByTestId('pg-refuse').click(), '결제창에서 거절되었어요'],
] as const) {
  test(`a window that is ${name}: nothing charged, and it can be paid in a new one`, async ({ page, shop }) => {
    const { id } = await orderAndOpen(page);
    await press(page);
    await see.stage(page, 'offer');
    await expect(page.getByTestId('notice')).toContainText(told);
    await see.noCharge(shop);
    const next = await openAnother(page, 'kakaopay');
    expect(next).not.toBe(id);
    await act.payInWindow(page);
    await see.stage(page, 'paid');
    await see.oneCharge(shop, next);
  });
}

test('a window that runs out: nothing charged, and it can be paid the other way', async ({ page, shop }) => {
  await orderAndOpen(page);
  await pressMore(page, 'pg-expire');
  await see.stage(page, 'offer');
  await see.noCharge(shop);
  const next = await openAnother(page, 'toss');
  await act.payInWindow(page);
  await see.stage(page, 'paid');
  await see.oneCharge(shop, next);
});

test('a forged token is not paid, and the order still can be', async ({ page, shop }) => {
  await orderAndOpen(page);
  await pressMore(page, 'pg-pay-forged');
  await see.stage(page, 'not_charged');
  await see.noCharge(shop);
  const next = await openAnother(page, 'kakaopay');
  await act.payInWindow(page);
  await see.stage(page, 'paid');
  await see.oneCharge(shop, next);
});

test('declined one way, paid the other: a new attempt under a new name', async ({ page, shop }) => {
  await shop.pg.scenario({ gateways: ['kakaopay'], decline: { code: '-797' } });
  const { id } = await orderAndOpen(page);
  await act.payInWindow(page);
  await see.stage(page, 'not_charged');
  const next = await openAnother(page, 'toss');
  expect(next).not.toBe(id);
  await act.payInWindow(page);
  await see.stage(page, 'paid');
  await see.oneCharge(shop, next);
});

test.describe('in a browser that knows nothing of the order', () => {
  // The other shopper's page is a 404.
  test.use({ expectedConsole: [/status of 404/] });

  test('the address of the return tells nothing, and opened again it tells the truth', async ({
    page,
    shop,
    anotherShopper,
  }) => {
    const { order, id } = await orderAndOpen(page);
    const returned = page.waitForRequest((request) => request.url().includes('/return/'));
    await act.payInWindow(page);
    const back = (await returned).url();
    expect(back).toContain('pg_token=');
    await see.stage(page, 'paid');

    await page.goto(back);
    await see.stage(page, 'paid');
    await expect(see.payControls(page)).toHaveCount(0);

    const stranger = await anotherShopper();
    const answer = await stranger.goto(back);
    expect(answer?.status()).toBe(404);
    await expect(stranger.locator('body')).not.toContainText(order);
    await see.oneCharge(shop, id);
  });
});

test.describe('an answer that never comes', () => {
  test.use({ shopEnv: { JARI_GATEWAYS: 'toss,kakaopay', JARI_KAKAOPAY_RESPONSE_WAIT_MS: '1500' } });

  test('no way to pay is offered while nobody knows, and the truth comes by asking', async ({ page, shop }) => {
    await see.keepLog(page.context());
    await shop.pg.scenario({
      gateways: ['kakaopay'],
      operations: ['confirm', 'get'],
      loss: { when: 'after' },
    });
    const { order, id } = await orderAndOpen(page);
    await act.payInWindow(page);
    await see.stage(page, 'checking');
    await expect(see.payControls(page)).toHaveCount(0);
    const other = await page.context().request.post(`${shop.url}/api/orders/${order}/attempts`, {
      data: { gateway: 'toss' },
    });
    expect(other.status()).toBe(409);
    await shop.pg.scenario({});
    await see.stage(page, 'paid', 60_000);
    const log = await see.logOf(page);
    expect(see.offersBetween(log, see.firstSeen(log, 'confirming'))).toEqual([]);
    await see.oneCharge(shop, id);
  });
});
