//! Mails as files: one a mail, whole or not there, by a name that follows from its effect, so that it is written once.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use app::text::{Lang, Mail, Word};
use mail_builder::MessageBuilder;
use mail_builder::headers::address::Address;
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
        let mail = mail_of(effect.kind);
        let known = effect.language.as_deref().and_then(Lang::parse);
        let languages: Vec<Lang> = match known {
            Some(lang) if mail != Mail::Alarm => vec![lang],
            Some(_) | None => Lang::ALL.to_vec(),
        };
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

const fn mail_of(kind: EffectKind) -> Mail {
    match kind {
        EffectKind::Paid => Mail::Paid,
        EffectKind::Unpaid => Mail::Unpaid,
        EffectKind::PartiallyCanceled => Mail::PartiallyCanceled,
        EffectKind::Canceled => Mail::Canceled,
        EffectKind::Returned => Mail::Returned,
        EffectKind::Alarm => Mail::Alarm,
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
    if let Some(canceled) = effect.canceled {
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
