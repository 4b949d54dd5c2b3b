//! Days and moments as an operator's calendar has them.

use std::str::FromStr;

use jiff::civil::Date;
use jiff::tz::{self, TimeZone};
use jiff::{Timestamp, ToSpan as _};

use crate::clock::EpochMs;

/// A time zone: Korea unless told otherwise.
#[derive(Debug, Clone)]
pub struct Zone(TimeZone);

impl FromStr for Zone {
    type Err = jiff::Error;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        // Korea has one offset and no daylight saving: it needs no time zone database.
        if name == "Asia/Seoul" || name == "KST" {
            return Ok(Self(tz::offset(9).to_time_zone()));
        }
        TimeZone::get(name).map(Self)
    }
}

impl Zone {
    /// The day that is now.
    ///
    /// # Errors
    /// When the clock is beyond the calendar.
    pub fn day(&self, now: EpochMs) -> Result<Date, jiff::Error> {
        let now = Timestamp::from_millisecond(now.0)?;
        Ok(now.to_zoned_datetime(self.0.clone()).date())
    }

    /// The first moment of a day, and that of the next.
    ///
    /// # Errors
    /// When they are beyond the calendar.
    pub fn bounds(&self, day: Date) -> Result<(EpochMs, EpochMs), jiff::Error> {
        let start = |day: Date| {
            self.0
                .to_timestamp(day.to_datetime(jiff::civil::Time::midnight()))
        };
        let at = |start: Timestamp| EpochMs(start.as_millisecond());
        Ok((at(start(day)?), at(start(day.checked_add(1.day())?)?)))
    }

    /// A moment that an operator names: with its offset, or as this zone's day or clock has it.
    ///
    /// # Errors
    /// When it is none.
    pub fn moment(&self, text: &str) -> Result<EpochMs, jiff::Error> {
        if let Ok(at) = text.parse::<Timestamp>() {
            return Ok(EpochMs(at.as_millisecond()));
        }
        let civil: jiff::civil::DateTime = text.parse()?;
        let at = civil.to_zoned_datetime(self.0.clone())?;
        Ok(EpochMs(at.timestamp().as_millisecond()))
    }

    /// A moment for people.
    #[must_use]
    pub fn text(&self, at: EpochMs) -> String {
        Timestamp::from_millisecond(at.0).map_or_else(
            |_| format!("{} ms", at.0),
            |at| {
                let at = at.to_zoned_datetime(self.0.clone());
                at.strftime("%Y-%m-%d %H:%M:%S%:z").to_string()
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_that_of_its_zone() {
        let korea: Zone = "Asia/Seoul".parse().unwrap();
        let day = "2026-10-02".parse().unwrap();
        let (from, until) = korea.bounds(day).unwrap();
        assert_eq!(until.0 - from.0, 24 * 3_600_000);
        assert_eq!(korea.text(from), "2026-10-02 00:00:00+09:00");
        assert_eq!(korea.moment("2026-10-01T15:00:00Z").unwrap(), from);
        assert_eq!(korea.moment("2026-10-02").unwrap(), from);
        assert_eq!(korea.moment("2026-10-02T00:00:00").unwrap(), from);
        assert_eq!(korea.day(EpochMs(from.0 - 1)).unwrap().day(), 1);
        assert!(korea.moment("yesterday").is_err());
        assert!("Mars/Olympus".parse::<Zone>().is_err());
    }
}
