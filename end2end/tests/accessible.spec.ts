// Every page and state in both languages: by the rules of accessibility in light and dark, without scrolling sideways
// however narrow or enlarged, and in one language only. And a payment by keyboard alone, as it is read aloud, without
// motion.
import { AxeBuilder } from '@axe-core/playwright';
import type { Page } from '@playwright/test';
import { expect, test } from '../fixtures/shop';
import * as act from '../pages/act';
import { LOCALES, scenes } from '../pages/scenes';
import * as see from '../pages/see';

for (const [lang, locale] of Object.entries(LOCALES)) {
  for (const scene of scenes) {
    test.describe(`${scene.name}, ${lang}`, () => {
      test.use({ locale, shopEnv: scene.env ?? {}, expectedConsole: scene.console ?? [] });

      test('breaks no rule, fits, and speaks one language', async ({ page, shop }) => {
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
        expect(await strangeWords(page, lang), `words that are not ${lang}`).toEqual([]);
        // What was judged is what was meant.
        if (stage !== null) await expect(page.getByTestId('stage')).toHaveAttribute('data-stage', stage);
        await fits(page);
      });
    });
  }
}

/** Nothing must be scrolled sideways: on the narrowest phone, a window enlarged to 200 %, and text enlarged to 200 %. */
async function fits(page: Page): Promise<void> {
  const sizes = [
    { what: '320 px', width: 320, text: '' },
    { what: '1280 px at 200 %', width: 640, text: '' },
    { what: 'text at 200 %', width: 640, text: '200%' },
  ];
  for (const { what, width, text } of sizes) {
    await page.setViewportSize({ width, height: 844 });
    const over = await page.evaluate((size) => {
      const root = document.documentElement;
      root.style.fontSize = size;
      return root.scrollWidth - root.clientWidth;
    }, text);
    expect(over, what).toBeLessThanOrEqual(0);
  }
}

/** The visible words of another language than the page's; names, codes and what is marked as another language may stay. */
async function strangeWords(page: Page, lang: string): Promise<string[]> {
  return page.evaluate((lang) => {
    const apart = '.dev-panel, .console, .brand, .receipt-shop, .code, code, script, style, noscript';
    const names = /Jari|KakaoPay|Toss Payments|JavaScript|\b(KDB|IBK|KB|NH|SC|iM|Sh)\b/g;
    const strange = lang === 'en' ? /[가-힣]/ : /[A-Za-z]{2,}/;
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const found: string[] = [];
    while (walker.nextNode()) {
      const around = walker.currentNode.parentElement;
      if (!around || around.closest(apart)) continue;
      if (around.closest('[lang]')?.getAttribute('lang') !== lang) continue;
      const text = (walker.currentNode.textContent ?? '').replaceAll(names, '').trim();
      // What a shopper or a bank is called is in whatever language it is.
      if (strange.test(text) && !around.closest('[data-testid="deposit"] dd')) found.push(text);
    }
    return found;
  }, lang);
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

test.describe('with a bank that is slow', () => {
  test.use({ shopEnv: { JARI_RESPONSE_WAIT_MS: '1500', JARI_POLL_INTERVAL_MS: '500', JARI_POLL_COUNT: '130' } });

  test('each change is read aloud once, in the order in which it happens', async ({ page, shop }) => {
    await see.keepSaid(page.context());
    await shop.pg.scenario({ delayMs: 4_000 });
    await act.pay(page);
    await see.stage(page, 'paid', 30_000);
    const heard = (await see.said(page)).map((text) => text.split('.')[0]);
    expect(heard).toEqual(['결제를 확인하고 있어요', '아직 은행의 답을 기다리고 있어요', '결제가 완료됐어요']);
  });

  test('declined and paid again with the keyboard alone', async ({ page, shop }) => {
    await shop.pg.scenario({ decline: {}, delayMs: 2_500 });
    await act.order(page);
    await tabTo(page, 'pay');
    await page.keyboard.press('Enter');
    await page.getByTestId('pg-pay').waitFor();
    await tabTo(page, 'pg-pay');
    await page.keyboard.press('Enter');
    await see.stage(page, 'not_charged', 30_000);
    await expect(page.locator('#stage-heading')).toBeFocused();
    await shop.pg.scenario({});
    await tabTo(page, 'pay');
    await page.keyboard.press('Enter');
    await page.getByTestId('pg-pay').waitFor();
    await tabTo(page, 'pg-pay');
    await page.keyboard.press('Enter');
    await see.stage(page, 'paid');
    const { orders } = await shop.pg.ledger();
    expect(Object.values(orders).reduce((sum, order) => sum + order.charges, 0)).toBe(1);
  });

  test('nothing moves for whoever asked for less motion', async ({ page, shop }) => {
    const moving = () =>
      page.evaluate(() => document.getAnimations().filter((it) => it.playState === 'running').length);
    await shop.pg.scenario({ stop: true });
    await act.pay(page);
    await see.stage(page, 'checking');
    // The look for motion finds some where it is wanted.
    await page.emulateMedia({ reducedMotion: 'no-preference' });
    await expect.poll(moving).toBeGreaterThan(0);
    await page.emulateMedia({ reducedMotion: 'reduce' });
    await expect.poll(moving).toBe(0);
  });
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
