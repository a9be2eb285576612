//! What a process reads from the socket of a receiver, and the window updates that its reads cause.
//!
//! Does not depend on what the process does with it. Linux 6.18: `tcp_rcv_space_adjust`, `tcp_cleanup_rbuf`.

use super::{Owed, Receiver, Space};
use crate::sim::time::Nanos;
use crate::tcp::segment::Segment;

impl Receiver {
    /// A process has read up to octet `end`, in steps of at most `step_bytes`.
    ///
    /// Linux acknowledges what has come before the process is woken, and looks after each step whether a window update is due:
    /// each promises no more than has been read by then.
    pub fn read_to(&mut self, end: u64, step_bytes: u64) {
        let Space::Process { mut read_to, .. } = self.space else {
            return;
        };
        if read_to < end && self.owed == Owed::Acknowledgement {
            self.promise();
        }
        while read_to < end {
            read_to = end.min(read_to + step_bytes);
            self.note_read(read_to);
        }
    }

    /// Linux asks after each step how much has been read in a round trip. It reads the clock when a segment comes or a delayed
    /// ACK leaves, not when the process reads.
    fn note_read(&mut self, read: u64) {
        if let Space::Process { read_to, .. } = &mut self.space {
            *read_to = read;
        }
        let (arrived, beyond) = (self.rcv_nxt(), self.reassembly.reach(self.rcv_nxt));
        if let Some(growing) = &mut self.growing {
            growing.on_read(read, arrived - read, beyond, self.clock);
        }
        let unacknowledged = self.rcv_nxt - self.last_ack_sent;
        let due = self.policy.is_due_on_read(unacknowledged, arrived - read);
        if (due || self.is_update_due()) && matches!(self.owed, Owed::Nothing | Owed::Updates) {
            self.promise();
        }
    }

    /// An acknowledgement leaves now, though others of this instant may come first: with the window of now.
    fn promise(&mut self) {
        if self.owed != Owed::Updates {
            self.updates.clear();
        }
        self.policy.note_sent();
        self.move_edge();
        self.last_ack_sent = self.rcv_nxt;
        self.updates.push_back(self.edge);
        self.owed = Owed::Updates;
    }

    /// Writes the first window update that is owed into a slot.
    pub(super) fn write_update(&mut self, now: Nanos, slot: &mut Segment) {
        self.counters.acks_out += 1;
        self.write_acknowledgement(now, slot);
        let edge = self.updates.pop_front().unwrap_or(self.edge);
        slot.wnd_bytes = slot.wnd_bytes.min((edge - self.rcv_nxt) as u32);
        if self.updates.is_empty() {
            self.owed = Owed::Nothing;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Profile, StackOverrides, StackParams};
    use crate::sim::time::{MILLISECOND, SECOND};
    use crate::tcp::receiver::autotuning::GrowingWindow;
    use crate::tcp::segment::{Direction, flags};

    const SMSS: u64 = 1000;

    /// A receiver with a buffer of `buffer_bytes`, which a process reads.
    fn read_by_a_process(buffer_bytes: u64, max_bytes: Option<u64>) -> Receiver {
        let overrides = StackOverrides {
            handshake: Some(false),
            smss_bytes: Some(SMSS as u32),
            receive_window_growth: Some(true),
            receive_buffer_bytes: Some(buffer_bytes),
            receive_buffer_max_bytes: max_bytes,
            ..StackOverrides::default()
        };
        let space = Space::Process {
            buffer_bytes,
            read_to: 1,
        };
        Receiver::new(0, &StackParams::resolve(Profile::Linux, &overrides), space)
    }

    fn segment(number: u64) -> Segment {
        Segment {
            seq: 1 + number * SMSS,
            payload_bytes: SMSS as u16,
            ..Segment::new(0, Direction::Forward)
        }
    }

    /// Windows of the acknowledgements that are owed.
    fn windows(receiver: &mut Receiver) -> Vec<u32> {
        let mut slot = Segment::new(0, Direction::Reverse);
        std::iter::from_fn(|| receiver.transmit(0, &mut slot).then_some(slot.wnd_bytes)).collect()
    }

    /// Receives so many segments, a millisecond apart, and sends what they are owed.
    fn receive(receiver: &mut Receiver, count: u64) {
        for n in 0..count {
            receiver.receive(&segment(n), n * MILLISECOND);
            windows(receiver);
        }
    }

    #[test]
    fn each_step_that_doubles_the_window_is_reported_with_what_was_read_by_then() {
        let mut receiver = read_by_a_process(40_000, None);
        receive(&mut receiver, 40);
        assert_eq!(receiver.edge - receiver.rcv_nxt, 0, "it is full");
        // 16 of 40 segments, 32 and all: the last step does not double it.
        receiver.read_to(40 * SMSS + 1, 16 * SMSS);
        assert_eq!(windows(&mut receiver), [16_000, 32_000]);
        assert!(receiver.owes_nothing());
        // What comes then is acknowledged before it is read.
        receiver.receive(&segment(40), SECOND);
        receiver.read_to(41 * SMSS + 1, 16 * SMSS);
        assert_eq!(windows(&mut receiver), [39_000]);
    }

    #[test]
    fn what_is_unread_takes_the_memory_of_its_segments() {
        let mut receiver = read_by_a_process(400_000, None);
        receive(&mut receiver, 100);
        receiver.move_edge();
        // 100 segments at 1440 of 1448, in units of 8 octets.
        assert_eq!(receiver.edge - receiver.rcv_nxt, 300_560);
    }

    #[test]
    fn what_was_pushed_is_acknowledged_once_all_has_been_read() {
        let mut receiver = read_by_a_process(400_000, None);
        for n in 0..200 {
            receiver.receive(&segment(n), n);
            receiver.read_to((n + 1) * SMSS + 1, 16 * SMSS);
            windows(&mut receiver);
        }
        let mut acks = |n: u64, pushed: bool, read: u64| {
            let mut data = segment(n);
            data.flags |= if pushed { flags::PSH } else { 0 };
            receiver.receive(&data, 200);
            let before = windows(&mut receiver).len();
            receiver.read_to(read * SMSS + 1, 16 * SMSS);
            (before, windows(&mut receiver).len())
        };
        assert_eq!(acks(200, false, 201), (0, 0), "one waits for a second");
        assert_eq!(acks(201, false, 202), (1, 0), "two");
        assert_eq!(acks(202, true, 203), (0, 1), "pushed and read");
        assert_eq!(acks(203, true, 203), (0, 0), "pushed and not read");
        assert_eq!(acks(204, false, 205), (0, 1), "once they are read");
    }

    #[test]
    fn linux_measures_what_a_process_reads_by_the_clock_of_the_segments_and_a_step_at_a_time() {
        let mut receiver = read_by_a_process(50_000, Some(1_000_000));
        let arrive = |receiver: &mut Receiver, n: u64, at_ms: u64| {
            let mut data = segment(n);
            data.ts_ecr = at_ms as u32 - 99;
            receiver.receive(&data, at_ms * MILLISECOND);
        };
        let limit = |receiver: &Receiver| receiver.growing.as_ref().map(GrowingWindow::limit);
        // 40 segments wait. Of the first step of 16 count none, with 24 behind it; for the others no time has passed.
        (0..40).for_each(|n| arrive(&mut receiver, n, 100));
        receiver.read_to(40 * SMSS + 1, 16 * SMSS);
        assert_eq!(limit(&receiver), Some(50_000));
        receiver.acknowledge(0, &mut Segment::new(0, Direction::Reverse));
        // The next one comes later than a round trip of 99 ms: 25 have been read since, where 10 were assumed.
        arrive(&mut receiver, 40, 250);
        receiver.read_to(41 * SMSS + 1, 16 * SMSS);
        assert_eq!(
            limit(&receiver),
            Some(2 * 25_000 + 2 * 2 * 25_000 * 15 / 10)
        );
    }
}
