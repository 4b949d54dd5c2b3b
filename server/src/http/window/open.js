// Loads the gateway's script and opens its window. Whatever goes wrong here, nothing was charged: only a confirm does that.
(() => {
  const data = JSON.parse(document.getElementById('pay-data').textContent);
  let over = false;
  const say = (what) => {
    if (over) return;
    over = true;
    for (const line of document.querySelectorAll('[data-say]')) line.hidden = line.dataset.say !== what;
  };
  const open = async () => {
    try {
      const toss = window.TossPayments(data.clientKey);
      // Shoppers are guests: nothing is remembered of them at the gateway.
      const payment = toss.payment({ customerKey: window.TossPayments.ANONYMOUS });
      await payment.requestPayment({
        method: 'CARD',
        amount: { currency: 'KRW', value: data.amount },
        orderId: data.orderId,
        orderName: data.orderName,
        successUrl: data.successUrl,
        failUrl: data.failUrl,
      });
    } catch (error) {
      const closed = error && (error.code === 'USER_CANCEL' || error.code === 'PAY_PROCESS_CANCELED');
      say(closed ? 'closed' : 'refused');
    }
  };
  const script = document.createElement('script');
  const timer = setTimeout(() => say('blocked'), 20000);
  script.src = data.src;
  script.onload = () => {
    clearTimeout(timer);
    if (!over) open();
  };
  script.onerror = () => {
    clearTimeout(timer);
    say('blocked');
  };
  document.head.append(script);
})();
