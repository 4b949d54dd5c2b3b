//! A fake payment gateway.
