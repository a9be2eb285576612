//! The advertised window of a receiver: the free space of its buffer, the right edge, and when a window update is sent.
//!
//! Does not depend on when data are acknowledged. Read RFC 9293 §3.8.6 first; Linux 6.18 `tcp_select_window`.

use super::autotuning::GrowingWindow;
use super::{Owed, Receiver, Space};
use crate::sim::time::{MILLISECOND, Nanos, SECOND};
use crate::tcp::segment::Segment;

impl Receiver {
    /// Lets the window grow for `segment`, of which `charged` octets count against the buffer.
    #[inline]
    pub(super) fn grow_window(&mut self, segment: &Segment, charged: u64) {
        let held = self.unread() + self.reassembly.octets();
        if let Some(growing) = &mut self.growing
            && growing.on_segment(segment.payload_bytes.into(), held, charged)
        {
            self.policy.note_window_update();
            self.full_window = self.find_full_window();
        }
    }

    /// Lets the buffer grow with what the application reads. A process reads later: see `read_to`.
    #[inline(never)]
    pub(super) fn tune_buffer(&mut self, segment: &Segment, now: Nanos) {
        let position = self.read_position(now) as u64;
        let read = position.min(segment.end());
        let (queued, beyond) = (self.rcv_nxt() - read, self.reassembly.reach(self.rcv_nxt));
        self.clock = now;
        let Some(growing) = &mut self.growing else {
            return;
        };
        if self.params.timestamps {
            let all_read = position >= segment.seq;
            growing.note_echo(segment.ts_ecr, segment.payload_bytes.into(), all_read, now);
        } else {
            growing.note_arrival(segment.end(), self.edge, now);
        }
        if !matches!(self.space, Space::Process { .. }) {
            growing.on_read(read, queued, beyond, now);
        }
        self.full_window = self.find_full_window();
    }

    /// Lets the buffer grow with what comes out of order.
    pub(super) fn tune_buffer_in_gap(&mut self, segment: &Segment, now: Nanos) {
        let beyond = self.reassembly.reach(self.rcv_nxt);
        let all_read = self.unread() == 0;
        self.clock = now;
        if let Some(growing) = &mut self.growing {
            if self.params.timestamps {
                growing.note_echo(segment.ts_ecr, segment.payload_bytes.into(), all_read, now);
            }
            growing.on_gap(beyond);
        }
        self.full_window = self.find_full_window();
    }

    /// What may be promised where all has been read and nothing is out of order; 0 where more than that decides.
    pub(super) fn find_full_window(&self) -> u64 {
        match (&self.growing, self.space) {
            _ if !self.reads_at_once => 0,
            (Some(growing), _) if self.wscale > 0 => self.linux_window(growing, growing.limit()),
            (None, Space::Application { buffer_bytes, .. }) => {
                self.scale_down(buffer_bytes).min(self.max_window())
            }
            _ => 0,
        }
    }

    /// Octets that may be promised beyond `rcv_nxt`.
    #[inline]
    fn free_window(&self) -> u64 {
        match self.space {
            Space::Application { buffer_bytes, .. } | Space::Process { buffer_bytes, .. } => {
                match &self.growing {
                    Some(growing) => {
                        self.linux_window(growing, self.free_octets(growing, self.unread()))
                    }
                    None => buffer_bytes.saturating_sub(self.unread()),
                }
            }
            Space::Granted { window_bytes, .. } => window_bytes,
        }
    }

    /// `octets` in whole units of the scale, up.
    #[inline]
    fn scale_up(&self, octets: u64) -> u64 {
        let unit = 1_u64 << self.wscale;
        (octets + unit - 1) & !(unit - 1)
    }

    /// The same, down.
    #[inline]
    fn scale_down(&self, octets: u64) -> u64 {
        octets >> self.wscale << self.wscale
    }

    /// Linux (`__tcp_select_window`): what came out of order takes room as what is unread does. Where little room is left it
    /// is none; else with a scale what that would cut off is promised too, and without one it is whole segments.
    #[inline]
    fn linux_window(&self, growing: &GrowingWindow, free: u64) -> u64 {
        if self.wscale == 0 || is_crowded(free, growing.limit()) {
            self.small_window(growing, free)
        } else {
            self.scale_up(free.min(growing.threshold()))
        }
    }

    /// Octets of the buffer that hold nothing.
    #[inline]
    fn free_octets(&self, growing: &GrowingWindow, unread: u64) -> u64 {
        growing.free(unread + self.reassembly.octets())
    }

    /// The same where little of the `free` room is left, or there is no scale.
    #[inline(never)]
    fn small_window(&self, growing: &GrowingWindow, mut free: u64) -> u64 {
        let all = growing.limit();
        let mss = u64::from(self.params.smss_bytes).min(all);
        if is_crowded(free, all) {
            free = self.scale_down(free);
            if free < all / 16 || free < mss {
                return 0;
            }
        }
        let free = free.min(growing.threshold());
        if self.wscale > 0 {
            self.scale_up(free)
        } else {
            whole_segments(free, self.edge.saturating_sub(self.last_ack_sent), mss)
        }
    }

    /// Linux (`__tcp_ack_snd_check`): whether the right edge of the window would move with an acknowledgement now, when the
    /// application has read nothing yet of the `arrived` octets.
    pub(super) fn edge_moves(&self, arrived: u64) -> bool {
        self.growing.as_ref().is_none_or(|growing| {
            let free = self.free_octets(growing, self.unread().max(arrived));
            let window = self.linux_window(growing, free);
            window >= self.edge - self.last_ack_sent
        })
    }

    /// Maximum of the window field. Linux (`tcp_select_window`) keeps a promise beyond it and advertises what fits.
    pub(super) fn max_window(&self) -> u64 {
        0xFFFF << self.wscale
    }

    #[inline(always)]
    pub(super) fn move_edge(&mut self) {
        let edge = self.rcv_nxt + self.full_window;
        if edge > self.edge && self.reassembly.is_empty() && self.filled_bytes == 0 {
            self.edge = edge;
        } else {
            self.move_edge_by_space();
        }
    }

    fn move_edge_by_space(&mut self) {
        let promised = self.edge.saturating_sub(self.rcv_nxt);
        let window = if let Some(growing) = &self.growing {
            // Linux: the segment that fills a gap is acknowledged before the application wakes and reads.
            let free = self.free_octets(growing, self.unread().max(self.filled_bytes));
            if is_crowded(free, growing.limit()) {
                self.policy.end_quick();
            }
            let window = self.linux_window(growing, free);
            // Linux (`tcp_select_window`): an advertised right edge does not move back, to the unit.
            self.scale_up(window.max(promised))
        } else {
            self.scale_down(self.free_window().min(self.max_window()))
                .max(promised)
        };
        self.edge = self.edge.max(self.rcv_nxt + window);
    }

    /// A proxy's word on how much it can promise now.
    pub fn grant(&mut self, window_bytes: u64) {
        if let Space::Granted {
            window_bytes: granted,
            ..
        } = &mut self.space
        {
            *granted = window_bytes;
        }
        self.maybe_update_window();
    }

    /// RFC 9293 §3.8.6.2.2: sends a window update when a closed window opens, or when much has become free and
    /// little of what was promised is left.
    pub(super) fn maybe_update_window(&mut self) {
        if self.is_update_due() {
            self.owed = Owed::Acknowledgement;
        }
    }

    /// Whether it would send one now.
    pub(super) fn is_update_due(&self) -> bool {
        let smss = u64::from(self.params.smss_bytes);
        let left = self.edge - self.rcv_nxt;
        let gain = (self.rcv_nxt + self.free_window()).saturating_sub(self.edge);
        let opens = left < smss && left + gain >= smss;
        let worth_it = gain >= 2 * smss && left <= gain;
        self.established && (opens || worth_it)
    }

    /// With a slow reader: when the window that is now too small for a segment will take two.
    #[inline]
    pub(super) fn watch_reopening(&mut self, now: Nanos) {
        let Space::Application {
            octets_per_ns: Some(rate),
            buffer_bytes,
        } = self.space
        else {
            return;
        };
        let wanted = (2 * u64::from(self.params.smss_bytes)).min(buffer_bytes);
        let free = self.free_window();
        if self.edge - self.rcv_nxt >= wanted || self.reopen.is_set() {
            return;
        }
        let wait = wanted.saturating_sub(free) as f64 / rate;
        self.reopen
            .set(now + (wait as Nanos).clamp(MILLISECOND, 3600 * SECOND));
    }
}

/// Linux: less than half of a buffer is free.
fn is_crowded(free: u64, all: u64) -> bool {
    free < all / 2
}

/// Without a scale: the largest window of whole segments in `free` octets, or the one that was `promised` last if that is
/// less than a segment from it.
fn whole_segments(free: u64, promised: u64, mss: u64) -> u64 {
    if promised + mss <= free || promised > free {
        free / mss * mss
    } else {
        promised
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Profile, StackOverrides, StackParams};
    use crate::tcp::segment::Direction;

    const SMSS: u64 = 1000;
    /// What a segment takes of the buffer.
    const MEMORY: u64 = SMSS * 1440 / 1448;
    const BUFFER: u64 = 400_000;
    /// The scale is that of what the buffer may grow to, 32 MiB of memory.
    const UNIT: u64 = 1024;

    fn linux() -> Receiver {
        let overrides = StackOverrides {
            handshake: Some(false),
            smss_bytes: Some(SMSS as u32),
            receive_window_growth: Some(true),
            ..StackOverrides::default()
        };
        let space = Space::Application {
            buffer_bytes: BUFFER,
            octets_per_ns: None,
        };
        let params = StackParams::resolve(Profile::Linux, &overrides);
        Receiver::new(0, &params, space)
    }

    fn segment(number: u64) -> Segment {
        Segment {
            seq: 1 + number * SMSS,
            payload_bytes: SMSS as u16,
            ..Segment::new(0, Direction::Forward)
        }
    }

    /// Segment `number` arrives; the window that is then advertised, from `rcv_nxt` on.
    fn take(receiver: &mut Receiver, number: u64, now: Nanos) -> u64 {
        receiver.receive(&segment(number), now);
        let mut slot = Segment::new(0, Direction::Reverse);
        receiver.acknowledge(now, &mut slot);
        slot.wnd_bytes.into()
    }

    fn grown() -> Receiver {
        let mut receiver = linux();
        for n in 0..100 {
            take(&mut receiver, n, n * MILLISECOND);
        }
        receiver
    }

    #[test]
    fn linux_promises_what_the_scale_would_cut_off() {
        let mut receiver = grown();
        // The buffer less the segment that just came, which the unit does not divide.
        let window = take(&mut receiver, 100, SECOND);
        assert_eq!(
            receiver.growing.as_ref().map(GrowingWindow::threshold),
            Some(BUFFER - MEMORY)
        );
        assert_eq!(window, (BUFFER - MEMORY).next_multiple_of(UNIT));
        assert!((BUFFER - MEMORY) % UNIT != 0 && window % UNIT == 0);
    }

    #[test]
    fn linux_holds_the_edge_while_what_is_held_takes_room_and_no_further() {
        let mut receiver = grown();
        let before = receiver.edge;
        // Segment 100 is missing. Each that comes in a gap takes a thousand octets of room, and the edge stays.
        for n in 101..=150 {
            take(&mut receiver, n, SECOND);
        }
        assert_eq!(receiver.edge, before);
        assert!(!receiver.edge_moves(SMSS));
        // When it comes, it is acknowledged before any of it is read; then all is, and the edge moves on.
        take(&mut receiver, 100, SECOND);
        assert!(
            receiver.edge < before + 2 * UNIT,
            "{} {before}",
            receiver.edge
        );
        take(&mut receiver, 151, SECOND);
        assert!(receiver.edge > before + 50 * SMSS && receiver.edge_moves(0));
    }

    /// A receiver with a buffer of `buffer_bytes`, whose size is given.
    fn small(buffer_bytes: u64) -> Receiver {
        let overrides = StackOverrides {
            handshake: Some(false),
            smss_bytes: Some(SMSS as u32),
            receive_window_growth: Some(true),
            receive_buffer_bytes: Some(buffer_bytes),
            ..StackOverrides::default()
        };
        let space = Space::Application {
            buffer_bytes,
            octets_per_ns: None,
        };
        Receiver::new(0, &StackParams::resolve(Profile::Linux, &overrides), space)
    }

    #[test]
    fn linux_opens_the_window_when_what_filled_it_is_read() {
        let mut receiver = small(60_000);
        let segments = (receiver.edge - 1) / SMSS;
        for n in 1..segments {
            take(&mut receiver, n, SECOND);
        }
        let window = take(&mut receiver, 0, SECOND);
        assert!(
            window < segments * SMSS / 2,
            "nothing is read yet: {window}"
        );
        assert!(!receiver.owes_nothing());
        let mut slot = Segment::new(0, Direction::Reverse);
        receiver.acknowledge(SECOND, &mut slot);
        assert!(
            u64::from(slot.wnd_bytes) >= segments * SMSS,
            "{}",
            slot.wnd_bytes
        );
    }

    #[test]
    fn without_a_scale_linux_promises_whole_segments_and_keeps_to_it_within_one() {
        let mut receiver = small(25_500);
        assert_eq!(receiver.wscale(), 0);
        let windows: Vec<_> = (0..6).map(|n| take(&mut receiver, n, n)).collect();
        // The threshold is 20,000, and two segments more per segment up to 24,500. The first window is kept until it is a
        // segment short.
        assert_eq!(windows, [22_000, 24_000, 24_000, 24_000, 24_000, 24_000]);
        let growing = receiver.growing.clone().expect("it grows");
        let window =
            |unread| receiver.linux_window(&growing, receiver.free_octets(&growing, unread));
        assert_eq!(window(600), 24_000, "24,904");
        assert_eq!(window(1_600), 23_000, "23,909");
        // Less than half is free, but a sixteenth and a segment; then less.
        assert_eq!(window(24_040), 1_000);
        assert_eq!(window(24_041), 0);
    }

    #[test]
    fn linux_keeps_a_promise_that_the_window_field_cannot_say() {
        let mut receiver = small(600_000);
        let max = 0xFFFF << receiver.wscale();
        let advertised: Vec<_> = (0..400)
            .map(|n| take(&mut receiver, n, n * MILLISECOND))
            .collect();
        assert_eq!((advertised[399], max < 600_000), (max, true));
        // Segments 400 and 402 are missing. What is held leaves less room than the field can say.
        let held = (401..=550).filter(|&n| n != 402);
        held.for_each(|n| assert_eq!(take(&mut receiver, n, SECOND), max));
        let edge = receiver.edge;
        assert_eq!(take(&mut receiver, 400, SECOND), max);
        assert_eq!(receiver.edge, edge);
    }

    #[test]
    fn linux_ends_quick_acks_where_less_than_half_of_the_buffer_is_free() {
        let delays = |held: u64| {
            let mut receiver = grown();
            // After a pause ACKs are quick again, up to 16. Segment 101 is missing.
            let now = 10 * SECOND;
            take(&mut receiver, 100, now);
            for n in 102..102 + held {
                receiver.receive(&segment(n), now);
            }
            let mut slot = Segment::new(0, Direction::Reverse);
            receiver.acknowledge(now, &mut slot);
            take(&mut receiver, 101, now);
            while !receiver.owes_nothing() {
                receiver.acknowledge(now, &mut slot);
            }
            receiver.receive(&segment(102 + held), now);
            receiver.owes_nothing()
        };
        assert!(!delays(150));
        assert!(delays(250));
    }

    #[test]
    fn what_the_application_has_not_read_yet_counts_when_the_edge_is_asked_for() {
        let receiver = grown();
        let spare = BUFFER - (receiver.edge - receiver.last_ack_sent);
        // The window is a unit less once as much more of the buffer is taken: 1674 octets take 1664.
        assert_eq!(spare + UNIT, 1664);
        assert!(receiver.edge_moves(1673));
        assert!(!receiver.edge_moves(1674));
    }
}
