//! What is counted: each call once, with what became of it, and the gauge even when a call is dropped.

use metrics_exporter_prometheus::PrometheusBuilder;
use server::gateway::Gateway;
use tokio::net::TcpListener;

use crate::bench::{PATIENT, confirm_of, toss};

#[tokio::test]
async fn a_dropped_call_leaves_the_gauge_at_zero_and_every_call_is_counted_once() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let handle = recorder.handle();
    // The test's runtime has one thread, so this recorder sees all of the adapter and nothing else.
    let _recording = metrics::set_default_local_recorder(&recorder);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let toss = toss(
        &format!("http://{}", listener.local_addr().unwrap()),
        PATIENT,
    );
    let call = confirm_of("pk_1", "order_1", "idem-1");
    let labels = r#"{gateway="toss",operation="confirm"}"#;

    // Seen while the call waits for its answer: a branch's own block would run after the call was dropped.
    let accepted = async {
        let accepted = listener.accept().await;
        (accepted, handle.render())
    };
    tokio::select! {
        outcome = toss.confirm(&call) => panic!("nobody answers, and yet: {outcome:?}"),
        (accepted, seen) = accepted => {
            accepted.unwrap();
            assert!(seen.contains(&format!("pg_in_flight{labels} 1\n")), "{seen}");
        }
    }
    drop(listener);
    let _not_sent = toss.confirm(&call).await;

    let seen = handle.render();
    assert!(
        seen.contains(&format!("pg_in_flight{labels} 0\n")),
        "{seen}"
    );
    for outcome in ["abandoned", "not_sent"] {
        let line = format!(
            r#"pg_calls_total{{gateway="toss",operation="confirm",outcome="{outcome}"}} 1"#
        );
        assert!(seen.contains(&line), "{seen}");
    }
    assert!(
        seen.contains(&format!("pg_call_duration_seconds_count{labels} 2\n")),
        "{seen}"
    );
}
