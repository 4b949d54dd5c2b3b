//! What a start is refused for, and what ships.

use super::*;

fn development() -> Settings {
    Settings {
        env: Some(Environment::Development),
        ..Settings::default()
    }
}

fn production() -> Settings {
    Settings {
        public_url: Some("https://shop.example".to_owned()),
        secret_key: Some(Secret::new("0123456789abcdef0123456789abcdef")),
        toss_client_key: Some("live_ck_x".to_owned()),
        toss_secret_key: Some(Secret::new("live_sk_x")),
        toss_window_url: Some("https://shop.example/toss".to_owned()),
        ..Settings::default()
    }
}

#[test]
fn production_refuses_the_fake_gateway_and_wants_its_secrets() {
    assert!(Config::check(production()).is_ok());
    let fake = Settings {
        fake_pg: Some(Switch::On),
        ..production()
    };
    assert!(matches!(
        Config::check(fake),
        Err(ConfigError::FakeInProduction)
    ));
    let missing = [
        Settings {
            public_url: None,
            ..production()
        },
        Settings {
            secret_key: None,
            ..production()
        },
        Settings {
            toss_secret_key: None,
            ..production()
        },
        Settings {
            toss_client_key: None,
            ..production()
        },
    ];
    for settings in missing {
        assert!(matches!(
            Config::check(settings),
            Err(ConfigError::Missing(_))
        ));
    }
    let mixed = Settings {
        toss_client_key: Some("test_ck_x".to_owned()),
        ..production()
    };
    assert!(matches!(Config::check(mixed), Err(ConfigError::Bad { .. })));
}

#[test]
fn this_machine_itself_needs_no_tls() {
    for url in [
        "http://127.0.0.1:3000",
        "http://localhost",
        "https://shop.example:8443/",
    ] {
        let settings = Settings {
            public_url: Some(url.to_owned()),
            ..production()
        };
        assert!(Config::check(settings).is_ok(), "{url}");
    }
    for url in [
        "http://localhost.evil.example",
        "http://127.0.0.1:3000/a",
        "http://a@localhost",
    ] {
        let settings = Settings {
            public_url: Some(url.to_owned()),
            ..production()
        };
        assert!(Config::check(settings).is_err(), "{url}");
    }
}

#[test]
fn an_address_that_no_shopper_could_use_is_refused_and_a_password_never_repeated() {
    for url in [
        "http://shop.example",
        "shop.example",
        "https://",
        "https://shop.example/a",
    ] {
        let settings = Settings {
            public_url: Some(url.to_owned()),
            ..production()
        };
        assert!(
            matches!(Config::check(settings), Err(ConfigError::Bad { .. })),
            "{url}"
        );
    }
    let with = |url| Settings {
        database_url: Some(DatabaseUrl::new(url)),
        ..development()
    };
    let unknown = with("mysql://jari:hunter2@db/jari");
    assert!(!format!("{unknown:?}").contains("hunter2"));
    let told = Config::check(unknown).unwrap_err().to_string();
    assert!(!told.contains("hunter2"), "{told}");
    let config = Config::check(with("postgres://jari:hunter2@db/jari")).unwrap();
    assert!(!format!("{config:?}").contains("hunter2"));
    assert_eq!(config.database_url.to_string(), "postgres://***@db/jari");
}

#[test]
fn a_nodes_lease_outlasts_the_calls_that_the_gateway_still_works_on() {
    let lease = |node_lease_ms| {
        let settings = Settings {
            node_lease_ms,
            pg_timeout_ms: Some(2_000),
            ..development()
        };
        Config::check(settings).map(|config| config.times.node_lease)
    };
    assert_eq!(lease(None).unwrap(), Times::DEFAULT.node_lease);
    assert_eq!(lease(Some(7_000)).unwrap(), Millis::new(7_000));
    let told = lease(Some(6_999)).unwrap_err().to_string();
    assert!(
        told.contains("6999 ms") && told.contains("2000 ms"),
        "{told}"
    );
}

#[test]
fn a_contradiction_of_times_is_refused_with_both_values() {
    let settings = Settings {
        pg_timeout_ms: Some(70_000),
        ..development()
    };
    let told = Config::check(settings).unwrap_err().to_string();
    assert!(
        told.contains("70000 ms") && told.contains("65000 ms"),
        "{told}"
    );
    let reserve = Settings {
        pg_cap: Some("4".to_owned()),
        pg_reserve: Some(4),
        ..development()
    };
    assert!(matches!(
        Config::check(reserve),
        Err(ConfigError::Times(TimesError::ReserveNotBelowCap { .. }))
    ));
}

#[test]
fn the_shipped_defaults_are_the_contracts() {
    let config = Config::check(development()).unwrap();
    assert_eq!(config.times, Times::DEFAULT);
    assert_eq!(config.deadline_check, Switch::On);
    assert_eq!(config.resend, Policy::Budget);
    assert_eq!(config.resend_per_mille, None);
    assert_eq!(config.circuit, CircuitMode::On);
    assert_eq!(config.lanes, Switch::On);
    assert_eq!(config.rate_limits, Switch::Off);
    assert_eq!(config.lab_workers, None);
    assert_eq!(config.late_success, LateSuccess::Cancel);
    assert_eq!(config.mail_dir, None);
    let real = Config::check(production()).unwrap();
    assert_eq!(
        (real.resend, real.circuit),
        (Policy::Budget, CircuitMode::On)
    );
    assert_eq!((real.lanes, real.rate_limits), (Switch::On, Switch::On));
    assert_eq!(
        (real.late_success, real.mail_dir),
        (LateSuccess::Cancel, None)
    );
    assert_eq!(config.gateways.len(), 1);
    assert_eq!(config.gateways[0].name.as_str(), "toss");
    assert_eq!(config.fakepg_url.as_deref(), Some("http://127.0.0.1:3900"));
    assert_eq!(config.addr.to_string(), "127.0.0.1:3000");
}

#[test]
fn secrets_never_print() {
    let printed = format!("{:?}", Config::check(production()).unwrap());
    assert!(
        !printed.contains("live_sk_x") && !printed.contains("0123456789abcdef"),
        "{printed}"
    );
}

#[test]
fn switches_of_the_lab_are_refused_where_they_make_no_sense() {
    let workers = |env, n| Settings {
        lab_workers: Some(n),
        ..env
    };
    assert!(Config::check(workers(production(), 100)).is_err());
    assert!(Config::check(workers(development(), 0)).is_err());
    assert_eq!(
        Config::check(workers(development(), 100))
            .unwrap()
            .lab_workers,
        Some(100)
    );
    for (text, per_mille) in [
        ("off", Some(None)),
        ("0.1", Some(Some(100))),
        ("1.5", None),
        ("x", None),
    ] {
        let settings = Settings {
            resend_ratio: Some(text.to_owned()),
            ..development()
        };
        let config = Config::check(settings).ok();
        assert_eq!(
            config.map(|config| config.resend_per_mille),
            per_mille,
            "{text}"
        );
    }
}

#[test]
fn a_late_success_revives_and_mails_are_written_only_where_that_is_asked_for() {
    let asked = Settings {
        late_success: Some(LatePolicy::Revive),
        mail_dir: Some("mail".into()),
        ..production()
    };
    let config = Config::check(asked).unwrap();
    assert_eq!(config.late_success, LateSuccess::Revive);
    assert_eq!(config.mail_dir, Some("mail".into()));
    let off = Settings {
        mail_dir: Some("off".into()),
        ..production()
    };
    assert_eq!(Config::check(off).unwrap().mail_dir, None);
}
