// The development panel: it works where it belongs, and there is nothing of it in production.
import { expect, test, type Env, type Shop } from '../fixtures/shop';
import * as act from '../pages/act';
import * as see from '../pages/see';

const production = (shop: Shop): Env => ({
  JARI_ENV: 'production',
  JARI_FAKE_PG: 'off',
  JARI_PUBLIC_URL: shop.url,
  JARI_SECRET_KEY: 'only-for-tests-0123456789-0123456789',
  JARI_TOSS_CLIENT_KEY: 'live_ck_x',
  JARI_TOSS_SECRET_KEY: 'live_sk_fake',
  JARI_TOSS_URL: shop.pg.url,
  JARI_TOSS_WINDOW_URL: `${shop.pg.url}/window`,
});

test.describe('in production', () => {
  // Production takes no test keys.
  test.use({ expectedConsole: [/status of 404/], pgSecret: 'live_sk_fake' });

  test('no page has the panel, and its address is none', async ({ page, shop }) => {
    await shop.restart(production(shop));
    const nothingOfIt = async () => {
      expect((await page.content()).toLowerCase()).not.toMatch(/dev-panel|pg-truth|\/dev\/|fakepg|_control/);
    };
    await page.goto('/');
    await nothingOfIt();
    const order = await act.order(page);
    await nothingOfIt();
    await act.openWindow(page);
    await act.payInWindow(page);
    await see.stage(page, 'paid');
    await nothingOfIt();
    for (const address of ['/orders', `/orders/${order}`, `/checkout/${order}`, '/no-such-page']) {
      await page.goto(address);
      await expect(page.locator('main')).toBeVisible();
      await nothingOfIt();
    }
    await see.oneCharge(shop, order);

    const switched = await page.request.post('/dev/scenario', { form: { preset: 'down', back: '/' } });
    expect([404, 405]).toContain(switched.status());
    expect(await scenario(shop)).not.toMatchObject({ up: false });
  });

  test('a fake gateway is a refusal to start', async ({ shop }) => {
    await expect(shop.restart({ ...production(shop), JARI_FAKE_PG: 'on' })).rejects.toThrow(/JARI_FAKE_PG/);
  });
});

test.describe('in development', () => {
  test('the panel makes the bank slow, and healthy again', async ({ page, shop }) => {
    await page.goto('/orders');
    await page.getByTestId('preset-slow_bank').click();
    await expect(page.getByTestId('dev-state')).toContainText('20000 ms');
    expect(new URL(page.url()).pathname).toBe('/orders');
    expect(await scenario(shop)).toMatchObject({ delayMs: 20_000 });

    await page.locator('input[name="delayMs"]').fill('300');
    await page.getByTestId('dev-apply').click();
    await expect(page.getByTestId('dev-state')).toContainText(' 300 ms');
    expect(await scenario(shop)).toMatchObject({ delayMs: 300 });

    await page.getByTestId('preset-down').click();
    await expect(page.getByTestId('dev-state')).toContainText('꺼짐');
    await page.getByTestId('preset-up').click();
    await expect(page.getByTestId('dev-state')).toContainText('켜짐');
  });

  test('every switch of the panel is taken', async ({ page }) => {
    await page.goto('/');
    const names = ['slow_bank', 'lost_answer', 'busy', 'silent', 'decline', 'slow_tail', 'hang', 'down', 'healthy', 'up'];
    for (const name of names) {
      await page.getByTestId(`preset-${name}`).click();
      await expect(page.getByTestId('dev-panel')).toBeVisible();
      expect(new URL(page.url()).pathname).toBe('/');
    }
  });

  test('the gateway’s truth stands beside the order', async ({ page, shop }) => {
    const order = await act.order(page);
    await page.getByTestId('preset-decline').click();
    await act.openWindow(page);
    await act.payInWindow(page);
    await see.stage(page, 'not_charged');
    await page.goto(`/orders/${order}`);
    await expect(page.getByTestId('pg-truth')).toContainText(`${order}: confirms 1, charges 0`);

    await page.getByTestId('preset-healthy').click();
    await page.getByTestId('pay').click();
    const again = await act.openWindow(page);
    await act.payInWindow(page);
    await see.stage(page, 'paid');
    await page.goto(`/orders/${order}`);
    await expect(page.getByTestId('pg-truth')).toContainText(`${again}: confirms 1, charges 1`);
    await see.oneCharge(shop, again);
  });
});

async function scenario(shop: Shop): Promise<object> {
  return (await (await fetch(`${shop.pg.url}/_control/scenario`)).json()) as object;
}
