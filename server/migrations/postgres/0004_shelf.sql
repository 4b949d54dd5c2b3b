-- The shop that a new installation opens with. The first product never runs out in practice (load runs buy it).
INSERT INTO products (sku, position, name_ko, name_en, blurb_ko, blurb_en, price_won, total) VALUES
    ('mug', 1, '아침 머그', 'Morning mug', '두 손에 꼭 맞는 도자기 머그예요.', 'A stoneware mug that fits both hands.', 18000, 10000000),
    ('teapot', 2, '작은 찻주전자', 'Small teapot', '두 잔을 천천히 우려요.', 'Two slow cups, brewed well.', 42000, 120),
    ('notebook', 3, '실 제본 노트', 'Thread-bound notebook', '펼치면 끝까지 평평해져요.', 'Lies flat on every page.', 12000, 800),
    ('candle', 4, '솔숲 향초', 'Pine-wood candle', '비 온 뒤 솔숲의 향이에요.', 'A pine wood after rain.', 26000, 240),
    ('tote', 5, '캔버스 토트백', 'Canvas tote', '장바구니로도 든든해요.', 'Carries a whole market.', 33000, 300),
    ('poster', 6, '달 포스터', 'Moon poster', '한 달의 달을 한 장에 담았어요.', 'A month of moons on one sheet.', 15000, 1);
