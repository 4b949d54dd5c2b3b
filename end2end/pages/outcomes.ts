// The rarer states of an order, and the way there: money that goes back, comes late, or never comes.
import type { Page } from '@playwright/test';
import type { Env, Shop } from '../fixtures/shop';
import * as act from './act';
import type { Scene } from './scenes';
import * as see from './see';

/** Not booked and unknown becomes certain soon. */
const SOON_CERTAIN: Env = {
  JARI_PG_CONFIRM_WINDOW_MS: '300',
  JARI_PG_TIMEOUT_MS: '600',
  JARI_DATABASE_WAIT_MS: '200',
};

/** Pays, and waits until everybody knows. */
async function paid(page: Page): Promise<string> {
  const order = await act.pay(page);
  await see.stage(page, 'paid');
  return order;
}

/** A payment that was not booked and is known not to be; its key can still be charged at the gateway. */
async function failedByTheClock(page: Page, shop: Shop): Promise<{ order: string; key: string }> {
  const order = await act.orderAndOpenWindow(page);
  await shop.pg.scenario({ loss: { when: 'before' } });
  const returned = page.waitForRequest((request) => request.url().includes('/return/'));
  await act.payInWindow(page);
  const key = new URL((await returned).url()).searchParams.get('paymentKey') ?? '';
  await see.attemptStatus(page.context(), shop, order, 'failed', 20_000);
  return { order, key };
}

/** The gateway charges it after all, by a confirm that is not the shop's. */
async function chargeLate(shop: Shop, order: string, key: string): Promise<void> {
  await shop.pg.scenario({});
  await shop.pg.confirm(order, key, 18_000);
}

export const outcomes: Scene[] = [
  {
    name: 'awaiting-deposit',
    reach: async (page) => {
      await act.orderAndOpenWindow(page);
      await page.getByTestId('pg-pay-account').click();
      await see.stage(page, 'awaiting_deposit');
    },
  },
  {
    name: 'returning-money',
    reach: async (page, shop) => {
      const order = await paid(page);
      await page.goto(`/orders/${order}`);
      await shop.pg.scenario({ operations: ['cancel'], stop: true });
      await page.getByTestId('cancel').click();
      await see.orderStatus(page, 'returning_money');
      await page.goto(`/checkout/${order}`);
      await see.stage(page, 'returning_money');
    },
  },
  {
    name: 'partly-refunded',
    env: act.OPERATOR,
    reach: async (page, shop) => {
      const order = await paid(page);
      await act.refund(page, shop, order, 5_000);
      await page.goto(`/checkout/${order}`);
      await see.stage(page, 'partially_refunded');
    },
  },
  {
    name: 'refunded',
    env: act.OPERATOR,
    reach: async (page, shop) => {
      const order = await paid(page);
      await act.refund(page, shop, order);
      await page.goto(`/checkout/${order}`);
      await see.stage(page, 'refunded');
    },
  },
  {
    name: 'order-refunded',
    env: act.OPERATOR,
    reach: async (page, shop) => {
      const order = await paid(page);
      await act.refund(page, shop, order, 5_000);
      await act.refund(page, shop, order);
      await page.goto(`/orders/${order}`);
      await see.orderStatus(page, 'refunded');
    },
  },
  {
    name: 'order-answer-lost',
    env: { JARI_PG_TIMEOUT_MS: '1500', JARI_DATABASE_WAIT_MS: '500', JARI_RESEND: 'off' },
    scenario: { hang: { when: 'after', ms: 600_000 }, webhooks: { drop: 1 } },
    reach: async (page, shop) => {
      const order = await act.pay(page);
      await see.attemptStatus(page.context(), shop, order, 'approved', 20_000);
      await page.goto(`/orders/${order}`);
      await see.orderStatus(page, 'paid');
    },
  },
  {
    name: 'wrong-amount',
    reach: async (page, shop) => {
      await act.orderAndOpenWindow(page);
      await shop.pg.scenario({ body: 'wrongAmount' });
      await act.payInWindow(page);
      await see.stage(page, 'not_charged', 20_000);
    },
  },
  {
    name: 'late-success',
    env: SOON_CERTAIN,
    reach: async (page, shop) => {
      const { order, key } = await failedByTheClock(page, shop);
      await chargeLate(shop, order, key);
      await see.attemptStatus(page.context(), shop, order, 'canceled', 20_000);
      await page.goto(`/checkout/${order}`);
      await see.stage(page, 'not_charged');
    },
  },
  {
    name: 'late-success-kept',
    env: { ...SOON_CERTAIN, JARI_LATE_SUCCESS: 'revive' },
    reach: async (page, shop) => {
      const { order, key } = await failedByTheClock(page, shop);
      await chargeLate(shop, order, key);
      await see.attemptStatus(page.context(), shop, order, 'approved', 20_000);
      await page.goto(`/orders/${order}`);
      await see.orderStatus(page, 'paid');
    },
  },
  {
    name: 'expired',
    env: { JARI_ORDER_TTL_MS: '1500' },
    reach: async (page, shop) => {
      const order = await act.order(page);
      const status = async () => (await see.orderState(page.context(), shop, order)).status;
      while ((await status()) !== 'expired') await page.waitForTimeout(250);
      await page.goto(`/checkout/${order}`);
      await see.stage(page, 'expired');
    },
  },
];
