//! Texts and numbers as a page needs them.

/// A text that is no markup.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// A number with as many digits as say something: whole from 100 on, and with thousands apart.
pub(super) fn number(value: f64) -> String {
    if value.is_infinite() {
        return "never".to_owned();
    }
    if value.is_nan() {
        return "–".to_owned();
    }
    let digits = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 3,
    };
    let text = format!("{value:.digits$}");
    let text = if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    };
    if text == "-0" {
        return "0".to_owned();
    }
    apart(&text)
}

/// With a comma after each thousand.
fn apart(text: &str) -> String {
    let (sign, rest) = text
        .strip_prefix('-')
        .map_or(("", text), |rest| ("−", rest));
    let (whole, fraction) = rest
        .split_once('.')
        .map_or((rest, None), |(w, f)| (w, Some(f)));
    let mut out = String::from(sign);
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    if let Some(fraction) = fraction {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

/// A name that can stand in an address within the page.
pub(super) fn anchor(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    name.chars().map(plain).collect()
}

/// A field of a CSV line (RFC 4180).
pub(super) fn field(text: &str) -> String {
    if text.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_from_a_run_is_never_markup() {
        assert_eq!(
            escaped("<script>\"a\" & 'b'</script>"),
            "&lt;script&gt;&quot;a&quot; &amp; &#39;b&#39;&lt;/script&gt;"
        );
        assert_eq!(field("a,\"b\""), "\"a,\"\"b\"\"\"");
        assert_eq!(anchor("cap sweep/2"), "cap-sweep-2");
    }

    #[test]
    fn numbers_say_what_they_can() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0001, "0"),
            (0.1234, "0.123"),
            (1.5, "1.5"),
            (12.34, "12.3"),
            (1234.6, "1,235"),
            (-1_234_567.0, "−1,234,567"),
            (f64::INFINITY, "never"),
        ] {
            assert_eq!(number(value), text);
        }
    }
}
