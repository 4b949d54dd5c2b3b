//! Mails as files: one a mail, whole or not there, by a name that follows from its effect, so that it is written once.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use app::text::{Lang, Mail, Word};
use mail_builder::MessageBuilder;
use mail_builder::headers::address::Address;
use payment::money::Won;
use payment::time::Millis;
use tokio::sync::Semaphore;

use crate::store::effects::{Effect, EffectKind};

/// Writes mails into a folder, from which whatever sends them takes them.
#[derive(Debug, Clone)]
pub struct Mailer {
    dir: PathBuf,
    host: String,
    /// How long one batch is waited for.
    most: Millis,
    /// One batch at a time: a folder that hangs takes one thread, not one a batch.
    turn: Arc<Semaphore>,
}

impl Mailer {
    /// Writes into `dir`, as the shop at `public_url`; a batch is waited for up to `most`.
    #[must_use]
    pub fn new(dir: PathBuf, public_url: &str, most: Millis) -> Self {
        let host = public_url.rsplit("//").next().unwrap_or_default();
        let host = host.split([':', '/']).next().unwrap_or_default();
        let host = if host.is_empty() { "localhost" } else { host };
        Self {
            dir,
            host: host.to_owned(),
            most,
            turn: Arc::new(Semaphore::new(1)),
        }
    }

    /// Writes the mail of each; which of them are there now.
    pub async fn write(&self, effects: &[Effect]) -> Vec<bool> {
        let none = vec![false; effects.len()];
        let Ok(turn) = Arc::clone(&self.turn).try_acquire_owned() else {
            tracing::warn!("the mail folder does not answer");
            return none;
        };
        let (mailer, effects) = (self.clone(), effects.to_vec());
        let writing = tokio::task::spawn_blocking(move || {
            let written = effects.iter().map(|effect| mailer.write_one(effect));
            let written: Vec<bool> = written.collect();
            drop(turn);
            written
        });
        match tokio::time::timeout(self.most.to_duration(), writing).await {
            Ok(Ok(written)) => written,
            Ok(Err(_)) | Err(_) => none,
        }
    }

    fn write_one(&self, effect: &Effect) -> bool {
        let written = self
            .message(effect)
            .and_then(|bytes| keep(&self.dir, &file_name(effect), effect.takes, &bytes));
        if let Err(error) = &written {
            tracing::warn!(%error, key = effect.key, dir = %self.dir.display(), "a mail could not be written");
        }
        written.is_ok()
    }

    fn message(&self, effect: &Effect) -> io::Result<Vec<u8>> {
        let order = effect.order_id.as_str();
        let mail = mail_of(effect);
        let languages = languages(mail, effect);
        let subject = languages.iter().map(|lang| lang.mail_subject(mail));
        let subject: Vec<_> = subject.collect();
        let bodies: Vec<_> = languages
            .iter()
            .map(|lang| body(*lang, mail, effect))
            .collect();
        // Nobody's address is stored: whatever sends the mail knows the shopper by the order.
        let to = if mail == Mail::Alarm {
            "Operators"
        } else {
            "Shopper"
        };
        MessageBuilder::new()
            .message_id(format!("{}@{}", name_of(effect), self.host))
            .from(("Jari", format!("jari@{}", self.host).as_str()))
            .to(Address::new_group(Some(to), Vec::new()))
            .date(effect.at.0 / 1_000)
            .subject(format!("{} · {order}", subject.join(" / ")))
            .text_body(bodies.join("\n--\n\n"))
            .write_to_vec()
    }
}

fn mail_of(effect: &Effect) -> Mail {
    match effect.kind {
        // Nobody had paid: saying that money was given back would be untrue.
        EffectKind::Canceled if effect.canceled == Some(Won::ZERO) => Mail::Closed,
        EffectKind::Paid => Mail::Paid,
        EffectKind::Unpaid => Mail::Unpaid,
        EffectKind::PartiallyCanceled => Mail::PartiallyCanceled,
        EffectKind::Canceled => Mail::Canceled,
        EffectKind::Returned => Mail::Returned,
        EffectKind::Alarm => Mail::Alarm,
    }
}

/// The shopper's language; both where it is not known, and for the shop's own people.
fn languages(mail: Mail, effect: &Effect) -> Vec<Lang> {
    let known = effect.language.as_deref().and_then(Lang::parse);
    match known {
        Some(lang) if mail != Mail::Alarm => vec![lang],
        Some(_) | None => Lang::ALL.to_vec(),
    }
}

fn body(lang: Lang, mail: Mail, effect: &Effect) -> String {
    let mut text = format!("{}\n\n", lang.mail_sentence(mail));
    let mut line = |name: &str, value: &str| {
        text.push_str(name);
        text.push_str(": ");
        text.push_str(value);
        text.push('\n');
    };
    line(lang.word(Word::OrderNumber), effect.order_id.as_str());
    if let Some(alarm) = &effect.alarm {
        line("alarm", alarm);
        line("attempt", &effect.attempt_number.to_string());
    }
    for row in &effect.lines {
        let price = row.price.times(row.quantity).unwrap_or(row.price);
        let name = &row.name[usize::from(lang == Lang::En)];
        line(&format!("{name} × {}", row.quantity), &lang.won(price));
    }
    line(lang.word(Word::Total), &lang.won(effect.amount));
    if let Some(canceled) = effect.canceled.filter(|won| *won > Won::ZERO) {
        line(lang.mail_refunded(), &lang.won(canceled));
    }
    text
}

/// The name of a mail: of its order, since keys count the rows of one database and a folder may serve several.
fn name_of(effect: &Effect) -> String {
    format!("{}.{}", effect.order_id, effect.key.replace(':', "-"))
}

fn file_name(effect: &Effect) -> String {
    format!("{}.eml", name_of(effect))
}

/// Keeps a file, whole or not at all. One that is there already was written by a take that could not say so: it stays.
fn keep(dir: &Path, name: &str, takes: u32, bytes: &[u8]) -> io::Result<()> {
    let path = dir.join(name);
    if !path.try_exists()? {
        fs::create_dir_all(dir)?;
        // A part of its own for each take: one that outlasts its lease writes into no other's.
        let part = part(dir, name, takes);
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let mut file = options.open(&part)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&part, &path)?;
        // The name too must outlast a power cut before the effect is called done.
        File::open(dir)?.sync_all()?;
    }
    for left in (1..takes).rev().take(8) {
        // What a take that died left behind; mostly there is nothing.
        let _ = fs::remove_file(part(dir, name, left));
    }
    Ok(())
}

fn part(dir: &Path, name: &str, takes: u32) -> PathBuf {
    dir.join(format!(".{name}.{takes}.part"))
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::slice;

    use payment::id::{OrderId, Sku};
    use tempfile::TempDir;

    use super::*;
    use crate::clock::EpochMs;
    use crate::store::{AttemptId, LineRow};

    fn effect(kind: EffectKind, language: Option<&str>) -> Effect {
        let won = |amount| Won::new(amount).expect("an amount");
        Effect {
            id: 1,
            key: format!("{}:7", kind.as_str()),
            takes: 1,
            kind,
            order_id: OrderId::parse("ord_1").expect("an id"),
            attempt_id: AttemptId(7),
            attempt_number: 2,
            amount: won(36_000),
            language: language.map(str::to_owned),
            canceled: (kind == EffectKind::PartiallyCanceled).then(|| won(5_000)),
            alarm: (kind == EffectKind::Alarm).then(|| "late_success".to_owned()),
            at: EpochMs(1_700_000_000_000),
            lines: vec![LineRow {
                sku: Sku::parse("mug").expect("a sku"),
                name: ["아침 머그".to_owned(), "Morning mug".to_owned()],
                quantity: 2,
                price: won(18_000),
            }],
        }
    }

    fn mailer(dir: &Path) -> Mailer {
        Mailer::new(
            dir.to_owned(),
            "https://shop.example:8443/",
            Millis::new(200),
        )
    }

    #[test]
    fn a_mail_speaks_the_shoppers_language_and_both_where_it_is_not_known() {
        let cases = [
            (EffectKind::Paid, Some("ko"), true, false),
            (EffectKind::PartiallyCanceled, Some("en"), false, true),
            (EffectKind::Canceled, None, true, true),
            (EffectKind::Returned, Some("xx"), true, true),
            (EffectKind::Unpaid, Some("en"), false, true),
            // The shop's own people may read either.
            (EffectKind::Alarm, Some("ko"), true, true),
        ];
        for (kind, language, korean, english) in cases {
            let effect = effect(kind, language);
            let mail = mail_of(&effect);
            for (lang, speaks) in [(Lang::Ko, korean), (Lang::En, english)] {
                let texts = languages(mail, &effect).contains(&lang);
                assert_eq!(texts, speaks, "{kind:?} {language:?}");
            }
            let text = body(Lang::En, mail, &effect);
            assert!(
                text.contains("ord_1") && text.contains("Morning mug × 2"),
                "{text}"
            );
            assert_eq!(
                text.contains("Refunded"),
                effect.canceled.is_some(),
                "{text}"
            );
            assert_eq!(
                text.contains("late_success"),
                effect.alarm.is_some(),
                "{text}"
            );
            let bytes = mailer(Path::new("")).message(&effect).expect("a mail");
            let whole = String::from_utf8(bytes).expect("a text");
            assert!(whole.contains("@shop.example>"), "{whole}");
            let long = whole.split("\r\n").find(|line| line.len() > 998);
            assert_eq!(long, None, "no line is longer than mails may have");
        }
    }

    #[test]
    fn of_an_account_that_nobody_paid_into_no_mail_says_that_money_went_back() {
        let closed = Effect {
            canceled: Some(Won::ZERO),
            ..effect(EffectKind::Canceled, None)
        };
        let back = Effect {
            canceled: Some(closed.amount),
            ..closed.clone()
        };
        for (lang, nothing, given) in [
            (Lang::Ko, "환불할 금액이 없어요", "모두 돌려드렸어요"),
            (Lang::En, "nothing was given back", "was given back"),
        ] {
            let text = body(lang, mail_of(&closed), &closed);
            assert!(text.contains(nothing), "{text}");
            assert!(!text.contains(lang.mail_refunded()), "{text}");
            let text = body(lang, mail_of(&back), &back);
            assert!(text.contains(given) && !text.contains(nothing), "{text}");
        }
    }

    #[tokio::test]
    async fn a_mail_is_written_once_and_what_a_dead_take_left_goes() {
        let folder = tempfile::tempdir().expect("a folder");
        let dir = folder.path().join("mail");
        let mut effect = effect(EffectKind::Paid, None);
        let mailer = mailer(&dir);
        assert_eq!(mailer.write(slice::from_ref(&effect)).await, [true]);
        let path = dir.join("ord_1.order_paid-7.eml");
        fs::write(&path, "as it was").expect("it is changed");
        fs::write(part(&dir, &file_name(&effect), 1), "half").expect("a part");
        effect.takes = 2;
        assert_eq!(mailer.write(&[effect]).await, [true]);
        assert_eq!(fs::read_to_string(&path).expect("a mail"), "as it was");
        assert_eq!(fs::read_dir(&dir).expect("a folder").count(), 1);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_folder_that_hangs_takes_one_batch_and_no_more() {
        let folder: TempDir = tempfile::tempdir().expect("a folder");
        let effect = effect(EffectKind::Paid, None);
        // Whoever opens this to write waits until somebody reads.
        let pipe = part(folder.path(), &file_name(&effect), 1);
        let made = Command::new("mkfifo").arg(&pipe).status();
        assert!(made.expect("mkfifo runs").success());
        let mailer = mailer(folder.path());
        assert_eq!(mailer.write(slice::from_ref(&effect)).await, [false]);
        let other = Effect {
            key: "order_paid:8".to_owned(),
            ..effect
        };
        assert_eq!(
            mailer.write(slice::from_ref(&other)).await,
            [false],
            "not its turn"
        );
        drop(File::open(&pipe).expect("somebody reads"));
        let turn = mailer.turn.acquire().await;
        drop(turn.expect("the turn ends"));
        assert_eq!(mailer.write(&[other]).await, [true]);
    }
}
