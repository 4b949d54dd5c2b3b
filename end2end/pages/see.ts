// What a shopper sees, what was on the pages at every moment, and what the gateway's ledger says to that.
import { type BrowserContext, type Locator, type Page, type TestInfo, expect } from '@playwright/test';
import type { Shop } from '../fixtures/shop';

/** What the pages call themselves; the same names as in `data-stage` and `data-status`. */
export type Stage =
  | 'offer'
  | 'confirming'
  | 'checking'
  | 'looking'
  | 'paid'
  | 'partially_refunded'
  | 'refunded'
  | 'returning_money'
  | 'awaiting_deposit'
  | 'closing_account'
  | 'closed_unpaid'
  | 'not_charged'
  | 'still_unknown'
  | 'expired';

/**
 * Whatever could begin a payment: the controls by their names, and every other form or button of the page's content.
 * The development panel is no part of the shop, and the form that cancels a paid order can begin no payment.
 */
const PAYING =
  ':is([data-testid="pay"], [data-testid="confirm"], main form, main button):not(.dev-panel *, .cancel *)';

export function payControls(page: Page): Locator {
  return page.locator(PAYING);
}

/** The checkout is at this stage, now or in time. */
export async function stage(page: Page, name: Stage, timeout?: number): Promise<void> {
  await expect(page.getByTestId('stage')).toHaveAttribute('data-stage', name, { timeout });
}

/** The order's own page says this, now or in time. */
export async function orderStatus(page: Page, name: Stage, timeout?: number): Promise<void> {
  await expect(page.getByTestId('order-status')).toHaveAttribute('data-status', name, { timeout });
}

/** The history says this about an order, now or in time. */
export async function historyStatus(page: Page, order: string, name: Stage, timeout?: number): Promise<void> {
  const row = page.locator(`[data-testid="order-row"][data-order="${order}"]`);
  await expect(row).toHaveAttribute('data-status', name, { timeout });
}

/** The order as a poll of this shopper tells it. */
export interface OrderState {
  orderId: string;
  status: string;
  attempt: { number: number; status: string; reach: string; reason: unknown } | null;
  payable: boolean;
}

export async function orderState(context: BrowserContext, shop: Shop, order: string): Promise<OrderState> {
  const answer = await context.request.get(`${shop.url}/api/orders/${order}`);
  return (await answer.json()) as OrderState;
}

/** The order's attempt gets this status, by the server's word. */
export async function attemptStatus(
  context: BrowserContext,
  shop: Shop,
  order: string,
  status: string,
  timeout?: number,
): Promise<void> {
  const now = async () => (await orderState(context, shop, order)).attempt?.status;
  await expect.poll(now, { timeout, intervals: [50, 100, 250] }).toBe(status);
}

/** The gateway booked exactly one charge in all, and it is this order's. */
export async function oneCharge(shop: Shop, gatewayOrderId: string): Promise<void> {
  const ledger = await shop.pg.ledger();
  const orders = Object.values(ledger.orders);
  expect(ledger.orders[gatewayOrderId]).toMatchObject({ charges: 1, cancels: 0, canceledWon: 0 });
  expect(orders.reduce((sum, order) => sum + order.charges, 0), 'charges of all orders').toBe(1);
}

/** The gateway booked nothing. */
export async function noCharge(shop: Shop): Promise<void> {
  const charges = Object.values((await shop.pg.ledger()).orders).map((order) => order.charges);
  expect(charges.reduce((sum, count) => sum + count, 0)).toBe(0);
}

/** One moment at which something on the shop's pages changed. */
export interface Glimpse {
  /** Epoch ms. */
  at: number;
  path: string;
  /** Stage of the checkout or status of the order page; empty elsewhere. */
  stage: string;
  /** How many controls could begin a payment. */
  controls: number;
  /** Why it was looked at, where that was no change of the page. */
  event?: 'pageshow' | 'pagehide';
  /** Whether the page came out of the back/forward cache. */
  persisted?: boolean;
}

/** Keeps a log of every change on the context's pages, for each tab its own, over reloads and navigation. */
export async function keepLog(context: BrowserContext): Promise<void> {
  await context.addInitScript((paying) => {
    if (window.top !== window || !location.protocol.startsWith('http')) return;
    const log = JSON.parse(sessionStorage.getItem('test:log') ?? '[]') as Glimpse[];
    const { fetch } = window;
    window.fetch = (...asked) => {
      const url = asked[0] instanceof Request ? asked[0].url : String(asked[0]);
      if (url.endsWith('/api/payments/confirm')) sessionStorage.setItem('test:confirm', String(Date.now()));
      return fetch.apply(window, asked);
    };
    let last = '';
    const look = (event?: 'pageshow' | 'pagehide', persisted?: boolean) => {
      const leaving = event === 'pagehide';
      const stage = document.querySelector('[data-testid="stage"]')?.getAttribute('data-stage');
      const status = document.querySelector('[data-testid="order-status"]')?.getAttribute('data-status');
      const glimpse = {
        at: Date.now(),
        path: location.pathname,
        stage: leaving ? '' : (stage ?? status ?? ''),
        controls: leaving ? 0 : document.querySelectorAll(paying).length,
        event,
        persisted,
      };
      const seen = `${glimpse.path} ${glimpse.stage} ${glimpse.controls}`;
      if (seen === last && !event) return;
      last = seen;
      log.push(glimpse);
      sessionStorage.setItem('test:log', JSON.stringify(log));
    };
    const changes = { subtree: true, childList: true, attributes: true };
    new MutationObserver(() => look()).observe(document, changes);
    window.addEventListener('pageshow', (event) => look('pageshow', event.persisted));
    window.addEventListener('pagehide', () => look('pagehide'));
  }, PAYING);
}

/** The log of this tab so far. The tab must be on a page of the shop. */
export async function logOf(page: Page): Promise<Glimpse[]> {
  const text = await page.evaluate(() => sessionStorage.getItem('test:log'));
  return JSON.parse(text ?? '[]') as Glimpse[];
}

/** When this tab sent its latest confirm, in epoch ms. On a busy machine either comes first: this, or what is drawn of it. */
export async function confirmSent(page: Page): Promise<number> {
  const text = await page.evaluate(() => sessionStorage.getItem('test:confirm'));
  if (text === null) throw new Error('no confirm was sent');
  return Number(text);
}

/** Keeps what screen readers are told, change by change, in the order in which it is said. */
export async function keepSaid(context: BrowserContext): Promise<void> {
  await context.addInitScript(() => {
    if (window.top !== window || !location.protocol.startsWith('http')) return;
    const said: string[] = [];
    const last = new Map<Element, string>();
    const listen = () => {
      for (const region of document.querySelectorAll('[aria-live], [role="status"], [role="alert"]')) {
        const text = region.textContent?.trim() ?? '';
        const before = last.get(region);
        last.set(region, text);
        // What a region holds when it first appears is read as part of the page.
        if (before !== undefined && before !== text && text !== '') said.push(text);
      }
      Object.assign(window, { testSaid: said });
    };
    const changes = { subtree: true, childList: true, characterData: true };
    new MutationObserver(listen).observe(document, changes);
  });
}

/** What screen readers were told on this page so far. */
export async function said(page: Page): Promise<string[]> {
  return page.evaluate(() => (window as unknown as { testSaid?: string[] }).testSaid ?? []);
}

/** A page counts from just before it sends the confirm and draws that; what is seen begins this much later at most. */
export const DRAWING_MS = 50;

/** When a stage was first seen, in epoch ms. */
export function firstSeen(log: Glimpse[], name: Stage): number {
  const found = log.find((glimpse) => glimpse.stage === name);
  if (!found) throw new Error(`never seen: ${name}; only ${log.map((it) => it.stage).join(', ')}`);
  return found.at;
}

/** How long a page may take to redraw itself, in ms: what it offered up to then is over. */
const REDRAW_MS = 100;

/** The glimpses which offered something to pay with at any time between two moments (epoch ms). */
export function offersBetween(log: Glimpse[], from: number, until = Infinity): Glimpse[] {
  return log.filter((glimpse, index) => {
    const end = log[index + 1]?.at ?? Infinity;
    return glimpse.controls > 0 && end > from + REDRAW_MS && glimpse.at < until;
  });
}

/** Nothing to pay with was on any page of this tab between two moments. */
export async function offeredNothing(page: Page, from: number, until?: number): Promise<void> {
  expect(offersBetween(await logOf(page), from, until)).toEqual([]);
}

/** Puts a figure into the test's report. */
export function note(info: TestInfo, type: string, description: string | number): void {
  info.annotations.push({ type, description: String(description) });
}
