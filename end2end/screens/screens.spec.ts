// A picture of every page and state: wide and narrow, in both languages, light and dark.
import { test } from '../fixtures/shop';
import { LOCALES, scenes } from '../pages/scenes';
import { Camera, keep } from './camera';

const SIZES = [
  { width: 1280, scale: 0.625 },
  { width: 390, scale: 0.8 },
];

for (const [lang, locale] of Object.entries(LOCALES)) {
  for (const scene of scenes) {
    test.describe(`${scene.name}, ${lang}`, () => {
      test.use({ locale, shopEnv: scene.env ?? {}, expectedConsole: scene.console ?? [] });

      test('is pictured', async ({ page, shop }) => {
        await page.emulateMedia({ reducedMotion: 'reduce' });
        await shop.pg.scenario(scene.scenario ?? {});
        await scene.reach(page, shop);
        const camera = await Camera.on(page);
        for (const { width, scale } of SIZES) {
          await page.setViewportSize({ width, height: 844 });
          for (const colorScheme of ['light', 'dark'] as const) {
            await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
            const picture = await camera.picture({ width, scale });
            await keep(`${scene.name}-${lang}-${width}-${colorScheme}.webp`, picture);
          }
        }
      });
    });
  }
}
