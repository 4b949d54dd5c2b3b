// A page that was made a moment ago, or by another program, or in a browser that changes it: it wakes to what is true now,
// or it goes on without waking.
import { expect, test } from '../fixtures/shop';
import * as act from '../pages/act';
import * as see from '../pages/see';

test('in doubt when it was made, paid when it wakes: paid', async ({ context, page, shop }) => {
  await see.keepLog(context);
  await shop.pg.scenario({ delayMs: 3_000 });
  const order = await act.pay(page);
  await see.attemptStatus(context, shop, order, 'approving');
  const second = await context.newPage();
  const release = await act.holdProgram(second);
  await second.goto(`/checkout/${order}`);
  await see.stage(second, 'checking');
  await see.attemptStatus(context, shop, order, 'approved', 20_000);
  await see.stage(second, 'checking');
  const woken = Date.now();
  release();
  await see.stage(second, 'paid');
  await expect(second.locator('body')).toHaveAttribute('data-hydrated', 'true');
  await see.offeredNothing(second, woken);
  await see.oneCharge(shop, order);
});

test.describe('a shopper on the other side of the world', () => {
  test.use({ timezoneId: 'America/Los_Angeles' });

  test('reads the same times before and after the page wakes, and everywhere Korea’s', async ({ page, shop }) => {
    const order = await act.pay(page);
    await see.stage(page, 'paid');
    const texts = /\d{4}년 \d{1,2}월 \d{1,2}일 \d{2}:\d{2}|\d{2}:\d{2}:\d{2}/g;
    for (const address of [`/orders/${order}`, '/orders', `/checkout/${order}`]) {
      const made = await (await page.request.get(address)).text();
      await page.goto(address);
      await page.waitForLoadState('networkidle');
      const shown = await page.locator('main').innerText();
      const main = /<main[^>]*>([\s\S]*)<\/main>/.exec(made)?.[1]?.replaceAll(/<[^>]+>/g, ' ') ?? '';
      expect([...shown.matchAll(texts)].map(String), address).toEqual([...main.matchAll(texts)].map(String));
    }
    const korea = new Intl.DateTimeFormat('en-CA', { timeZone: 'Asia/Seoul' }).format(new Date());
    const [year, month, day] = korea.split('-').map(Number);
    await page.goto('/orders');
    await expect(page.getByTestId('order-row')).toContainText(`${year}년 ${month}월 ${day}일`);
    expect((await shop.pg.ledger()).calls.confirm.received).toBe(1);
  });
});

test('an extension that puts things beside everything breaks nothing', async ({ page, shop }) => {
  await page.addInitScript(() => {
    document.addEventListener('DOMContentLoaded', () => {
      const add = (parent: Element, first: boolean) => {
        const thing = document.createElement('div');
        thing.setAttribute('data-extension', 'true');
        if (first) parent.prepend(thing);
        else parent.append(thing);
      };
      for (const parent of document.querySelectorAll('body, main, header, .checkout, .order, .history')) {
        add(parent, true);
        add(parent, false);
      }
      for (const element of document.querySelectorAll('html, body, form, input, button')) {
        element.setAttribute('data-extension-seen', 'true');
      }
    });
  });
  await shop.pg.scenario({ delayMs: 2_000 });
  const order = await act.pay(page);
  await see.stage(page, 'paid', 15_000);
  await page.goto(`/orders/${order}`);
  await see.orderStatus(page, 'paid');
  await see.oneCharge(shop, order);
});

test.describe('a browser in which the program never comes', () => {
  // Chromium's own lines for a file that was blocked, and for one that was loaded in advance and not used.
  test.use({ expectedConsole: [/Failed to (load|fetch)|preload|ERR_(FAILED|BLOCKED)/] });

  test('pays by forms, and waits by loading the page anew', async ({ context, page, shop }) => {
    await context.route('**/*.wasm', (route) => route.abort('blockedbyclient'));
    await shop.pg.scenario({ delayMs: 4_000 });
    const order = await act.pay(page);
    await page.getByTestId('confirm').click();
    await see.stage(page, 'checking');
    await expect(see.payControls(page)).toHaveCount(0);
    // By itself: nobody presses anything.
    await see.stage(page, 'paid', 40_000);
    expect(await page.locator('body').getAttribute('data-hydrated')).toBeNull();
    await see.oneCharge(shop, order);
  });
});
