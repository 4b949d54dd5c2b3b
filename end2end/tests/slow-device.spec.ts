// A weak phone on a slow network: the page can be used before its program is there, and no press is lost or counted twice.
import type { Page } from '@playwright/test';
import { expect, test } from '../fixtures/shop';
import * as act from '../pages/act';
import * as see from '../pages/see';

/** Slow 4G as the browser's own tools have it. */
const SLOW_4G = {
  offline: false,
  latency: 562.5,
  downloadThroughput: (1_474.56 * 1_024) / 8,
  uploadThroughput: (675 * 1_024) / 8,
};
const CPU_SLOWDOWN = 4;

test.use({ viewport: { width: 390, height: 844 } });

async function slowDown(page: Page): Promise<void> {
  const session = await page.context().newCDPSession(page);
  await session.send('Emulation.setCPUThrottlingRate', { rate: CPU_SLOWDOWN });
  await session.send('Network.enable');
  await session.send('Network.emulateNetworkConditions', SLOW_4G);
}

/** Notes at each press of a form's button whether the program was there yet. */
async function keepPresses(page: Page): Promise<void> {
  await page.addInitScript(() => {
    addEventListener(
      'submit',
      () => {
        const presses = JSON.parse(sessionStorage.getItem('test:presses') ?? '[]') as boolean[];
        presses.push(document.body.dataset.hydrated === 'true');
        sessionStorage.setItem('test:presses', JSON.stringify(presses));
      },
      true,
    );
  });
}

async function pressesWithProgram(page: Page): Promise<boolean[]> {
  return JSON.parse((await page.evaluate(() => sessionStorage.getItem('test:presses'))) ?? '[]') as boolean[];
}

test('the whole way, and the button is there before the program', async ({ page, shop }, info) => {
  await keepPresses(page);
  await page.goto('/');
  await slowDown(page);
  await page.locator('[data-testid="product"][data-sku="mug"]').getByTestId('order').click();
  const pay = page.getByTestId('pay');
  await pay.waitFor();
  const usable = await page.evaluate(() => performance.now());
  see.note(info, 'ms to the pay button', Math.round(usable));
  const order = page.url().split('/').at(-1) ?? '';
  await pay.click();
  await page.getByTestId('pg-pay').click();
  await see.stage(page, 'paid', 60_000);
  await see.oneCharge(shop, order);
  expect((await shop.pg.ledger()).calls.confirm.received).toBe(1);
});

test('presses before the program is there pay, once', async ({ page, shop }) => {
  await keepPresses(page);
  await slowDown(page);
  await act.holdProgram(page);
  const order = await act.pay(page);
  await page.getByTestId('confirm').click();
  await see.stage(page, 'paid', 60_000);
  // Of order, payment and last step none had the program, and each did what it says.
  expect(await pressesWithProgram(page)).toEqual([false, false, false]);
  await see.oneCharge(shop, order);
  expect((await shop.pg.ledger()).calls.confirm.received).toBe(1);
});

test('the program comes while a press is on its way: charged once', async ({ page, shop }) => {
  await slowDown(page);
  await shop.pg.scenario({ delayMs: 2_000 });
  await act.orderAndOpenWindow(page);
  const release = await act.holdProgram(page);
  const order = await payReturned(page);
  // The form's answer is as slow as the network; the program wakes the page in that time and confirms too.
  await page.getByTestId('confirm').click({ noWaitAfter: true });
  release();
  await see.stage(page, 'paid', 60_000);
  await see.oneCharge(shop, order);
  expect((await shop.pg.ledger()).calls.confirm.received).toBe(1);
});

/** Pays in the open window; returns the order's id when the last step is offered. */
async function payReturned(page: Page): Promise<string> {
  const order = (await page.getByTestId('pg-order').innerText()).trim();
  await page.getByTestId('pg-pay').click();
  await page.getByTestId('confirm').waitFor();
  return order;
}
