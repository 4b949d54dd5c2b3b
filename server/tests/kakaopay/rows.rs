//! Every error answer of KakaoPay that means something, written down a second time and apart from the adapter's own
//! tables, so that a slip in one of them shows. What is not here must be unknown with an alarm.

use payment::reach::Decline::{self, *};

/// What an error answer to an approve must become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Approve {
    /// A decline that needs no look-up.
    Declined(Decline),
    /// A decline once an order look-up shows no charge.
    Refused(Decline),
    RefusedWithAlarm(Decline),
    /// Refused before processing.
    TooMany,
    Ask,
    AskWithAlarm,
}

/// What an error answer to a cancel must become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cancel {
    Unknown,
    UnknownWithAlarm,
    NewKeyWithAlarm,
    Refused,
    RefusedWithAlarm,
}

/// What an error answer to an order look-up must become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    NoWord,
    NoWordWithAlarm,
    NotFound,
    NotFoundWithAlarm,
}

use Approve::{Ask, AskWithAlarm, Declined, Refused, RefusedWithAlarm, TooMany};

#[rustfmt::skip]
pub(crate) const APPROVE: &[(u16, i32, Approve)] = &[
    (400, -400, AskWithAlarm),
    (400, -401, AskWithAlarm), (401, -401, AskWithAlarm),
    (400, -403, AskWithAlarm), (403, -403, AskWithAlarm),
    (400, -404, AskWithAlarm), (404, -404, AskWithAlarm),
    (400, -429, TooMany), (429, -429, TooMany),
    (400, -500, Ask), (500, -500, Ask),
    (400, -503, Ask), (503, -503, Ask),
    (400, -603, Ask), (500, -603, Ask), (503, -603, Ask),
    (400, -701, Refused(AuthenticationFailed)),
    (400, -702, Ask),
    (400, -703, RefusedWithAlarm(Other)),
    (400, -704, RefusedWithAlarm(Other)),
    (400, -705, Refused(NotAvailable)),
    (400, -706, RefusedWithAlarm(Other)),
    (400, -707, RefusedWithAlarm(Other)),
    (400, -708, Refused(AuthenticationFailed)),
    (400, -721, RefusedWithAlarm(Other)),
    (400, -722, RefusedWithAlarm(Other)),
    (400, -723, Refused(SessionExpired)),
    (400, -724, RefusedWithAlarm(Other)),
    (400, -725, RefusedWithAlarm(Other)),
    (400, -726, RefusedWithAlarm(Other)),
    (400, -730, AskWithAlarm),
    (400, -731, AskWithAlarm),
    (400, -732, AskWithAlarm),
    (400, -733, AskWithAlarm),
    (400, -780, Ask),
    (400, -783, Ask),
    (400, -785, Ask),
    (400, -797, Declined(LimitExceeded)),
    (400, -798, AskWithAlarm),
];

#[rustfmt::skip]
pub(crate) const CANCEL: &[(u16, i32, Cancel)] = &[
    (400, -400, Cancel::NewKeyWithAlarm),
    (400, -401, Cancel::NewKeyWithAlarm), (401, -401, Cancel::NewKeyWithAlarm),
    (400, -403, Cancel::NewKeyWithAlarm), (403, -403, Cancel::NewKeyWithAlarm),
    (400, -404, Cancel::NewKeyWithAlarm), (404, -404, Cancel::NewKeyWithAlarm),
    (400, -429, Cancel::UnknownWithAlarm), (429, -429, Cancel::UnknownWithAlarm),
    (400, -500, Cancel::Unknown), (500, -500, Cancel::Unknown),
    (400, -503, Cancel::Unknown), (503, -503, Cancel::Unknown),
    (400, -603, Cancel::Unknown), (500, -603, Cancel::Unknown), (503, -603, Cancel::Unknown),
    (400, -710, Cancel::Refused),
    (400, -711, Cancel::Refused),
    (400, -721, Cancel::NewKeyWithAlarm),
    (400, -722, Cancel::RefusedWithAlarm),
    (400, -724, Cancel::RefusedWithAlarm),
    (400, -725, Cancel::RefusedWithAlarm),
    (400, -726, Cancel::RefusedWithAlarm),
    (400, -730, Cancel::NewKeyWithAlarm),
    (400, -731, Cancel::NewKeyWithAlarm),
    (400, -732, Cancel::NewKeyWithAlarm),
    (400, -733, Cancel::NewKeyWithAlarm),
    (400, -781, Cancel::Unknown),
    (400, -784, Cancel::Unknown),
    (400, -785, Cancel::Unknown),
    (400, -798, Cancel::NewKeyWithAlarm),
];

#[rustfmt::skip]
pub(crate) const ASKED: &[(u16, i32, Asked)] = &[
    (400, -500, Asked::NoWord), (500, -500, Asked::NoWord),
    (400, -503, Asked::NoWord), (503, -503, Asked::NoWord),
    (400, -603, Asked::NoWord), (500, -603, Asked::NoWord), (503, -603, Asked::NoWord),
    (400, -721, Asked::NotFoundWithAlarm),
    (400, -723, Asked::NotFound),
];

/// Every status that an error may come with, and one that none does.
pub(crate) const STATUSES: [u16; 8] = [200, 400, 401, 403, 404, 429, 500, 503];

/// Every code that anybody has seen is in here.
pub(crate) fn codes() -> impl Iterator<Item = i32> {
    [-1, -401_000, 0, 7, -603]
        .into_iter()
        .chain(-520..=-395)
        .chain(-810..=-690)
}

/// What a table says of a pair, or what it becomes when it is not listed.
pub(crate) fn expected<Row: Copy>(
    table: &[(u16, i32, Row)],
    pair: (u16, i32),
    unlisted: Row,
) -> Row {
    let row = table
        .iter()
        .find(|(status, code, _)| (*status, *code) == pair);
    row.map_or(unlisted, |(_, _, row)| *row)
}
