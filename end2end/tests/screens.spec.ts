// A picture of every page and state, wide and narrow, for people to look at; and nothing that must be scrolled sideways.
import path from 'node:path';
import { expect, test } from '../fixtures/shop';
import { scenes } from '../pages/scenes';

const FOLDER = path.join(__dirname, '../test-results/screens');
const HEIGHT = 844;

for (const scene of scenes) {
  test.describe(scene.name, () => {
    test.use({ shopEnv: scene.env ?? {}, expectedConsole: scene.console ?? [] });

    test('fits wide, narrow and very narrow', async ({ page, shop }) => {
      await shop.pg.scenario(scene.scenario ?? {});
      await scene.reach(page, shop);
      for (const width of [1280, 390]) {
        await page.setViewportSize({ width, height: HEIGHT });
        await page.screenshot({ path: path.join(FOLDER, `${scene.name}-${width}.png`), fullPage: true });
      }
      await page.setViewportSize({ width: 320, height: HEIGHT });
      const sizes = await page.evaluate(() => {
        const { scrollWidth, clientWidth } = document.documentElement;
        return { scrollWidth, clientWidth };
      });
      expect(sizes.scrollWidth).toBeLessThanOrEqual(sizes.clientWidth);
    });
  });
}
