// The second way to pay, without script.
import { expect, test } from '../fixtures/shop';
import * as act from '../pages/act';
import * as see from '../pages/see';

test.use({ shopEnv: { JARI_GATEWAYS: 'toss,kakaopay' } });

test('chosen, closed, chosen again and paid', async ({ page, shop }) => {
  await act.order(page);
  await act.choose(page, 'kakaopay');
  const first = await act.openWindow(page);
  await page.getByTestId('pg-close').click();
  await expect(page.getByTestId('notice')).toBeVisible();
  await act.choose(page, 'kakaopay');
  const id = await act.openWindow(page);
  expect(id).not.toBe(first);
  await act.payInWindow(page);
  await page.getByTestId('confirm').click();
  await see.stage(page, 'paid');
  await see.oneCharge(shop, id);
});
