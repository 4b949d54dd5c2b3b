//! KakaoPay's error codes as data: what each (status, code) pair of a call proves.
//!
//! The pair counts, never one half of it. The codes from -701 on come with 400; which status those of the platform (-4xx,
//! -5xx, -603) come with is not documented, so both readings are listed: 400, and the status that the code names.

use payment::reach::Decline;

/// What an error answer to an approve proves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ApproveClass {
    /// Not charged, and this payment never will be.
    Declined(Decline),
    /// The call was refused; unless an order look-up shows a charge all the same, it is a decline.
    Refused(Decline),
    /// The same, and an operator must look: our set-up or our bug.
    Fault(Decline),
    /// Refused before it was processed, for want of quota; an operator must look.
    Quota,
    /// Not executed, by our set-up's fault: the payment stays as it was, and is asked about once that is repaired.
    SetUp,
    /// It may have been charged: only an order look-up tells.
    Ask,
}

/// What an error answer to a cancel proves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CancelClass {
    /// It may have been executed, or still will be: ask, and try again under the lock.
    Ask,
    /// Not executed, for want of quota; an operator must look.
    Quota,
    /// Not executed: ask, and try again once an operator has repaired the set-up.
    Repair,
    /// Refused for good, unless a look-up shows another balance than was believed.
    Final,
    /// Refused for good, and it is our own mistake.
    Mistake,
}

/// What an error answer to a look-up or a ready says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AskedClass {
    /// KakaoPay's own trouble, which passes.
    Trouble,
    /// There is no such payment.
    Absent,
    /// The payment's time is over.
    Over,
}

/// HTTP statuses, what each proves together with each of these codes, and the codes.
type Group<Class> = (&'static [u16], Class, &'static [i32]);

use ApproveClass as On;
use Decline as Of;

/// Approve.
pub(super) const APPROVE: &[Group<ApproveClass>] = &[
    // Already paid, failed at the method, in a state that forbids it, or twice at once: none tells whether it was charged.
    (&[400], On::Ask, &[-702, -780, -783, -785]),
    (&[400, 500], On::Ask, &[-500]),
    (&[400, 503], On::Ask, &[-503]),
    // The platform's internal time-out.
    (&[400, 500, 503], On::Ask, &[-603]),
    // Authentication unfinished, or a token that is not this payment's.
    (&[400], On::Refused(Of::AuthenticationFailed), &[-701, -708]),
    (&[400], On::Refused(Of::NotAvailable), &[-705]),
    (&[400], On::Refused(Of::SessionExpired), &[-723]),
    (
        &[400],
        On::Fault(Of::Other),
        &[-703, -704, -706, -707, -721, -722, -724, -725, -726],
    ),
    (&[400], On::Declined(Of::LimitExceeded), &[-797]),
    (&[400, 429], On::Quota, &[-429]),
    (&[400], On::SetUp, &[-400, -730, -731, -732, -733, -798]),
    (&[400, 401], On::SetUp, &[-401]),
    (&[400, 403], On::SetUp, &[-403]),
    (&[400, 404], On::SetUp, &[-404]),
];

/// Cancel.
pub(super) const CANCEL: &[Group<CancelClass>] = &[
    (&[400], CancelClass::Ask, &[-781, -784, -785]),
    (&[400, 500], CancelClass::Ask, &[-500]),
    (&[400, 503], CancelClass::Ask, &[-503]),
    (&[400, 500, 503], CancelClass::Ask, &[-603]),
    (&[400, 429], CancelClass::Quota, &[-429]),
    // More than is left, or than was charged.
    (&[400], CancelClass::Final, &[-710, -711]),
    (
        &[400],
        CancelClass::Repair,
        &[-400, -721, -730, -731, -732, -733, -798],
    ),
    (&[400, 401], CancelClass::Repair, &[-401]),
    (&[400, 403], CancelClass::Repair, &[-403]),
    (&[400, 404], CancelClass::Repair, &[-404]),
    (&[400], CancelClass::Mistake, &[-722, -724, -725, -726]),
];

/// Order look-up and ready. All else is our set-up's fault or our bug.
pub(super) const ASKED: &[Group<AskedClass>] = &[
    (&[400, 500], AskedClass::Trouble, &[-500]),
    (&[400, 503], AskedClass::Trouble, &[-503]),
    (&[400, 500, 503], AskedClass::Trouble, &[-603]),
    (&[400], AskedClass::Absent, &[-721]),
    // Whether a look-up ever says this is not certain.
    (&[400], AskedClass::Over, &[-723]),
];

/// The class of a pair, if it is listed.
pub(super) fn class_of<Class: Copy>(
    table: &[Group<Class>],
    status: u16,
    code: i32,
) -> Option<Class> {
    table
        .iter()
        .find(|(statuses, _, codes)| statuses.contains(&status) && codes.contains(&code))
        .map(|(_, class, _)| *class)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_code_is_listed_twice_in_a_table() {
        fn check<Class>(table: &[Group<Class>], rows: usize, pairs: usize) {
            let mut codes: Vec<_> = table.iter().flat_map(|(_, _, codes)| *codes).collect();
            codes.sort_unstable();
            codes.dedup();
            let listed: usize = table.iter().map(|(_, _, codes)| codes.len()).sum();
            assert_eq!((codes.len(), listed), (rows, rows));
            let all: usize = table
                .iter()
                .map(|(on, _, codes)| on.len() * codes.len())
                .sum();
            assert_eq!(all, pairs);
        }
        // The tests over the wire list each pair once more; one that is added here must be added there.
        check(APPROVE, 31, 39);
        check(CANCEL, 23, 31);
        check(ASKED, 5, 9);
    }

    #[test]
    fn no_server_error_is_ever_a_definite_word() {
        for (statuses, class, codes) in APPROVE {
            let server = statuses.iter().any(|status| *status >= 500);
            assert!(!server || *class == On::Ask, "{codes:?}");
        }
        for (statuses, class, codes) in CANCEL {
            let server = statuses.iter().any(|status| *status >= 500);
            assert!(!server || *class == CancelClass::Ask, "{codes:?}");
        }
    }

    #[test]
    fn a_listed_code_with_another_status_is_not_listed() {
        assert!(class_of(APPROVE, 400, -797).is_some());
        assert!(class_of(APPROVE, 200, -797).is_none());
        assert!(class_of(APPROVE, 500, -797).is_none());
        assert!(class_of(APPROVE, 403, -401).is_none());
    }
}
