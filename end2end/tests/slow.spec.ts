// A bank that takes long: the page says so in time, and finds the result by asking.
import { expect, test } from '../fixtures/shop';
import * as act from '../pages/act';
import * as see from '../pages/see';

const cases = [
  { bankMs: 20_000, paid: [20_000, 23_500] },
  { bankMs: 40_000, paid: [40_000, 43_500] },
] as const;

for (const { bankMs, paid } of cases) {
  test(`the bank takes ${bankMs / 1_000} s`, async ({ page, shop }, info) => {
    await shop.pg.scenario({ delayMs: bankMs });
    await see.keepLog(page.context());
    const confirms = act.confirmsOf(page);
    const polled: number[] = [];
    page.on('response', (answer) => {
      if (answer.url().includes('/api/orders/')) polled.push(answer.status());
    });

    const order = await act.pay(page);
    await see.stage(page, 'checking', 20_000);
    await see.stage(page, 'paid', bankMs + 10_000);

    const log = await see.logOf(page);
    const begun = see.firstSeen(log, 'confirming');
    const sent = Math.min(begun, await see.confirmSent(page));
    const spans = {
      checking: see.firstSeen(log, 'checking') - sent,
      paid: see.firstSeen(log, 'paid') - sent,
    };
    see.note(info, 'ms from confirm to checking', spans.checking);
    see.note(info, 'ms from confirm to paid', spans.paid);
    expect(spans.checking).toBeGreaterThanOrEqual(15_000 - see.DRAWING_MS);
    expect(spans.checking).toBeLessThanOrEqual(16_500);
    expect(spans.paid).toBeGreaterThanOrEqual(paid[0]);
    expect(spans.paid).toBeLessThanOrEqual(paid[1]);
    expect(see.offersBetween(log, begun)).toEqual([]);

    expect(confirms).toHaveLength(1);
    const header = confirms[0]?.headers()['x-request-timeout-ms'];
    see.note(info, 'X-Request-Timeout-Ms', header ?? 'absent');
    expect(header).toMatch(/^\d+$/);
    expect(Number(header)).toBeGreaterThanOrEqual(64_000);
    expect(Number(header)).toBeLessThanOrEqual(65_000);
    // The answer to the confirm itself was given up at 15 s.
    expect(confirms[0]?.failure()).not.toBeNull();
    expect(polled).toContain(200);

    expect((await shop.pg.ledger()).calls.confirm.received).toBe(1);
    await see.oneCharge(shop, order);
    await page.goto('/orders');
    await see.historyStatus(page, order, 'paid');
  });
}
