// A film of a payment whose bank takes 40 s: from the press that sends it to the result, eight times as fast.
import { test } from '../fixtures/shop';
import * as act from '../pages/act';
import * as see from '../pages/see';
import { Camera, keep } from './camera';
import { film, type Shot } from './film';

const BANK_MS = 40_000;
const STEP_MS = 2_000;
const FASTER = 8;
/** The result stands longer than the rest. */
const LAST_MS = 3_500;
const SIZE = { width: 390, height: 640 };

test.use({ locale: 'en-US', viewport: SIZE });

test('a bank that takes 40 s is filmed', async ({ page, shop }) => {
  await page.emulateMedia({ reducedMotion: 'reduce', colorScheme: 'light' });
  await shop.pg.scenario({ delayMs: BANK_MS });
  const order = await act.pay(page);
  await see.stage(page, 'confirming');
  const camera = await Camera.on(page);
  const begun = Date.now();
  const shots: Shot[] = [];
  let stage: string | null = 'confirming';
  for (let step = 1; stage !== 'paid'; step += 1) {
    shots.push({ picture: await camera.picture(SIZE), ms: STEP_MS / FASTER });
    await page.waitForTimeout(Math.max(0, begun + step * STEP_MS - Date.now()));
    stage = await page.getByTestId('stage').getAttribute('data-stage');
  }
  const picture = await camera.picture(SIZE);
  shots.push({ picture, ms: LAST_MS });
  await keep('slow-bank.webp', film(shots, SIZE));
  await see.oneCharge(shop, order);
});
