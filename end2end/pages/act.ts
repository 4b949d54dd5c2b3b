// What a shopper does. What comes of it is in see.ts.
import type { Page, Request } from '@playwright/test';
import type { Shop } from '../fixtures/shop';

/** Of this one there are always enough. */
const PRODUCT = 'mug';

/** Makes an order from the catalogue and returns its id; the page is at its checkout. */
export async function order(page: Page, product = PRODUCT): Promise<string> {
  await page.goto('/');
  return orderFromHere(page, product);
}

/** The same on a page that shows the catalogue already. */
export async function orderFromHere(page: Page, product = PRODUCT): Promise<string> {
  await page.locator(`[data-testid="product"][data-sku="${product}"]`).getByTestId('order').click();
  await page.waitForURL(/\/checkout\/\w+$/, { waitUntil: 'commit' });
  return page.url().split('/').at(-1) ?? '';
}

/** Opens the payment window and returns the order id that it was given. */
export async function openWindow(page: Page): Promise<string> {
  await page.getByTestId('pay').click();
  return (await page.getByTestId('pg-order').innerText()).trim();
}

/** Chooses a way to pay, where there are several. */
export async function choose(page: Page, gateway: string): Promise<void> {
  await page.locator(`[data-testid="method"][value="${gateway}"]`).check();
}

/** Orders, opens the window and stops before its buttons. */
export async function orderAndOpenWindow(page: Page): Promise<string> {
  const id = await order(page);
  await openWindow(page);
  return id;
}

/** Pays in the window. Returns when the shop's page is shown, whatever it says. */
export async function payInWindow(page: Page): Promise<void> {
  await page.getByTestId('pg-pay').click();
  await page.getByTestId('stage').waitFor();
}

/** The whole way up to the return from the window. */
export async function pay(page: Page): Promise<string> {
  const id = await orderAndOpenWindow(page);
  await payInWindow(page);
  return id;
}

/** Holds the program of the pages back; the returned function lets it come. */
export async function holdProgram(page: Page): Promise<() => void> {
  let release = () => {};
  const held = new Promise<void>((resolve) => (release = resolve));
  await page.route('**/*.wasm', async (route) => {
    await held;
    // The page that asked may be gone by now.
    await route.continue().catch(() => {});
  });
  return release;
}

/** What proves that a request comes from the shop's people. */
export const OPERATOR = { JARI_OPERATOR_TOKEN: 'only-for-tests-0123456789-0123456789' };

/** The shop gives money of a paid order back, all that is left without an amount; returns when the gateway has done it. */
export async function refund(page: Page, shop: Shop, order: string, amount?: number): Promise<void> {
  const asked = await page.context().request.post(`${shop.url}/api/orders/${order}/cancel`, {
    headers: {
      authorization: `Bearer ${OPERATOR.JARI_OPERATOR_TOKEN}`,
      'idempotency-key': `test-${order}-${amount ?? 'all'}`,
    },
    data: { reason: 'one was broken', amount },
  });
  if (asked.status() !== 200) throw new Error(`refund: ${asked.status()} ${await asked.text()}`);
}

/** Without script: the whole way, and the last step that a script would take by itself. */
export async function payWithoutScript(page: Page): Promise<string> {
  const id = await pay(page);
  await page.getByTestId('confirm').click();
  return id;
}

/** The page's own confirm requests, from now on. */
export function confirmsOf(page: Page): Request[] {
  const requests: Request[] = [];
  page.on('request', (request) => {
    if (new URL(request.url()).pathname === '/api/payments/confirm') requests.push(request);
  });
  return requests;
}

/** Somebody else's payment, made without a browser. */
export interface Other {
  order: string;
  /** Begins the confirm; the status of its answer, once it comes. */
  confirm(): Promise<number>;
}

/** Another shopper comes back from the window. */
export async function anotherShopper(shop: Shop): Promise<Other> {
  const items = [{ sku: PRODUCT, quantity: 1 }];
  const made = await post(`${shop.url}/api/orders`, { items });
  const cookie = made.headers.getSetCookie().map((it) => it.split(';')[0]).join('; ');
  const { orderId, amount } = (await made.json()) as { orderId: string; amount: number };
  const opened = await post(`${shop.url}/api/orders/${orderId}/attempts`, {}, cookie);
  const { gatewayOrderId } = (await opened.json()) as { gatewayOrderId: string };
  const paymentKey = await shop.pg.payment(gatewayOrderId, amount);
  const body = { paymentKey, orderId: gatewayOrderId, amount };
  const confirm = async () => (await post(`${shop.url}/api/payments/confirm`, body, cookie)).status;
  return { order: orderId, confirm };
}

/** Lets others pay at once; returns when the gateway has all their confirms, with the promise of their statuses. */
export async function theyPay(shop: Shop, others: Other[]): Promise<{ answered: Promise<number[]> }> {
  const before = (await shop.pg.ledger()).calls.confirm.received;
  const answered = Promise.all(others.map((other) => other.confirm()));
  while ((await shop.pg.ledger()).calls.confirm.received < before + others.length) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  // In a wrapper: whoever awaits this call must not wait for the answers too.
  return { answered };
}

async function post(url: string, body: object, cookie = ''): Promise<Response> {
  return fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', cookie },
    body: JSON.stringify(body),
  });
}

/** What opens the console of the tests. */
export const PASSWORD = 'correct horse battery';

/** Signs an operator in. */
export async function enterConsole(page: Page, password = PASSWORD): Promise<void> {
  await page.goto('/ops');
  await page.locator('#operator-name').fill('kim');
  await page.locator('#operator-password').fill(password);
  await page.getByTestId('sign-in').click();
}
