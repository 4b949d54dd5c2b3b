// The shopper's connection is gone in the middle of the confirm: the server goes on, and the page finds out later.
import { expect, test } from '../fixtures/shop';
import * as act from '../pages/act';
import * as see from '../pages/see';

const BANK_MS = 3_000;

test.use({
  expectedConsole: [/net::ERR_(INTERNET_DISCONNECTED|NETWORK_CHANGED)/],
  shopEnv: { JARI_RESPONSE_WAIT_MS: '2000', JARI_POLL_INTERVAL_MS: '1000', JARI_POLL_COUNT: '63' },
});

test('offline while the bank works: nothing is offered, and paid once back', async ({ context, page, shop }) => {
  await see.keepLog(context);
  await shop.pg.scenario({ delayMs: BANK_MS });
  const order = await act.pay(page);
  await see.attemptStatus(context, shop, order, 'approving');
  const begun = see.firstSeen(await see.logOf(page), 'confirming');
  await context.setOffline(true);
  await see.stage(page, 'checking');
  await expect.poll(async () => (await shop.pg.ledger()).orders[order]?.charges).toBe(1);
  // Some polls in vain.
  await page.waitForTimeout(3_000);
  await see.stage(page, 'checking');
  await context.setOffline(false);
  await see.stage(page, 'paid');
  await see.offeredNothing(page, begun);
  await see.oneCharge(shop, order);
});
