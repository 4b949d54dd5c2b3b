//! Words for people that do not stand in the catalogue of messages, where both languages answer them.

use super::files::Source;

/// Where all words for people stand.
const CATALOGUE: &str = "app/src/text";

/// Where nothing else may say anything to people: pages and what serves them.
const PAGES: [&str; 2] = ["app/src/", "server/src/"];

/// Attributes that people see or hear.
const SPOKEN: [&str; 5] = ["aria-label=", "title=", "alt=", "placeholder=", "label="];

/// The strays of one file, one a line.
pub(super) fn check(source: &Source) -> Vec<String> {
    let Source { path, text } = source;
    let is_page = PAGES.iter().any(|folder| path.starts_with(folder));
    if !source.is_rust() || !is_page || path.starts_with(CATALOGUE) || path.ends_with("tests.rs") {
        return Vec::new();
    }
    // Tests stand last, and may say anything.
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    let mut strays = Vec::new();
    for literal in literals(code) {
        let korean = literal.text.chars().any(is_hangul);
        let markup = path.starts_with("app/src/") && literal.is_spoken(code);
        if korean || (markup && literal.text.chars().any(char::is_alphabetic)) {
            let line = 1 + code[..literal.start].matches('\n').count();
            strays.push(format!(
                "{path}:{line}: `{}`: words for people stand in {CATALOGUE}",
                literal.text
            ));
        }
    }
    for (number, line) in (1..).zip(code.lines()) {
        if path.starts_with("app/src/") && has_bare_text(line) {
            strays.push(format!(
                "{path}:{number}: `{}`: words for people stand in {CATALOGUE}",
                line.trim()
            ));
        }
    }
    strays
}

/// A string in the code.
struct Literal<'a> {
    /// Of its first quote, in bytes.
    start: usize,
    /// After its last quote.
    end: usize,
    text: &'a str,
}

impl Literal<'_> {
    /// Whether it is a text of the markup, or an attribute that people see or hear.
    fn is_spoken(&self, code: &str) -> bool {
        let before = code[..self.start].trim_end();
        let after = code[self.end..].trim_start();
        let is_text = (before.ends_with(['>', '}', '"']) && !before.ends_with("=>"))
            && after.starts_with(['<', '{', '"']);
        is_text || SPOKEN.iter().any(|name| before.ends_with(name))
    }
}

/// All strings outside comments; of raw ones too, whose marks the search does not need.
fn literals(code: &str) -> Vec<Literal<'_>> {
    let bytes = code.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &code[at..];
        if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
        } else if let Some(raw) = rest.strip_prefix("r#\"") {
            let length = raw.find("\"#").unwrap_or(raw.len());
            let end = (at + 3 + length + 2).min(code.len());
            found.push(Literal {
                start: at,
                end,
                text: &raw[..length],
            });
            at = end;
        } else if rest.starts_with("'\"'") {
            at += 3;
        } else if bytes[at] == b'"' {
            let end = end_of_string(rest);
            found.push(Literal {
                start: at,
                end: at + end,
                text: &rest[1..end - 1],
            });
            at += end;
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    found
}

/// The length of the string that the text begins with, quotes included.
fn end_of_string(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    // An open string does not compile; one that is only a quote still has both ends here.
    text.len().max(2)
}

fn is_hangul(c: char) -> bool {
    ('\u{ac00}'..='\u{d7a3}').contains(&c)
}

/// Whether markup on this line holds words without quotes: `<p>Hello</p>`.
fn has_bare_text(line: &str) -> bool {
    let is_comment = line.trim_start().starts_with("//");
    let words = line.match_indices("</").any(|(end, _)| {
        let inner = line[..end].rsplit('>').next().unwrap_or_default();
        let opened = line[..end].contains('>');
        let plain = !inner.contains(['{', '}', '"', '<', '(', ')', ';', '=']);
        opened && plain && inner.chars().any(char::is_alphabetic)
    });
    words && !is_comment
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::files::Source;

    fn strays(path: &str, text: &str) -> usize {
        let source = Source {
            path: path.to_owned(),
            text: format!("//! A file.\n{text}"),
        };
        check(&source).len()
    }

    #[test]
    fn korean_outside_the_catalogue_is_found_and_inside_it_is_not() {
        let word = "const A: &str = \"결제\";\n";
        assert_eq!(strays("app/src/pages/a.rs", word), 1);
        assert_eq!(strays("server/src/http/a.rs", word), 1);
        assert_eq!(strays("app/src/text/ko.rs", word), 0);
        assert_eq!(strays("app/src/pages/a.rs", "// \"결제\"\nfn a() {}\n"), 0);
        let test = format!("fn a() {{}}\n#[cfg(test)]\nmod tests {{ {word} }}\n");
        assert_eq!(strays("server/src/a.rs", &test), 0);
    }

    #[test]
    fn words_in_markup_are_found_with_and_without_quotes_and_in_what_is_read_aloud() {
        let found = |text| strays("app/src/pages/a.rs", text);
        assert_eq!(found("view! { <p>\"Hello\"</p> }"), 1);
        assert_eq!(found("view! { <p>{name}\" pieces\"</p> }"), 1);
        assert_eq!(found("view! { <p>Hello there</p> }"), 1);
        assert_eq!(found("view! { <nav aria-label=\"Menu\"></nav> }"), 1);
    }

    #[test]
    fn marks_names_and_code_are_no_words() {
        let found = |text| strays("app/src/pages/a.rs", text);
        assert_eq!(
            found("view! { <p class=\"lead\">{name} \" · \" {more}</p> }"),
            0
        );
        assert_eq!(found("match a { A => \"paid\", B => \"open\" }"), 0);
        assert_eq!(found("let a: Vec<Option<u8>> = b(\"name\");"), 0);
        assert_eq!(found("let q = '\"'; let s = \"a\\\"b\";"), 0);
    }
}
