// A server with too much to do: its refusals say nothing about the order, and the page takes them so.
import type { Page } from '@playwright/test';
import { expect, test } from '../fixtures/shop';
import * as act from '../pages/act';
import * as see from '../pages/see';

test.use({
  shopEnv: {
    JARI_PG_TIMEOUT_MS: '9000',
    JARI_DATABASE_WAIT_MS: '500',
    JARI_RESPONSE_WAIT_MS: '1000',
    JARI_POLL_INTERVAL_MS: '500',
    JARI_POLL_COUNT: '40',
  },
});

/** Answers as a full lane does; returns when each refused exchange came. */
async function refuse(page: Page, url: string, retryAfter: number): Promise<number[]> {
  const refused: number[] = [];
  await page.route(url, (route) => {
    refused.push(Date.now());
    return route.fulfill({
      status: 503,
      headers: { 'retry-after': String(retryAfter) },
      contentType: 'application/problem+json',
      body: JSON.stringify({ type: '/problems/overloaded', title: 'Too busy', status: 503, code: 'overloaded' }),
    });
  });
  return refused;
}

test('polls that are refused for load leave the payment unknown, and are not repeated before their time', async ({
  page,
  shop,
}, info) => {
  await shop.pg.scenario({ delayMs: 3_000 });
  await see.keepLog(page.context());
  const refused = await refuse(page, '**/api/orders/*', 2);
  const order = await act.pay(page);
  await see.stage(page, 'checking', 10_000);
  await expect.poll(() => refused.length, { timeout: 15_000 }).toBeGreaterThanOrEqual(3);
  await expect(see.payControls(page)).toHaveCount(0);
  const gaps = refused.slice(1).map((at, index) => at - (refused[index] ?? at));
  see.note(info, 'ms between refused polls', gaps.join(' '));
  expect(Math.min(...gaps)).toBeGreaterThanOrEqual(1_900);
  await page.unrouteAll();
  await see.stage(page, 'paid', 10_000);
  const log = await see.logOf(page);
  expect(see.offersBetween(log, see.firstSeen(log, 'confirming'))).toEqual([]);
  await see.oneCharge(shop, order);
});

test('a confirm that is refused for load is offered again only after the order was asked about', async ({
  page,
  shop,
}) => {
  const polls: number[] = [];
  page.on('request', (request) => {
    if (request.method() === 'GET' && request.url().includes('/api/orders/')) polls.push(Date.now());
  });
  const refused = await refuse(page, '**/api/payments/confirm', 1);
  const order = await act.pay(page);
  // The payment that was authenticated is still good: no second window is needed.
  await expect(page.getByTestId('confirm')).toBeVisible({ timeout: 10_000 });
  await expect(page.getByTestId('notice')).toBeVisible();
  expect(refused).toHaveLength(1);
  // Asked, and not before the pause that the server asked for.
  expect(polls[0] ?? 0).toBeGreaterThanOrEqual((refused[0] ?? 0) + 900);
  expect((await shop.pg.ledger()).calls.confirm.received).toBe(0);
  await page.unrouteAll();
  await page.getByTestId('confirm').click();
  await see.stage(page, 'paid', 10_000);
  await see.oneCharge(shop, order);
});
