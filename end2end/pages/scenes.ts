// Every page and state that a shopper can come to, and the way there.
import type { Page } from '@playwright/test';
import type { Env, Scenario, Shop } from '../fixtures/shop';
import * as act from './act';
import { outcomes } from './outcomes';
import * as see from './see';

export interface Scene {
  name: string;
  /** Settings that make it last, or come soon. */
  env?: Env;
  /** The gateway's, from the start. */
  scenario?: Scenario;
  /** What the browser itself says about it. */
  console?: RegExp[];
  reach(page: Page, shop: Shop): Promise<void>;
}

/** Times that end soon; total wait ≥ 2 × database wait + gateway timeout + 1 s holds. */
export const SOON_OVER: Env = {
  JARI_RESPONSE_WAIT_MS: '1000',
  JARI_POLL_INTERVAL_MS: '500',
  JARI_POLL_COUNT: '8',
  JARI_PG_TIMEOUT_MS: '1500',
  JARI_DATABASE_WAIT_MS: '500',
};

/** A console that opens with `act.PASSWORD`. */
export const CONSOLE: Env = {
  JARI_OPS_PASSWORD_HASH:
    '$argon2id$v=19$m=19456,t=2,p=1$QprFeTZE0O7Z0stB6IL55g$6lQAx8czmy34DB+m9spNSqdMp88fZxNX5J1gMmRd1zw',
};

/** Waits as long as the shipped times in all, nearly all of it for the answer: a picture takes its time. */
const LONG_CONFIRMING: Env = {
  JARI_RESPONSE_WAIT_MS: '63000',
  JARI_POLL_COUNT: '1',
};

/** A short response wait, and polls for the rest of the shipped 65 s. */
const SOON_CHECKING: Env = {
  JARI_RESPONSE_WAIT_MS: '300',
  JARI_POLL_COUNT: '32',
  JARI_PG_TIMEOUT_MS: '45000',
};

const usual: Scene[] = [
  {
    name: 'console-sign-in',
    env: CONSOLE,
    reach: async (page) => {
      await page.goto('/ops');
      await page.getByTestId('sign-in').waitFor();
    },
  },
  {
    name: 'console',
    env: CONSOLE,
    scenario: { stop: true },
    reach: async (page, shop) => {
      const order = await act.pay(page);
      await see.attemptStatus(page.context(), shop, order, 'approving');
      await act.enterConsole(page);
      await page.getByTestId('open-payment').waitFor();
    },
  },
  {
    name: 'console-order',
    env: { ...CONSOLE, JARI_PG_TIMEOUT_MS: '1000' },
    scenario: { stop: true },
    reach: async (page, shop) => {
      const order = await act.pay(page);
      await see.attemptStatus(page.context(), shop, order, 'unknown');
      await act.enterConsole(page);
      await page.goto(`/ops/orders/${order}`);
      await page.getByTestId('resolve').waitFor();
    },
  },
  {
    name: 'catalogue',
    reach: async (page) => {
      await page.goto('/');
    },
  },
  {
    name: 'checkout',
    reach: async (page) => {
      await act.order(page);
    },
  },
  {
    name: 'checkout-two-ways',
    env: { JARI_GATEWAYS: 'toss,kakaopay' },
    reach: async (page) => {
      await act.order(page);
    },
  },
  {
    name: 'last-step',
    reach: async (page) => {
      await act.orderAndOpenWindow(page);
      await act.holdProgram(page);
      await act.payInWindow(page);
      await page.getByTestId('confirm').waitFor();
    },
  },
  {
    name: 'window-closed',
    reach: async (page) => {
      await act.orderAndOpenWindow(page);
      await page.getByTestId('pg-close').click();
      await page.getByTestId('notice').waitFor();
    },
  },
  {
    name: 'confirming',
    env: LONG_CONFIRMING,
    scenario: { stop: true },
    reach: async (page) => {
      await act.pay(page);
      await see.stage(page, 'confirming');
    },
  },
  {
    name: 'checking',
    env: SOON_CHECKING,
    scenario: { stop: true },
    reach: async (page) => {
      await act.pay(page);
      await see.stage(page, 'checking');
    },
  },
  {
    name: 'paid',
    reach: async (page) => {
      await act.pay(page);
      await see.stage(page, 'paid');
    },
  },
  {
    name: 'not-charged',
    scenario: { decline: {} },
    reach: async (page) => {
      await act.pay(page);
      await see.stage(page, 'not_charged');
    },
  },
  {
    name: 'still-unknown',
    env: SOON_OVER,
    scenario: { stop: true },
    reach: async (page) => {
      await act.pay(page);
      await see.stage(page, 'still_unknown');
    },
  },
  {
    name: 'empty-history',
    reach: async (page) => {
      await page.goto('/orders');
    },
  },
  {
    name: 'history',
    reach: async (page, shop) => {
      await act.pay(page);
      await see.stage(page, 'paid');
      await shop.pg.scenario({ decline: {} });
      await act.pay(page);
      await see.stage(page, 'not_charged');
      await act.order(page);
      await shop.pg.scenario({ stop: true });
      const doubtful = await act.pay(page);
      await see.attemptStatus(page.context(), shop, doubtful, 'approving');
      await page.goto('/orders');
      await see.historyStatus(page, doubtful, 'checking');
    },
  },
  {
    name: 'order-paid',
    reach: async (page) => {
      const order = await act.pay(page);
      await see.stage(page, 'paid');
      await page.goto(`/orders/${order}`);
      await see.orderStatus(page, 'paid');
    },
  },
  {
    name: 'receipt',
    reach: async (page) => {
      const order = await act.pay(page);
      await see.stage(page, 'paid');
      await page.goto(`/orders/${order}/receipt`);
      await page.getByTestId('receipt').waitFor();
    },
  },
  {
    name: 'order-in-doubt',
    scenario: { stop: true },
    reach: async (page, shop) => {
      const order = await act.pay(page);
      await see.attemptStatus(page.context(), shop, order, 'approving');
      await page.goto(`/orders/${order}`);
      await see.orderStatus(page, 'checking');
    },
  },
  {
    name: 'no-such-page',
    console: [/status of 404/],
    reach: async (page) => {
      await page.goto('/orders/nothing');
      await page.getByRole('heading', { level: 1 }).waitFor();
    },
  },
];

export const scenes: Scene[] = [...usual, ...outcomes];

/** The languages that browsers ask for, by the name of what they get. */
export const LOCALES = { ko: 'ko-KR', en: 'en-US' } as const;
