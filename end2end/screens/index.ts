// Writes docs/screens.md: what there is to see, by page and state.
import { readdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { LOCALES, scenes } from '../pages/scenes';
import { FOLDER } from './camera';

const SCHEMES = ['light', 'dark'];

export default async function index(): Promise<void> {
  const there = new Set(await readdir(FOLDER));
  const cell = (name: string, width: number): string =>
    there.has(name) ? `<a href="screens/${name}"><img src="screens/${name}" width="${width}" alt="${name.slice(0, -5)}"></a>` : '';
  const row = (name: string, size: number, width: number): string => {
    const cells = Object.keys(LOCALES).flatMap((lang) =>
      SCHEMES.map((scheme) => cell(`${name}-${lang}-${size}-${scheme}.webp`, width)),
    );
    return `| ${cells.join(' | ')} |`;
  };
  const pictured = scenes.filter(({ name }) => there.has(`${name}-ko-390-light.webp`));
  const sections = pictured.map(({ name }) =>
    [
      `## ${name}`,
      '',
      '| Korean, light | Korean, dark | English, light | English, dark |',
      '| --- | --- | --- | --- |',
      row(name, 390, 195),
      row(name, 1280, 240),
    ].join('\n'),
  );
  const head = [
    '# Every page and state',
    '',
    'Made by `npm run screens` in `end2end`, after `cargo xtask build`; the same scenes are held against the rules of',
    'accessibility by `end2end/tests/accessible.spec.ts`. At 390 and 1280 px, in Korean and English, light and dark.',
    '',
    '## A bank that takes 40 s, survived',
    '',
    'Eight times as fast as it was.',
    '',
    '![From the press that sends the payment to its result](screens/slow-bank.webp)',
  ];
  const file = path.join(FOLDER, '../screens.md');
  await writeFile(file, `${[head.join('\n'), ...sections].join('\n\n')}\n`);
}
