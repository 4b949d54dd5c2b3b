// Answers that are none: whatever the gateway sends instead of a result, the page offers nothing until the truth is known.
import type { Page } from '@playwright/test';
import { expect, test, type Env, type Scenario, type Shop } from '../fixtures/shop';
import * as act from '../pages/act';
import * as see from '../pages/see';

/** Not booked and unknown becomes certain when window and gateway timeout are over: some seconds here. */
const CONFIRM_WINDOW_MS = 4_000;
const shopEnv: Env = {
  JARI_PG_TIMEOUT_MS: '2000',
  JARI_DATABASE_WAIT_MS: '500',
  JARI_RESPONSE_WAIT_MS: '1500',
  JARI_POLL_INTERVAL_MS: '500',
  JARI_POLL_COUNT: '30',
  JARI_PG_CONFIRM_WINDOW_MS: String(CONFIRM_WINDOW_MS),
};
test.use({ shopEnv });

const booked: Record<string, Scenario> = {
  'a broken body': { body: 'broken' },
  'a page of HTML with status 200': { body: 'html' },
  'a body that drips': { body: 'drip' },
  'an HTML error page after the charge': { error: { status: 500, when: 'after' } },
  'a reset after the charge': { loss: { when: 'after' } },
};

const notBooked: Record<string, Scenario> = {
  'an HTML error page and no charge': { error: { status: 500, when: 'before' } },
  'a reset and no charge': { loss: { when: 'before' } },
};

async function payAt(page: Page, shop: Shop, scenario: Scenario) {
  await see.keepLog(page.context());
  const order = await act.orderAndOpenWindow(page);
  await shop.pg.scenario(scenario);
  // The gateway counts its window from the authentication, which comes after this moment.
  const authenticated = Date.now();
  await act.payInWindow(page);
  return { order, authenticated };
}

for (const [name, scenario] of Object.entries(booked)) {
  test(`${name}: paid in the end`, async ({ page, shop }, info) => {
    const { order } = await payAt(page, shop, scenario);
    await see.stage(page, 'paid', 20_000);
    const log = await see.logOf(page);
    const begun = see.firstSeen(log, 'confirming');
    see.note(info, 'ms from confirm to paid', see.firstSeen(log, 'paid') - begun);
    expect(see.offersBetween(log, begun)).toEqual([]);
    // Sent once more with the same key, some moments after the loss: a webhook may have told the page before. Charged
    // once all the same.
    await expect.poll(async () => (await shop.pg.ledger()).calls.confirm.received).toBe(2);
    await see.oneCharge(shop, order);
    await page.goto('/orders');
    await see.historyStatus(page, order, 'paid');
  });
}

for (const [name, scenario] of Object.entries(notBooked)) {
  test(`${name}: unknown until the window is over, then not charged`, async ({ page, shop }, info) => {
    const { order, authenticated } = await payAt(page, shop, { ...scenario, confirmWindowMs: CONFIRM_WINDOW_MS });
    await see.stage(page, 'checking');
    expect(await see.orderState(page.context(), shop, order)).toMatchObject({ payable: false });
    await see.stage(page, 'not_charged', 25_000);
    const log = await see.logOf(page);
    const begun = see.firstSeen(log, 'confirming');
    const known = see.firstSeen(log, 'not_charged');
    see.note(info, 'ms from confirm to not charged', known - begun);
    expect(known - authenticated).toBeGreaterThan(CONFIRM_WINDOW_MS);
    expect(see.offersBetween(log, begun, known)).toEqual([]);
    await expect(see.payControls(page).and(page.getByTestId('pay'))).toBeVisible();
    await see.noCharge(shop);

    await shop.pg.scenario({});
    const again = await act.openWindow(page);
    await act.payInWindow(page);
    await see.stage(page, 'paid');
    await see.oneCharge(shop, again);
  });
}

test('another amount than the order’s was charged: never paid, and the money goes back', async ({ page, shop }) => {
  const { order } = await payAt(page, shop, { body: 'wrongAmount' });
  const booked = async () => (await shop.pg.ledger()).orders[order];
  await expect.poll(booked, { timeout: 20_000 }).toMatchObject({ charges: 1, cancels: 1 });
  await see.stage(page, 'not_charged', 20_000);
  await expect(page.getByTestId('stage')).toContainText('주문과 다른 금액이 결제되어 전액 취소했어요');

  const log = await see.logOf(page);
  const begun = see.firstSeen(log, 'confirming');
  expect(log.map((glimpse) => glimpse.stage)).not.toContain('paid');
  expect(see.offersBetween(log, begun, see.firstSeen(log, 'not_charged'))).toEqual([]);
  const { chargedWon, canceledWon } = (await booked()) ?? {};
  expect(canceledWon).toBe(chargedWon);
  await page.goto('/orders');
  await see.historyStatus(page, order, 'not_charged');
});

test('nobody at the gateway’s address: not sent, and paying again works', async ({ page, shop }) => {
  const elsewhere = (api: string): Env => ({
    JARI_FAKE_PG: 'off',
    JARI_TOSS_CLIENT_KEY: 'test_ck_x',
    JARI_TOSS_SECRET_KEY: 'test_sk_fake',
    JARI_TOSS_URL: api,
    JARI_TOSS_WINDOW_URL: `${shop.pg.url}/window`,
  });
  // The discard port: nobody listens there.
  await shop.restart(elsewhere('http://127.0.0.1:9'));
  const order = await act.pay(page);
  await see.stage(page, 'not_charged');
  expect(await see.orderState(page.context(), shop, order)).toMatchObject({
    payable: true,
    attempt: { status: 'failed', reach: 'not_sent' },
  });
  expect((await shop.pg.ledger()).calls.confirm.received).toBe(0);

  await shop.restart(elsewhere(shop.pg.url));
  await page.getByTestId('pay').click();
  await see.stage(page, 'paid');
  await see.oneCharge(shop, order);
});
