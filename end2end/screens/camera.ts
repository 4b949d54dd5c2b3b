// Takes pictures as WebP, which Playwright's own camera does not make: a third of a PNG.
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { CDPSession, Page } from '@playwright/test';

export const FOLDER = path.join(__dirname, '../../docs/screens');

/** Good enough for text to be crisp. */
const QUALITY = 72;

/** What a picture shows: the whole page, or its first `height` pixels; wide pages at a smaller scale. */
export interface Frame {
  width: number;
  height?: number;
  scale?: number;
}

export class Camera {
  private constructor(
    private readonly page: Page,
    private readonly session: CDPSession,
  ) {}

  static async on(page: Page): Promise<Camera> {
    return new Camera(page, await page.context().newCDPSession(page));
  }

  /** The page as shoppers of a real shop see it: without the development panel, and standing still. */
  async picture({ width, height, scale = 1 }: Frame): Promise<Buffer> {
    await this.page.evaluate(() => {
      for (const panel of document.querySelectorAll('.dev-panel')) panel.remove();
    });
    const { cssContentSize } = await this.session.send('Page.getLayoutMetrics');
    const { data } = await this.session.send('Page.captureScreenshot', {
      format: 'webp',
      quality: QUALITY,
      captureBeyondViewport: true,
      clip: { x: 0, y: 0, width, height: height ?? cssContentSize.height, scale },
    });
    return Buffer.from(data, 'base64');
  }
}

export async function keep(name: string, picture: Buffer): Promise<void> {
  await mkdir(FOLDER, { recursive: true });
  await writeFile(path.join(FOLDER, name), picture);
}
