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

#[test]
fn bounds_ship_with_sense_and_refuse_what_would_stop_what_they_bound() {
    let bounds = Config::check(production()).unwrap().bounds;
    assert_eq!((bounds.inquiries, bounds.strangers), (8, 20_000));
    assert_eq!(bounds.unknown, Millis::from_secs(900));
    assert_eq!(bounds.webhooks_kept, Millis::from_secs(14 * 86_400));
    let refused = [
        Settings {
            pg_inquiries: Some(0),
            ..production()
        },
        Settings {
            webhook_keep_days: Some(4),
            ..production()
        },
        Settings {
            webhook_rate: Some(0),
            ..production()
        },
    ];
    for settings in refused {
        assert!(matches!(
            Config::check(settings),
            Err(ConfigError::Bad { .. })
        ));
    }
}

#[test]
fn an_operators_token_is_long_given_once_and_never_printed() {
    let token = "operator-0123456789-0123456789-0123";
    let with = |token: &str| Settings {
        operator_token: Some(Secret::new(token)),
        ..production()
    };
    let config = Config::check(with(token)).unwrap();
    assert!(!format!("{config:?}").contains(token));
    assert!(config.operator_token.is_some_and(|kept| kept.is(token)));
    assert!(Config::check(with("short")).is_err());
    assert!(Config::check(with(&"가".repeat(32))).is_err());
    let twice = Settings {
        operator_token_file: Some("somewhere".into()),
        ..with(token)
    };
    assert!(Config::check(twice).is_err());
    let missing = Settings {
        operator_token_file: Some("/nowhere/at/all".into()),
        ..production()
    };
    assert!(Config::check(missing).is_err());
    let shipped = Config::check(production()).unwrap();
    assert!(shipped.operator_token.is_none());
    assert_eq!(shipped.cancel_cutoff, Millis::from_secs(86_400));
}

fn names(names: &[&str]) -> Option<Vec<String>> {
    Some(names.iter().map(|name| (*name).to_owned()).collect())
}

#[test]
fn each_gateway_has_a_contract_of_its_own_and_they_share_what_is_the_nodes() {
    let settings = Settings {
        gateways: names(&["kakaopay", "toss"]),
        pg_timeout_ms: Some(50_000),
        kakaopay_pg_cap: Some("7".to_owned()),
        database_wait_ms: Some(1_500),
        ..development()
    };
    let config = Config::check(settings).unwrap();
    let times: Vec<Times> = config.gateways.iter().map(|known| known.times).collect();
    assert_eq!(times[0].pg_timeout, KAKAOPAY.pg_timeout);
    assert_eq!(times[0].page, KAKAOPAY.page);
    assert_eq!((times[0].cap, times[0].reserve), (Some(7), 1));
    assert_eq!(times[1].pg_timeout, Millis::new(50_000));
    assert_eq!((times[1].cap, times[1].reserve), (Some(40), 4));
    for of_one in &times {
        assert_eq!(of_one.database_wait, Millis::new(1_500));
        assert_eq!(of_one.node_lease, Millis::from_secs(65));
    }
    assert_eq!(config.caps(), Some(47));
    assert_eq!(config.longest_timeout(), Millis::new(50_000));
    assert_eq!(config.drain, Millis::new(55_000));
    assert_eq!(config.times_of(&config.gateways[0].name), times[0]);
    let boundless = Settings {
        gateways: names(&["toss", "kakaopay"]),
        kakaopay_pg_cap: Some("off".to_owned()),
        ..development()
    };
    assert_eq!(Config::check(boundless).unwrap().caps(), None);
    let slow = Settings {
        gateways: names(&["toss", "kakaopay"]),
        kakaopay_pg_timeout_ms: Some(90_000),
        kakaopay_poll_count: Some(50),
        ..development()
    };
    let config = Config::check(slow).unwrap();
    let leases = config.gateways.iter().map(|known| known.times.node_lease);
    assert!(
        leases
            .into_iter()
            .all(|lease| lease == Millis::from_secs(95))
    );
}

#[test]
fn a_contradiction_of_one_gateways_times_names_it() {
    let settings = Settings {
        gateways: names(&["toss", "kakaopay"]),
        kakaopay_pg_timeout_ms: Some(31_001),
        ..development()
    };
    let told = Config::check(settings).unwrap_err().to_string();
    for part in ["kakaopay", "31001 ms", "36000 ms"] {
        assert!(told.contains(part), "{told}");
    }
    // Of a gateway that is not in use nothing can be wrong.
    let unused = Settings {
        kakaopay_pg_timeout_ms: Some(31_001),
        ..development()
    };
    assert!(Config::check(unused).is_ok());
}

#[test]
fn gateways_are_known_named_once_and_all_real_or_all_tests() {
    for wrong in [&["paypal"][..], &[], &["toss", "toss"]] {
        let settings = Settings {
            gateways: names(wrong),
            ..development()
        };
        assert!(Config::check(settings).is_err(), "{wrong:?}");
    }
    let with = |cid: Option<&str>, key: Option<&str>| Settings {
        gateways: names(&["toss", "kakaopay"]),
        kakaopay_cid: cid.map(str::to_owned),
        kakaopay_secret_key: key.map(Secret::new),
        ..production()
    };
    let config = Config::check(with(Some("C123456789"), Some("PRD_hush"))).unwrap();
    assert!(!format!("{config:?}").contains("PRD_hush"));
    for missing in [with(None, Some("PRD_x")), with(Some("C123456789"), None)] {
        assert!(matches!(
            Config::check(missing),
            Err(ConfigError::Missing(_))
        ));
    }
    for mixed in [
        with(Some("C123456789"), Some("DEV_x")),
        with(Some("TC0ONETIME"), Some("PRD_x")),
        // All of one gateway's are of the test environment, all of the other's are real.
        with(Some("TC0ONETIME"), Some("DEV_x")),
    ] {
        assert!(matches!(Config::check(mixed), Err(ConfigError::Bad { .. })));
    }
    let file = Settings {
        kakaopay_secret_key_file: Some("/nowhere/at/all".into()),
        ..with(Some("C123456789"), None)
    };
    assert!(matches!(Config::check(file), Err(ConfigError::Bad { .. })));
}

#[test]
fn stripes_keys_are_of_one_kind_and_production_takes_live_ones_only() {
    let with = |key: Option<&str>, hook: Option<&str>| Settings {
        gateways: names(&["toss", "stripe"]),
        stripe_secret_key: key.map(Secret::new),
        stripe_webhook_secret: hook.map(Secret::new),
        ..production()
    };
    for key in ["sk_live_hush", "rk_live_hush"] {
        let config = Config::check(with(Some(key), Some("whsec_hush"))).unwrap();
        assert!(!format!("{config:?}").contains("hush"));
        let times = config.gateways[1].times;
        assert_eq!(times.authentication_window, STRIPE.authentication_window);
    }
    for missing in [with(None, Some("whsec_x")), with(Some("sk_live_x"), None)] {
        let refused = Config::check(missing);
        assert!(matches!(refused, Err(ConfigError::Missing(_))));
    }
    for (key, hook) in [
        ("sk_test_hush", "whsec_x"),
        ("rk_test_hush", "whsec_x"),
        ("pk_live_hush", "whsec_x"),
        ("hush", "whsec_x"),
        ("sk_live_x", "hush"),
    ] {
        let refused = Config::check(with(Some(key), Some(hook))).unwrap_err();
        assert!(matches!(refused, ConfigError::Bad { .. }), "{refused}");
        assert!(!refused.to_string().contains("hush"));
    }
}
