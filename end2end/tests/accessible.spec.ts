// Every page and state by the rules of accessibility, in light and dark; and a payment with the keyboard alone.
import { AxeBuilder } from '@axe-core/playwright';
import type { Page } from '@playwright/test';
import { expect, test } from '../fixtures/shop';
import { scenes } from '../pages/scenes';
import * as see from '../pages/see';

for (const scene of scenes) {
  test.describe(scene.name, () => {
    test.use({ shopEnv: scene.env ?? {}, expectedConsole: scene.console ?? [] });

    test('breaks no rule in light or dark', async ({ page, shop }) => {
      await shop.pg.scenario(scene.scenario ?? {});
      await scene.reach(page, shop);
      const stages = await page.getByTestId('stage').count();
      const stage = stages > 0 ? await page.getByTestId('stage').getAttribute('data-stage') : null;
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme });
        const { violations } = await new AxeBuilder({ page }).analyze();
        const told = violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(' | ')}`);
        expect(told, colorScheme).toEqual([]);
      }
      // What was judged is what was meant.
      if (stage !== null) await expect(page.getByTestId('stage')).toHaveAttribute('data-stage', stage);
    });
  });
}

test('pays with the keyboard alone, and is led to the result', async ({ page, shop }) => {
  await page.goto('/');
  await tabTo(page, 'order');
  await page.keyboard.press('Enter');
  await see.stage(page, 'offer');
  await tabTo(page, 'pay');
  await page.keyboard.press('Enter');
  await page.getByTestId('pg-pay').waitFor();
  await tabTo(page, 'pg-pay');
  await page.keyboard.press('Enter');
  await see.stage(page, 'paid');
  await expect(page.locator('#stage-heading')).toBeFocused();
  await expect(page.getByTestId('announcer')).toContainText('결제가 완료됐어요');
  const ledger = await shop.pg.ledger();
  expect(Object.values(ledger.orders).map((order) => order.charges)).toEqual([1]);

  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await see.orderStatus(page, 'paid');
});

test('what is focused can be seen', async ({ page }) => {
  await page.goto('/');
  await tabTo(page, 'order');
  const outline = await page.evaluate(() => {
    const style = getComputedStyle(document.activeElement ?? document.body);
    return { style: style.outlineStyle, width: parseFloat(style.outlineWidth), shadow: style.boxShadow };
  });
  expect(outline.shadow !== 'none' || (outline.style !== 'none' && outline.width >= 2)).toBe(true);
});

/** Goes on with Tab until the element has the focus, as someone without a mouse would. */
async function tabTo(page: Page, testId: string): Promise<void> {
  for (let presses = 0; presses < 40; presses += 1) {
    await page.keyboard.press('Tab');
    const focused = await page.evaluate(() => document.activeElement?.getAttribute('data-testid'));
    if (focused === testId) return;
  }
  throw new Error(`Tab does not lead to ${testId}`);
}
