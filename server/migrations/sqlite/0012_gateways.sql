-- A gateway that opens a payment by a call names it before the shopper authenticates: that name, which stays on the server,
-- and where the shopper is sent, so that the same ready attempt is opened once.
ALTER TABLE attempts ADD COLUMN handle TEXT;
ALTER TABLE attempts ADD COLUMN window_desktop TEXT;
ALTER TABLE attempts ADD COLUMN window_mobile TEXT;
