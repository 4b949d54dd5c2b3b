// The server dies while the gateway works on a confirm: after its return everybody learns that it was paid, once.
import { expect, test } from '../fixtures/shop';
import * as act from '../pages/act';
import * as see from '../pages/see';

// What Chromium says about a server that is not there.
test.use({ expectedConsole: [/net::ERR_(CONNECTION|EMPTY|SOCKET)/] });

for (const { name, downMs } of [
  { name: 'back before the gateway is done', downMs: 0 },
  { name: 'back after the gateway is done', downMs: 4_000 },
]) {
  test(`killed, and ${name}`, async ({ page, shop }, info) => {
    await see.keepLog(page.context());
    await shop.pg.scenario({ delayMs: 3_000 });
    const order = await act.pay(page);
    await expect.poll(async () => (await shop.pg.ledger()).calls.confirm.received).toBe(1);
    await shop.kill9();
    const killed = Date.now();
    await see.stage(page, 'checking');
    await page.waitForTimeout(downMs);
    await shop.restart();
    const back = Date.now();

    await see.stage(page, 'paid', 30_000);
    const log = await see.logOf(page);
    see.note(info, 'ms from restart to paid', see.firstSeen(log, 'paid') - back);
    expect(see.offersBetween(log, killed)).toEqual([]);
    await page.goto('/orders');
    await see.historyStatus(page, order, 'paid');
    expect((await shop.pg.ledger()).calls.confirm.received).toBe(1);
    await see.oneCharge(shop, order);
  });
}
