//! The application delay: from the write of an octet to its reading in order.
//!
//! Does not depend on what delays the octets. A write counts as read when its last octet is read, and only if that is
//! before the end of the flow. Writes at one instant count as one.
//!
//! Writes whose times do not depend on the network are generated a second time when they arrive, so that those that wait
//! to be sent take no memory, however many they are.

use super::data_source::WriteSchedule;
use crate::sim::histogram::Histogram;
use crate::sim::ring::Ring;
use crate::sim::time::{NEVER, Nanos};

/// A write that has arrived and that a slow reader has not read yet.
#[derive(Clone, Copy, Debug, Default)]
struct Unread {
    at: Nanos,
    read_at: Nanos,
}

/// Octets written at one instant.
#[derive(Clone, Copy, Debug)]
struct Write {
    /// Offset after its last octet.
    end: u64,
    at: Nanos,
    /// When that octet was or will be read; `NEVER` while that is unknown.
    read_at: Nanos,
}

/// The writes of a schedule that have not arrived.
#[derive(Debug)]
struct ScheduledWrites {
    schedule: WriteSchedule,
    /// End of the writes that were taken from the schedule.
    end: u64,
    /// The latest of them with its time, while some of it has not arrived.
    partial: Option<(u64, Nanos)>,
}

impl ScheduledWrites {
    /// The next write, if all of it is among the octets up to `arrived`: its end and its time.
    fn next_arrived(&mut self, arrived: u64) -> Option<(u64, Nanos)> {
        if self.partial.is_none() {
            let octets = self.schedule.next_bytes();
            // Only what has been sent is generated: the next write may lie far beyond the end of the run.
            if octets == 0 || self.end + octets > arrived {
                return None;
            }
            let (octets, at) = self.schedule.take_instant();
            self.end += octets;
            self.partial = Some((self.end, at));
        }
        self.partial.take_if(|(end, _)| *end <= arrived)
    }
}

/// Writes that have not been read, and the delays of those that have.
#[derive(Debug)]
pub struct WriteDelays {
    /// The latest write, until it is read or another one follows. What is written at the same instant extends it.
    latest: Option<Write>,
    /// Ends and times of those before it, at most one per segment in flight.
    earlier: Ring<(u64, Nanos)>,
    /// In place of both, the writes of a schedule.
    scheduled: Option<Box<ScheduledWrites>>,
    /// Writes that have arrived and will be read later.
    unread: Ring<Unread>,
    written_to: u64,
    delays: Histogram,
}

impl Default for WriteDelays {
    fn default() -> Self {
        Self {
            latest: None,
            earlier: Ring::default(),
            scheduled: None,
            unread: Ring::default(),
            written_to: 1,
            delays: Histogram::default(),
        }
    }
}

impl WriteDelays {
    /// The delays of the writes of `schedule`, from its first write on.
    pub fn of_schedule(schedule: WriteSchedule) -> Self {
        Self {
            scheduled: Some(Box::new(ScheduledWrites {
                schedule,
                end: 1,
                partial: None,
            })),
            // The schedule says what is written when.
            written_to: u64::MAX,
            ..Self::default()
        }
    }

    /// Octets up to `end` are written at `now`, if they were not written before.
    #[inline]
    pub fn note_written(&mut self, end: u64, now: Nanos) {
        if end <= self.written_to {
            return;
        }
        self.written_to = end;
        match &mut self.latest {
            Some(write) if write.at == now => (write.end, write.read_at) = (end, NEVER),
            _ => self.begin(end, now),
        }
    }

    #[inline]
    fn begin(&mut self, end: u64, now: Nanos) {
        let next = Write {
            end,
            at: now,
            read_at: NEVER,
        };
        match self.latest.replace(next) {
            Some(write) if write.read_at == NEVER => self.earlier.push_back((write.end, write.at)),
            Some(write) => self.delays.add(write.read_at - write.at, 1),
            None => {}
        }
    }

    /// Octets up to `arrived` have arrived in order by now; `read_at` returns when the application has read up to an offset.
    #[inline]
    pub fn note_arrived(&mut self, arrived: u64, now: Nanos, read_at: impl Fn(u64) -> Nanos) {
        self.close_latest();
        while let Some((end, at)) = self.next_earlier(arrived) {
            self.note_reading(at, read_at(end), now);
        }
        if let Some(write) = self.latest.take_if(|write| write.end <= arrived) {
            self.note_reading(write.at, read_at(write.end), now);
        }
    }

    #[inline]
    fn note_reading(&mut self, at: Nanos, read_at: Nanos, now: Nanos) {
        if read_at <= now {
            self.delays.add(read_at - at, 1);
        } else {
            self.add_unread(Unread { at, read_at }, now);
        }
    }

    #[inline(never)]
    fn add_unread(&mut self, write: Unread, now: Nanos) {
        self.take_read(now);
        self.unread.push_back(write);
    }

    /// Counts the writes that a slow reader has read by `now`.
    fn take_read(&mut self, now: Nanos) {
        while let Some(&Unread { at, read_at }) = self.unread.front().filter(|w| w.read_at <= now) {
            self.delays.add(read_at - at, 1);
            self.unread.pop_front();
        }
    }

    /// Octets up to `arrived` will arrive in order at `read_at` and will be read at once. More may be written before that.
    #[inline]
    pub fn note_arrives(&mut self, arrived: u64, read_at: Nanos) {
        while let Some((_, at)) = self.next_earlier(arrived) {
            self.delays.add(read_at - at, 1);
        }
        if let Some(write) = &mut self.latest
            && write.end <= arrived
        {
            write.read_at = write.read_at.min(read_at);
        }
    }

    #[inline]
    fn next_earlier(&mut self, arrived: u64) -> Option<(u64, Nanos)> {
        let Some((end, _)) = self.earlier.front() else {
            return self.scheduled.as_mut()?.next_arrived(arrived);
        };
        if *end <= arrived {
            self.earlier.pop_front()
        } else {
            None
        }
    }

    /// The flow ends at `end`: what is read later does not count.
    pub fn settle(&mut self, end: Nanos) {
        self.close_latest();
        self.take_read(end);
    }

    /// Nothing extends a write whose reading is known.
    #[inline]
    fn close_latest(&mut self) {
        if let Some(write) = self.latest.take_if(|write| write.read_at != NEVER) {
            self.delays.add(write.read_at - write.at, 1);
        }
    }

    /// The delays so far.
    pub fn histogram(&self) -> &Histogram {
        &self.delays
    }
}

#[cfg(test)]
mod tests {
    use hindflight_kernels::{Purpose, StreamKey, StreamRng};

    use super::*;
    use crate::app::data_source::DataSource;
    use crate::config::ApplicationConfig;

    /// Count and maximum of the delays at the end.
    fn settled(writes: &mut WriteDelays) -> (u64, Option<Nanos>) {
        writes.settle(1000);
        so_far(writes)
    }

    fn so_far(writes: &WriteDelays) -> (u64, Option<Nanos>) {
        (writes.histogram().count(), writes.histogram().max())
    }

    #[test]
    fn writes_at_one_instant_are_read_with_their_last_octet() {
        let mut writes = WriteDelays::default();
        for (end, now) in [(11, 5), (21, 5), (21, 6), (31, 7)] {
            writes.note_written(end, now);
        }
        writes.note_arrived(20, 50, |_| 50);
        assert_eq!(settled(&mut writes), (0, None));
        writes.note_arrived(31, 50, |end| 50 + end);
        assert_eq!(settled(&mut writes), (2, Some(50 + 31 - 7)));
    }

    #[test]
    fn octets_extend_a_write_of_known_arrival_only_at_the_instant_of_the_write() {
        let mut writes = WriteDelays::default();
        writes.note_written(11, 5);
        writes.note_arrives(11, 100);
        writes.note_written(21, 5);
        writes.note_arrives(21, 107);
        // A second arrival of the same octets changes nothing.
        writes.note_arrives(21, 115);
        writes.note_written(31, 6);
        assert_eq!(writes.histogram().count(), 1);
        assert_eq!(settled(&mut writes), (1, Some(102)));
        writes.note_arrives(31, 300);
        assert_eq!(settled(&mut writes), (2, Some(294)));
    }

    #[test]
    fn octets_do_not_extend_a_write_that_has_been_read() {
        let mut writes = WriteDelays::default();
        writes.note_written(11, 5);
        writes.note_arrived(11, 5, |_| 5);
        writes.note_written(21, 5);
        writes.note_arrived(21, 9, |_| 9);
        assert_eq!(settled(&mut writes), (2, Some(4)));
    }

    #[test]
    fn writes_that_a_slow_reader_has_not_read_by_the_end_do_not_count() {
        let mut writes = WriteDelays::default();
        for (end, now) in [(11, 5), (21, 6), (31, 7)] {
            writes.note_written(end, now);
        }
        // An octet each 10: read at 160, 260 and 360.
        writes.note_arrived(21, 50, |end| 50 + 10 * end);
        assert_eq!(writes.histogram().count(), 0);
        writes.note_arrived(31, 200, |end| 50 + 10 * end);
        assert_eq!(
            writes.histogram().count(),
            1,
            "the first has been read by now"
        );
        writes.settle(260);
        assert_eq!(so_far(&writes), (2, Some(254)));
        writes.settle(359);
        assert_eq!(so_far(&writes), (2, Some(254)));
        writes.settle(360);
        assert_eq!(so_far(&writes), (3, Some(353)));
    }

    /// The schedule of `config`, and its writes one by one: end and time.
    fn scheduled(config: &str) -> (WriteDelays, Vec<(u64, Nanos)>) {
        let config: ApplicationConfig = serde_json::from_str(config).expect("well-formed");
        let key = StreamKey {
            seed: 3,
            owner: 0,
            direction: 0,
            purpose: Purpose::Application,
        };
        let mut source = DataSource::new(&config, 1000, StreamRng::new(key));
        let mut now = source.begin(40);
        let delays = WriteDelays::of_schedule(source.schedule().expect("of the clock"));
        let (mut end, mut writes) = (1, Vec::new());
        while now < 1_000_000 {
            let (octets, next) = source.take_due(now);
            if octets > 0 {
                end += octets;
                writes.push((end, now));
            }
            now = next;
        }
        (delays, writes)
    }

    #[test]
    fn a_schedule_gives_the_delays_of_its_writes_noted_one_by_one() {
        for config in [
            r#"{"kind": "on_off", "rate_bps": 1e10, "on_ns": 9000, "off_ns": 3000, "spread": "exponential"}"#,
            r#"{"kind": "on_off", "rate_bps": 9e12, "on_ns": 70, "off_ns": 3000, "write_bytes": 500}"#,
            r#"{"kind": "stream", "rate_bps": 1e9, "write_every_ns": 1000}"#,
            r#"{"kind": "writes", "at_ns": [0, 500, 500, 9000], "bytes": [100, 200, 300, 5000]}"#,
        ] {
            let (mut by_schedule, writes) = scheduled(config);
            let mut by_note = WriteDelays::default();
            for &(end, at) in &writes {
                by_note.note_written(end, at);
            }
            let all = writes.last().map_or(0, |(end, _)| *end);
            for share in 1..=50 {
                let (arrived, now) = (all * share / 50, 1_000_000 + 10 * share);
                // Some of it is read later.
                let read_at = |end: u64| now + end % 7;
                by_schedule.note_arrived(arrived, now, read_at);
                by_note.note_arrived(arrived, now, read_at);
                assert_eq!(so_far(&by_schedule), so_far(&by_note), "{config} {share}");
            }
            assert_eq!(settled(&mut by_schedule), settled(&mut by_note), "{config}");
        }
    }
}
