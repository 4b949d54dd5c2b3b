// A page without its own security policy is dead: no style, no script. Files are loaded beside every page.
import { expect, test } from '../fixtures/shop';

const ROUNDS = 60;
const LANES = 6;

test('pages and files that are loaded at once each keep their own policy', async ({ shop }) => {
  const policies = async (path: string): Promise<string[]> => {
    const found: string[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      const answer = await fetch(`${shop.url}${path}`);
      await answer.arrayBuffer();
      found.push(`${path} ${answer.headers.get('content-security-policy')?.includes("'nonce-") ?? false}`);
    }
    return found;
  };
  const lanes = Array.from({ length: LANES }, (_, lane) => lane);
  const pages = lanes.map((lane) => policies(lane % 2 === 0 ? '/' : '/orders'));
  const files = lanes.map((lane) => policies(lane % 2 === 0 ? '/favicon.svg' : '/pkg/jari.css'));
  expect((await Promise.all(pages)).flat().filter((it) => it.endsWith('false'))).toEqual([]);
  // Nor may a file come with the policy of a page.
  expect((await Promise.all(files)).flat().filter((it) => it.endsWith('true'))).toEqual([]);
});
