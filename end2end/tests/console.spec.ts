// The operators' console in a browser: in, a doubt ended with a reason, and what is kept of it.
import { expect, test } from '../fixtures/shop';
import * as act from '../pages/act';
import { CONSOLE } from '../pages/scenes';
import * as see from '../pages/see';

test.use({ locale: 'en-US' });

test.describe('with a password', () => {
  // The gateway may charge for a second only: then "not charged" may be said.
  test.use({ shopEnv: { ...CONSOLE, JARI_PG_TIMEOUT_MS: '1000' } });

  test('a stuck doubt is ended with a reason, its page follows, and the audit tells who did it', async ({ page, shop, anotherShopper }) => {
    await shop.pg.scenario({ stop: true });
    const order = await act.pay(page);
    await see.attemptStatus(page.context(), shop, order, 'unknown');

    const desk = await anotherShopper();
    await act.enterConsole(desk, 'a wrong guess');
    await expect(desk.getByTestId('notice')).toHaveAttribute('data-code', 'wrong_password');
    await act.enterConsole(desk);
    await expect(desk.getByTestId('operator')).toHaveText('kim');
    await desk.locator(`[data-order="${order}"] a`).click();
    await expect(desk.getByTestId('attempt')).toHaveAttribute('data-status', 'unknown');
    await desk.getByText('It was charged').check();
    await desk.getByLabel('Reason').first().fill('seen on the bank statement');
    await desk.getByTestId('resolve').click();
    await expect(desk.getByTestId('notice')).toHaveAttribute('data-code', 'resolved');
    await expect(desk.getByTestId('attempt')).toHaveAttribute('data-status', 'approved');
    await see.stage(page, 'paid');

    await desk.getByRole('link', { name: 'Audit' }).click();
    const deed = desk.locator('[data-action="resolve"]');
    await expect(deed).toContainText('seen on the bank statement');
    await expect(deed).toContainText('kim');
    await desk.getByTestId('sign-out').click();
    await desk.getByTestId('sign-in').waitFor();
    await desk.goto('/ops/audit');
    await desk.getByTestId('sign-in').waitFor();
  });
});

test.describe('without a password', () => {
  test.use({ expectedConsole: [/status of 404/] });

  test('there is no console', async ({ page }) => {
    const answer = await page.goto('/ops');
    expect(answer?.status()).toBe(404);
  });
});
