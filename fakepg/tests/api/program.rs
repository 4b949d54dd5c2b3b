//! The program itself: what it says, and the scenario in its file.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use crate::support::{client, read, until};

/// A file of this test alone, gone with it.
struct File(PathBuf);

impl File {
    fn new(text: &str) -> Self {
        static FILES: AtomicU32 = AtomicU32::new(0);
        let number = FILES.fetch_add(1, Ordering::Relaxed);
        let name = format!("fakepg-{}-{number}.json", std::process::id());
        let file = Self(std::env::temp_dir().join(name));
        file.write(text);
        file
    }

    fn write(&self, text: &str) {
        std::fs::write(&self.0, text).expect("writes");
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // Whoever cleans the folder may have been faster.
        let _ = std::fs::remove_file(&self.0);
    }
}

fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fakepg"));
    command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// A running program, where it listens, and what it says on.
async fn started(file: &File) -> (Child, String, Lines<BufReader<ChildStdout>>) {
    let mut command = program();
    let mut child = command
        .args(["--addr", "127.0.0.1:0", "--scenario"])
        .arg(&file.0)
        .spawn()
        .expect("starts");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let line = lines.next_line().await.expect("text").expect("a line");
    let url = line.strip_prefix("fakepg listens on ").expect("an address");
    (child, url.to_owned(), lines)
}

async fn scenario_at(url: &str) -> Value {
    let request = client().get(format!("{url}/_control/scenario"));
    read(request).await.expect("an answer").json()
}

#[tokio::test]
async fn a_scenario_file_is_read_again_when_it_changes_and_a_broken_one_changes_nothing() {
    let file = File::new(r#"{"rateLimit": 1}"#);
    let (_child, url, _lines) = started(&file).await;
    assert_eq!(scenario_at(&url).await["rateLimit"], 1);
    file.write(r#"{"rateLimit": 22}"#);
    until("the file is read again", || async {
        scenario_at(&url).await["rateLimit"] == 22
    })
    .await;
    file.write(r#"{"rateLimit": "many"}"#);
    file.write(r#"{"rateLimit": 333, "delayMs": 0}"#);
    until("the next good one is read", || async {
        scenario_at(&url).await["rateLimit"] == 333
    })
    .await;
}

#[tokio::test]
async fn a_mistake_in_the_file_stops_the_start_and_names_file_field_line_and_column() {
    for (text, parts) in [
        (
            "{\n  \"loss\": {\"ratio\": 2}\n}",
            ["loss.ratio", "line 2", "between 0 and 1"],
        ),
        ("{\n\n  \"dealyMs\": 5\n}", ["dealyMs", "line 3", "delayMs"]),
        (
            "{\n  \"delayMs\": \"5\"\n}",
            ["delayMs", "line 2", "a delay is"],
        ),
        (
            "{\n  \"kakaopay\": {\"pgToken\": \"twice\"}\n}",
            ["kakaopay.pgToken", "line 2", "reusable"],
        ),
        ("{\n  \"up\": true", ["EOF", "line 2", "column"]),
        ("{} {}", ["trailing", "line 1", "column"]),
    ] {
        let file = File::new(text);
        let mut command = program();
        let output = command
            .arg("--scenario")
            .arg(&file.0)
            .output()
            .await
            .expect("runs");
        assert!(!output.status.success(), "{text}");
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        let name = file.0.display().to_string();
        for part in parts.iter().copied().chain([name.as_str()]) {
            assert!(told.contains(part), "{part} in {told}");
        }
    }
}

#[tokio::test]
async fn the_help_tells_every_flag_and_shows_examples() {
    let output = program().arg("--help").output().await.expect("runs");
    let help = String::from_utf8_lossy(&output.stdout).into_owned();
    for part in [
        "Examples:",
        "--kakaopay-secret-key",
        "/online/v1/payment/",
        "curl -X PUT",
    ] {
        assert!(help.contains(part), "{part}");
    }
}

#[tokio::test]
async fn the_program_speaks_both_wires_with_the_keys_it_is_given() {
    let mut child = program()
        .args([
            "--addr",
            "127.0.0.1:0",
            "--kakaopay-secret-key",
            "other",
            "--secret-key",
            "sk",
        ])
        .spawn()
        .expect("starts");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let line = lines.next_line().await.expect("text").expect("a line");
    let url = line.strip_prefix("fakepg listens on ").expect("an address");
    let order = client().post(format!("{url}/online/v1/payment/order"));
    let body = json!({"cid": "TC0ONETIME", "tid": "T0000000000000000000"});
    let asked = order
        .header("authorization", "SECRET_KEY other")
        .json(&body);
    assert_eq!(
        read(asked).await.expect("an answer").kakao_refusal(),
        (400, -721)
    );
    let toss = client().get(format!("{url}/v1/payments/none"));
    let asked = toss.header("authorization", "Basic c2s6");
    assert_eq!(read(asked).await.expect("an answer").status, 404);
}
