//! What stampedes come to: requests, peaks and answers of small crowds that can be counted by hand.

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn retry(schedule: Schedule, tries: u32) -> Retry {
    Retry {
        schedule,
        first: ms(500),
        longest: 60 * SECOND,
        tries,
        timeout: 3 * SECOND,
    }
}

fn crowd(clients: usize, asks: &[Kind], retry: Retry) -> Crowd {
    Crowd {
        clients,
        begin: Begin::Together {
            at: Duration::ZERO,
            noise: Duration::ZERO,
        },
        asks: asks.to_vec(),
        retry,
    }
}

fn scene(crowd: Crowd, gateway: Gateway) -> Scene {
    Scene {
        crowds: vec![crowd],
        gateway,
        reset_at: None,
        seed: 1,
    }
}

fn hanging(when: When) -> Gateway {
    Gateway {
        hang: Some(Hang {
            when,
            lasts: 8 * SECOND,
            until: None,
        }),
        works_on: false,
        ..Gateway::healthy(ms(10))
    }
}

#[test]
fn the_same_scene_gives_the_same_run_and_another_seed_another() {
    let confirms = crowd(20, &[Kind::Confirm], retry(Schedule::Full, 3));
    let mut scene = scene(confirms, hanging(When::Before));
    let first = run(&scene);
    assert_eq!(first.arrivals, run(&scene).arrivals);
    scene.seed = 2;
    assert_ne!(first.arrivals, run(&scene).arrivals);
}

#[test]
fn a_crowd_without_jitter_comes_again_as_one_wave_and_is_never_charged_where_calls_hang_before_their_work()
 {
    let confirms = crowd(150, &[Kind::Confirm], retry(Schedule::Exponential, 3));
    let ran = run(&scene(confirms, hanging(When::Before)));
    assert_eq!(ran.arrivals.len(), 450);
    let waves: Vec<_> = [0, 3_500, 7_500].map(ms).to_vec();
    let seen: std::collections::BTreeSet<_> = ran.arrivals.iter().map(|one| one.at).collect();
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), waves);
    assert_eq!(ran.charges_each(), 0.0);
    assert_eq!(ran.given_up, 150);
    assert_eq!(ran.p50_ms(), 10_500.0);
    assert_eq!((ran.peak_threads, ran.peak_connections), (450, 150));
}

#[test]
fn keys_make_repeats_of_what_hangs_after_its_booking_one_charge_and_without_them_each_is_one() {
    for (keys, charges) in [(true, 1.0), (false, 3.0)] {
        let confirms = crowd(10, &[Kind::Confirm], retry(Schedule::Exponential, 3));
        let gateway = Gateway {
            keys,
            ..hanging(When::After)
        };
        assert_eq!(run(&scene(confirms, gateway)).charges_each(), charges);
    }
}

#[test]
fn a_repeat_while_the_first_is_worked_on_is_refused_and_answered_once_it_is_booked() {
    let patient = Retry {
        timeout: ms(100),
        ..retry(Schedule::Exponential, 4)
    };
    let gateway = Gateway::healthy(2 * SECOND);
    let ran = run(&scene(crowd(1, &[Kind::Confirm], patient), gateway));
    // Sent at 0; refused at 0.6 and at 1.6; at 3.6 the first result is there.
    let at: Vec<_> = ran.arrivals.iter().map(|one| one.at).collect();
    assert_eq!(at, [0, 600, 1_600, 3_600].map(ms));
    assert_eq!((ran.charges_each(), ran.given_up), (1.0, 0));
}

#[test]
fn a_reset_reaches_every_open_connection_and_no_other() {
    let resend = Retry {
        schedule: Schedule::Between,
        first: ms(20),
        longest: ms(60),
        tries: 2,
        timeout: 60 * SECOND,
    };
    let mut scene = scene(
        crowd(40, &[Kind::Confirm], resend),
        Gateway::healthy(2 * SECOND),
    );
    scene.crowds[0].begin = Begin::Evenly { over: 4 * SECOND };
    scene.reset_at = Some(ms(2_050));
    let ran = run(&scene);
    // Begun every 100 ms: after 2.05 s the first is answered, 20 are open.
    let again = ran.retries();
    assert_eq!(again.len(), 20);
    assert!(again.iter().all(|at| (ms(2_070)..=ms(2_110)).contains(at)));
}

#[test]
fn workers_serve_in_turn_and_a_hanging_call_keeps_one_only_where_it_holds_it() {
    let once = retry(Schedule::Exponential, 1);
    let gateway = Gateway {
        workers: Some(2),
        ..Gateway::healthy(ms(100))
    };
    let ran = run(&scene(crowd(6, &[Kind::Confirm], once), gateway));
    assert_eq!((ran.longest_queue, ran.longest_wait), (4, ms(200)));
    assert_eq!(ran.p50_ms(), 200.0);
    for (holds, given_up) in [(Holds::Worker, 1), (Holds::Connection, 0)] {
        let gateway = Gateway {
            workers: Some(1),
            holds,
            hang: Some(Hang {
                when: When::Before,
                lasts: 8 * SECOND,
                until: Some(ms(1)),
            }),
            ..Gateway::healthy(ms(100))
        };
        let late = Crowd {
            begin: Begin::Together {
                at: ms(500),
                noise: Duration::ZERO,
            },
            ..crowd(1, &[Kind::Confirm], once)
        };
        let scene = Scene {
            crowds: vec![crowd(1, &[Kind::Connect], once), late],
            ..scene(crowd(0, &[], once), gateway)
        };
        // The one that hangs is given up either way.
        assert_eq!(run(&scene).given_up, 1 + given_up, "{holds:?}");
    }
}

#[test]
fn a_client_asks_the_next_thing_once_it_has_the_last() {
    let asks = [Kind::Connect, Kind::Restore, Kind::Confirm];
    let ran = run(&scene(
        crowd(1, &asks, retry(Schedule::Full, 3)),
        Gateway::healthy(ms(100)),
    ));
    let kinds: Vec<_> = ran.arrivals.iter().map(|one| (one.kind, one.at)).collect();
    let expected = [
        (Kind::Connect, ms(0)),
        (Kind::Restore, ms(10)),
        (Kind::Confirm, ms(20)),
    ];
    assert_eq!(kinds, expected);
    assert_eq!(ran.p50_ms(), 120.0);
}

#[test]
fn losses_before_and_after_the_booking_cost_no_charge_and_one() {
    for (when, charges) in [(When::Before, 0.0), (When::After, 1.0)] {
        let gateway = Gateway {
            loss: Some((1.0, when)),
            ..Gateway::healthy(ms(10))
        };
        let once = retry(Schedule::Full, 1);
        let ran = run(&scene(crowd(5, &[Kind::Confirm], once), gateway));
        assert_eq!((ran.given_up, ran.charges_each()), (5, charges));
    }
}

#[test]
fn pauses_stay_within_what_their_schedule_says_and_pairs_share_a_mean() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let mut drawn = |schedule, made| -> Vec<f64> {
        let retry = retry(schedule, 9);
        let pauses = (0..4_000).map(|_| retry.pause(made, ms(500), &mut rng).unwrap());
        pauses.map(|pause| pause.as_secs_f64()).collect()
    };
    let bounds = [
        (Schedule::Exponential, 1.0, 1.0),
        (Schedule::Halved, 0.5, 0.5),
        (Schedule::Centred, 0.5, 1.5),
        (Schedule::Full, 0.0, 1.0),
        (Schedule::Equal, 0.5, 1.0),
        (Schedule::Decorrelated, 0.5, 1.5),
        (Schedule::Between, 0.5, 60.0),
    ];
    for (schedule, low, high) in bounds {
        let pauses = drawn(schedule, 2);
        assert!(pauses.iter().all(|pause| (low..=high).contains(pause)));
        let mean = pauses.iter().sum::<f64>() / pauses.len() as f64;
        let expected = f64::midpoint(low, high);
        assert!((mean / expected - 1.0).abs() < 0.05, "{schedule:?}: {mean}");
    }
    let spent = retry(Schedule::Full, 2).pause(2, ms(500), &mut rng);
    assert_eq!(spent, None);
}
