//! The wall clock of the machine leaps while the shop runs, ahead or back by as much as is promised to be harmless (a
//! quarter of the gateway's confirm window): nothing ends early, nothing waits for long, nobody is told what is not true.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::json;
use tempfile::TempDir;

use super::{Stand, offers, quiet};
use crate::shop::{Reply, Shop};

/// A quarter of the ten minutes, in seconds.
const LEAP: i64 = 150;

/// A process whose wall clock a test can step.
struct Stepped {
    stand: Stand,
    file: PathBuf,
    _folder: TempDir,
}

impl Stepped {
    async fn stand(env: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let (file, library) = (folder.path().join("step"), folder.path().join("step.so"));
        fs::write(&file, 0_i64.to_ne_bytes()).expect("a file");
        // The linker that every build of this program needs.
        let made = Command::new("cc")
            .args(["-shared", "-fPIC", "-o"])
            .arg(&library)
            .arg(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/tests/support/clock_step.c"
            ))
            .status();
        assert!(made.expect("cc runs").success());
        let paths = [library, file.clone()].map(|path| path.display().to_string());
        let more = [
            ("LD_PRELOAD", paths[0].as_str()),
            ("CLOCK_STEP_FILE", paths[1].as_str()),
        ];
        let shop = Shop::with(&[env, &more].concat()).await;
        Self {
            stand: Stand::in_shop(shop).await,
            file,
            _folder: folder,
        }
    }

    /// Steps the clock to so many seconds beside the machine's.
    async fn step(&self, seconds: i64) {
        use std::os::unix::fs::FileExt as _;
        let file = fs::OpenOptions::new().write(true).open(&self.file);
        let file = file.expect("the file is there");
        file.write_all_at(&seconds.to_ne_bytes(), 0)
            .expect("written");
    }

    /// The clock is right again, the gateway answers, and what was in doubt becomes known.
    async fn ends_well(self) {
        self.step(0).await;
        self.stand.set(quiet(json!({}))).await;
        self.stand.until_status(&self.stand.unknown, "paid").await;
        self.stand.end().await;
    }
}

const ENV: [(&str, &str); 2] = [("JARI_RESEND", "off"), ("JARI_CIRCUIT", "off")];

#[tokio::test]
async fn a_step_of_the_clock_changes_no_page() {
    let stepped = Stepped::stand(&ENV).await;
    let stand = &stepped.stand;
    for seconds in [LEAP, -LEAP] {
        stepped.step(seconds).await;
        let (status, page) = stand.checkout_of(&stand.fresh).await;
        assert!(status == 200 && offers(&page), "{page}");
        let (_, page) = stand.checkout_of(&stand.unknown).await;
        assert!(!offers(&page), "{page}");
        let (_, page) = stand.checkout_of(&stand.paid).await;
        assert!(page.contains("data-stage=\"paid\"") && !offers(&page));
        let (status, page) = stand.page("/orders").await;
        assert_eq!(status, 200);
        for state in ["paid", "checking", "offer"] {
            assert!(
                page.contains(&format!("data-status=\"{state}\"")),
                "{state}"
            );
        }
    }
    stepped.ends_well().await;
}

#[tokio::test]
async fn the_history_tells_the_same_times_after_a_step_of_the_clock() {
    let stepped = Stepped::stand(&ENV).await;
    let stand = &stepped.stand;
    let times = |page: &str| -> Vec<String> {
        let parts = page.split("class=\"row-created\">").skip(1);
        parts
            .filter_map(|part| part.split_once('<'))
            .map(|(time, _)| time.to_owned())
            .collect()
    };
    let (_, before) = stand.page("/orders").await;
    assert_eq!(times(&before).len(), 3, "{before}");
    for seconds in [LEAP, -LEAP] {
        stepped.step(seconds).await;
        assert_eq!(times(&stand.page("/orders").await.1), times(&before));
    }
    stepped.ends_well().await;
}

#[tokio::test]
async fn a_confirm_under_way_outlives_a_step_of_the_clock() {
    for seconds in [LEAP, -LEAP] {
        let stepped = Stepped::stand(&ENV).await;
        let stand = &stepped.stand;
        stand.set(quiet(json!({"delayMs": 2_500}))).await;
        let key = stand.key(&stand.fresh.id, stand.fresh.amount);
        let paying = stand.start_pay(&stand.fresh, &key);
        stand
            .until_ledger(|ledger| ledger.orders.contains_key(&stand.fresh.id))
            .await;
        stepped.step(seconds).await;
        let reply = stand.poll(&stand.fresh).await;
        reply.attempt("approving");
        assert_eq!(reply.body["payable"], false);
        let reply = paying.await.unwrap().expect("an answer");
        assert_eq!(reply.status, 200, "{:?}", reply.body);
        assert_eq!(stand.charges(&stand.fresh.id), 1);
        stepped.ends_well().await;
    }
}

#[tokio::test]
async fn a_deadline_is_what_it_was_after_a_step_of_the_clock() {
    let stepped = Stepped::stand(&ENV).await;
    let stand = &stepped.stand;
    stepped.step(LEAP).await;
    stand.set(quiet(json!({}))).await;
    let key = stand.key(&stand.fresh.id, stand.fresh.amount);
    let request = stand
        .confirm_request(&stand.fresh, &stand.fresh.id, &key)
        .header("X-Request-Timeout-Ms", "60000");
    let reply = Reply::of(request.send().await.unwrap()).await;
    assert_eq!(reply.status, 200, "{:?}", reply.body);
    stepped.ends_well().await;
}

#[tokio::test]
async fn a_window_that_is_open_does_not_close_by_a_step_of_the_clock() {
    let stepped = Stepped::stand(&ENV).await;
    let stand = &stepped.stand;
    stand.set(quiet(json!({}))).await;
    stand.attempt(&stand.fresh).await;
    stepped.step(LEAP).await;
    // Several rounds of what the clock alone ends.
    tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    stand.poll(&stand.fresh).await.attempt("ready");
    let key = stand.key(&stand.fresh.id, stand.fresh.amount);
    let reply = stand.confirm(&stand.fresh, &key).await;
    assert_eq!(reply.status, 200, "{:?}", reply.body);
    stepped.ends_well().await;
}

#[tokio::test]
async fn a_step_of_the_clock_makes_no_not_found_count_before_its_time() {
    let env = [
        ("JARI_RESEND", "off"),
        ("JARI_CIRCUIT", "off"),
        ("JARI_PG_TIMEOUT_MS", "1500"),
        ("JARI_DATABASE_WAIT_MS", "300"),
    ];
    let stepped = Stepped::stand(&env).await;
    let stand = &stepped.stand;
    // The gateway still works on it when we have given up, and says so or knows nothing yet.
    stand
        .set(quiet(
            json!({"hang": {"when": "before", "ms": 9_000}, "unconfirmed": "notFound"}),
        ))
        .await;
    let reply = stand.pay(&stand.fresh).await;
    reply.attempt("unknown");
    stepped.step(LEAP).await;
    let before = stand.pg.ledger().calls.get.received;
    stand
        .until_ledger(|ledger| ledger.calls.get.received > before)
        .await;
    stand
        .until(&stand.fresh, |body| {
            assert_ne!(
                body["attempt"]["status"], "failed",
                "while the gateway works"
            );
            body["status"] == "paid"
        })
        .await;
    assert_eq!(stand.charges(&stand.fresh.id), 1);
    stepped.ends_well().await;
}

#[tokio::test]
async fn what_waits_is_asked_about_later_by_no_more_than_the_clock_stepped_back() {
    let stepped = Stepped::stand(&ENV).await;
    stepped.step(-8).await;
    stepped.stand.set(quiet(json!({}))).await;
    let stand = &stepped.stand;
    stand.until_status(&stand.unknown, "paid").await;
    stepped.ends_well().await;
}

#[tokio::test]
async fn a_webhook_is_kept_and_followed_after_a_step_of_the_clock() {
    for seconds in [LEAP, -LEAP] {
        let stepped = Stepped::stand(&ENV).await;
        let stand = &stepped.stand;
        let key = stand.unknown_key();
        stepped.step(seconds).await;
        // By the gateway's own clock, whatever ours says.
        assert_eq!(stand.hook("stepped", &stand.unknown, &key).await, 200);
        let applied = "webhook_events_total{gateway=\"toss\",result=\"applied\"}";
        stand.until_metric(applied, 1.0).await;
        stepped.ends_well().await;
    }
}
