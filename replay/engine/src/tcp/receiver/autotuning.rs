//! Receive window autotuning as in Linux 6.18: the window opens by two segments for each full one that arrives, up to the
//! size of the buffer; with autotuning the buffer grows with what the application reads per round trip.
//!
//! Does not depend on acknowledgements. Sizes are octets of window: the share of a segment in what Linux accounts as its
//! memory, and half of it before the first segment.

use crate::sim::time::{MILLISECOND, Nanos, timestamp};

/// Linux (`TCP_DEFAULT_SCALING_RATIO`): 256ths of its memory that are a buffer's window before it knows the segments'
/// overhead.
const FIRST_SHARE: u64 = 128;
/// Linux (`tcp_grow_window`): segments smaller than this do not make it grow.
const MIN_GROWING_BYTES: u64 = 128;
/// Segments by which a full one makes it grow.
const GROWTH_SEGMENTS: u64 = 2;
/// Segments that the first measure of a round trip assumes to have been read.
const FIRST_ROUND_SEGMENTS: u64 = 10;

/// Linux (`truesize`): memory of a full Ethernet frame.
const SEGMENT_MEMORY_BYTES: u64 = 2304;

/// Linux (`tcp_measure_rcv_mss`): the same once it knows.
///
/// Deviation: shorter segments count as those of a frame with timestamps do, longer ones as those of one without.
fn share(smss_bytes: u64) -> u64 {
    256 * segment_of_share(smss_bytes) / SEGMENT_MEMORY_BYTES
}

fn segment_of_share(smss_bytes: u64) -> u64 {
    smss_bytes.clamp(1448, 1460)
}

/// The growing window of one receiver.
#[derive(Clone, Debug)]
pub struct GrowingWindow {
    smss_bytes: u64,
    /// What the buffer holds, what of that may be promised (Linux: `window_clamp`), and up to where autotuning may raise
    /// both.
    pub(super) buffer: u64,
    limit: u64,
    max: Option<u64>,
    /// What is promised at most by now.
    threshold: u64,
    rtt: Option<Nanos>,
    last_echo: u32,
    /// Without timestamps: when the measure under way began, and the right edge of the window at that time.
    window_under_way: Option<(Nanos, u64)>,
    round: Round,
}

/// The measure of how much the application reads per round trip.
#[derive(Clone, Copy, Debug)]
struct Round {
    start: Nanos,
    /// Octet that had been read when it began.
    read: u64,
    /// Octets read in the best round so far.
    best: u64,
}

impl GrowingWindow {
    /// A window over a buffer that holds `limit` octets and grows to `max`, if it does.
    pub fn new(limit: u64, max: Option<u64>, smss_bytes: u32) -> Self {
        let smss_bytes = u64::from(smss_bytes);
        let first = limit * FIRST_SHARE / share(smss_bytes);
        Self {
            smss_bytes,
            buffer: limit,
            limit,
            max,
            // Linux offers a multiple of the segment at first.
            threshold: (first / smss_bytes * smss_bytes).max(first.min(smss_bytes)),
            rtt: None,
            last_echo: 0,
            window_under_way: None,
            round: Round {
                start: 0,
                read: 1,
                best: FIRST_ROUND_SEGMENTS * smss_bytes,
            },
        }
    }

    /// Linux (`tcp_select_initial_window`): the scale is that of the memory that the buffer may grow to; where it has a given
    /// size, of the window before the first segment.
    pub fn scale(&self) -> u8 {
        let (octets, of_memory) = match self.max {
            Some(max) => (max.max(self.limit), 256),
            None => (self.limit, FIRST_SHARE),
        };
        window_scale(octets * of_memory / share(self.smss_bytes))
    }

    /// What may be promised at most.
    pub fn threshold(&self) -> u64 {
        self.threshold
    }

    /// What of the buffer may be promised.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// What the buffer has left with `held` octets in it.
    pub fn free(&self, held: u64) -> u64 {
        self.buffer.saturating_sub(self.memory(held))
    }

    /// What `octets` take of it. Linux 6.18 (`tcp_space`, `tcp_win_from_space`) counts the memory of their segments, of which
    /// whole 256ths are window: 1440 octets for a segment of 1448.
    ///
    /// Deviation: a segment that is not full takes in proportion, where the kernel's allocator has larger steps.
    fn memory(&self, octets: u64) -> u64 {
        if octets == 0 {
            return 0;
        }
        let per_segment = SEGMENT_MEMORY_BYTES * share(self.smss_bytes) / 256;
        octets * per_segment / segment_of_share(self.smss_bytes)
    }

    /// A segment of `len` octets arrived, of which `charged` count in addition to what is `held`; returns whether the window
    /// grew.
    ///
    /// The scale lets a window promise more than the buffer holds. One without a given size then grows to all that is held,
    /// but promises no more for it (Linux, `tcp_clamp_window`).
    ///
    /// Deviation: Linux reduces `rcv_ssthresh` to two segments where even the maximum does not hold it.
    pub fn on_segment(&mut self, len: u64, held: u64, charged: u64) -> bool {
        self.buffer = (self.buffer).max(self.memory(held).min(self.max.unwrap_or(0)));
        let room = (self.limit)
            .min(self.free(held + charged))
            .saturating_sub(self.threshold);
        if room == 0 || len < MIN_GROWING_BYTES {
            return false;
        }
        self.threshold += room.min(GROWTH_SEGMENTS * self.smss_bytes);
        true
    }

    /// A segment of `len` octets echoed timestamp `echo`: the round-trip time, as the receiver sees it. `all_read`: the
    /// application had read all that came in order before it.
    ///
    /// Linux (`tcp_rcv_rtt_measure_ts`): in order or not; but one that is not full may have waited for its application.
    pub fn note_echo(&mut self, echo: u32, len: u64, all_read: bool, now: Nanos) {
        if echo == self.last_echo {
            return;
        }
        self.last_echo = echo;
        if len < self.smss_bytes {
            return;
        }
        let ticks = u64::from(timestamp(now).wrapping_sub(echo));
        let rtt = ticks.max(1) * MILLISECOND;
        // Linux: a lower sample holds at once, a higher one counts for an eighth, and where the application is behind for
        // nothing.
        self.rtt = Some(match self.rtt {
            Some(smoothed) if smoothed < rtt && !all_read => smoothed,
            Some(smoothed) if smoothed < rtt => smoothed + (rtt - smoothed) / 8,
            _ => rtt,
        });
    }

    /// Without timestamps octets up to `end` have come in order, and `edge` is promised: a round trip takes at most as long
    /// as a whole window of octets. Linux (`tcp_rcv_rtt_measure`); the minimum of these times holds.
    pub fn note_arrival(&mut self, end: u64, edge: u64, now: Nanos) {
        if let Some((start, until)) = self.window_under_way {
            if end < until {
                return;
            }
            let took = now - start;
            self.rtt = Some(self.rtt.map_or(took, |min| min.min(took)));
        }
        self.window_under_way = Some((now, edge));
    }

    /// The application has read up to octet `read`; `queued` octets in order follow, and `beyond` lie between the next
    /// one expected and the end of what came out of order. Once per round trip the buffer may grow.
    ///
    /// Linux (`tcp_rcv_space_adjust`) asks after each segment that is read, and what is queued then does not count as
    /// read, but as if it had never come: where a gap is filled, only its first segment is read yet.
    pub fn on_read(&mut self, read: u64, queued: u64, beyond: u64, now: Nanos) {
        let (Some(rtt), Some(max)) = (self.rtt, self.max) else {
            return;
        };
        if now - self.round.start < rtt {
            return;
        }
        let octets = (read - self.round.read).saturating_sub(queued);
        (self.round.start, self.round.read) = (now, read);
        let before = self.round.best;
        if octets <= before {
            return;
        }
        self.round.best = octets;
        // Twice what was read, as it was read a round trip ago; in slow start twice the increase on top.
        let wanted = 2 * octets + 2 * (2 * octets * (octets - before) / before) + beyond;
        self.grow_to(wanted.min(max));
    }

    fn grow_to(&mut self, octets: u64) {
        if octets > self.buffer {
            (self.buffer, self.limit) = (octets, octets);
        }
    }

    /// A segment came out of order, and `beyond` octets lie between the next one expected and its end or that of what came
    /// before: room for them (Linux, `tcp_data_queue_ofo`).
    pub fn on_gap(&mut self, beyond: u64) {
        if let Some(max) = self.max {
            self.grow_to((2 * self.round.best + beyond).min(max));
        }
    }
}

/// RFC 7323 §2.3: the smallest shift with which 16 bits can express `buffer_bytes`.
pub fn window_scale(buffer_bytes: u64) -> u8 {
    (0..14)
        .find(|&shift| buffer_bytes >> shift <= 0xFFFF)
        .unwrap_or(14)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_grows_by_two_segments_for_each_that_arrives_up_to_the_buffer() {
        // Four fifths of 100 segments, twenty to go less the one that fills the buffer, which takes 994: nine by two and one
        // by the rest.
        let mut window = GrowingWindow::new(100_000, None, 1000);
        assert_eq!(window.threshold(), 80_000);
        assert!(!window.on_segment(127, 0, 127));
        for n in 1..=10 {
            assert!(window.on_segment(1000, 0, 1000), "segment {n}");
        }
        assert_eq!(window.threshold(), 99_006);
        assert!(!window.on_segment(1000, 0, 1000));
    }

    #[test]
    fn what_is_held_leaves_less_room() {
        let mut window = GrowingWindow::new(100_000, None, 1000);
        assert!(!window.on_segment(1000, 19_112, 1000));
        assert!(window.on_segment(1000, 18_500, 1000));
        assert_eq!(window.threshold(), 80_608);
    }

    #[test]
    fn a_buffer_without_a_given_size_holds_what_was_promised_beyond_it_and_promises_no_more() {
        let held = |max| {
            let mut window = GrowingWindow::new(100_000, max, 1000);
            assert!(!window.on_segment(1000, 104_000, 1000));
            (
                window.buffer,
                window.limit(),
                window.on_segment(1000, 0, 1000),
            )
        };
        assert_eq!(held(Some(1_000_000)), (103_425, 100_000, true));
        assert_eq!(held(Some(103_000)), (103_000, 100_000, true));
        assert_eq!(held(None), (100_000, 100_000, true));
        let mut window = GrowingWindow::new(100_000, Some(1_000_000), 1000);
        window.on_segment(1000, 104_000, 1000);
        while window.on_segment(1000, 0, 1000) {}
        assert_eq!(window.threshold(), 100_000);
        window.on_gap(2 * 80_000);
        assert_eq!((window.buffer, window.limit()), (180_000, 180_000));
    }

    #[test]
    fn the_recorded_kernel_offers_181_steps_from_four_mebibytes() {
        // 4 MiB of memory: 2,096,704 octets at first, 2,620,000 in the end.
        let mut window = GrowingWindow::new((4 << 20) * 5 / 8, None, 1448);
        assert_eq!(window.threshold(), 2_096_704);
        let mut steps = 0;
        while window.on_segment(1448, 0, 1448) {
            steps += 1;
        }
        assert_eq!((steps, window.threshold()), (181, 2_620_000));
    }

    #[test]
    fn without_timestamps_the_same_memory_is_a_larger_window_that_opens_from_where_it_did() {
        let mut window =
            GrowingWindow::new((4 << 20) * 162 / 256, Some((32 << 20) * 162 / 256), 1460);
        assert_eq!((window.threshold(), window.scale()), (2_096_560, 10));
        let mut steps = 0;
        while window.on_segment(1460, 0, 1460) {
            steps += 1;
        }
        assert_eq!((steps, window.threshold()), (191, 2_652_750));
    }

    #[test]
    fn a_buffer_that_tunes_itself_holds_twice_what_a_round_trip_brings() {
        let mut window = GrowingWindow::new(50_000, Some(1_000_000), 1000);
        window.note_echo(0, 1000, true, 100 * MILLISECOND);
        window.on_read(9_999, 0, 0, 50 * MILLISECOND);
        assert_eq!(window.limit(), 50_000);
        // 40 segments where 10 were assumed: 2 * 40 + 2 * 80 * 30 / 10.
        window.note_echo(5, 1000, true, 105 * MILLISECOND);
        window.on_read(40_001, 0, 0, 100 * MILLISECOND);
        assert_eq!(window.limit(), 80_000 + 480_000);
        // The same again asks for no more; twice that meets the bound.
        window.on_read(80_001, 0, 0, 200 * MILLISECOND);
        assert_eq!(window.limit(), 560_000);
        window.on_read(480_001, 0, 0, 300 * MILLISECOND);
        assert_eq!(window.limit(), 1_000_000);
    }

    #[test]
    fn without_timestamps_a_window_of_octets_tells_the_round_trip_and_the_least_holds() {
        let mut window = GrowingWindow::new(50_000, Some(1_000_000), 1000);
        window.note_arrival(1_001, 51_001, 100 * MILLISECOND);
        window.note_arrival(51_000, 101_000, 290 * MILLISECOND);
        assert_eq!(window.rtt, None);
        window.note_arrival(51_001, 101_001, 300 * MILLISECOND);
        assert_eq!(window.rtt, Some(200 * MILLISECOND));
        window.note_arrival(101_001, 151_001, 550 * MILLISECOND);
        assert_eq!(window.rtt, Some(200 * MILLISECOND));
        window.note_arrival(151_001, 201_001, 649 * MILLISECOND);
        assert_eq!(window.rtt, Some(99 * MILLISECOND));
    }

    #[test]
    fn what_a_filled_gap_releases_counts_against_what_was_read() {
        let after = |queued| {
            let mut window = GrowingWindow::new(50_000, Some(1_000_000), 1000);
            window.note_echo(5, 1000, true, 105 * MILLISECOND);
            window.on_read(30_001, queued, 0, 100 * MILLISECOND);
            window.limit()
        };
        // 30 segments: 2 * 30 + 2 * 60 * 20 / 10. Of 15: 2 * 15 + 2 * 30 * 5 / 10. Of 10, as many as were assumed: none.
        assert_eq!(
            [after(0), after(15_000), after(20_000), after(40_000)],
            [300_000, 60_000, 50_000, 50_000]
        );
    }

    #[test]
    fn the_round_trip_falls_at_once_and_rises_by_eighths() {
        let mut window = GrowingWindow::new(50_000, None, 1000);
        let mut note = |echo: u32, rtt: u64| {
            window.note_echo(echo, 1000, true, (u64::from(echo) + rtt) * MILLISECOND);
            window.rtt.map(|rtt| rtt / MILLISECOND)
        };
        assert_eq!(note(1, 200), Some(200));
        assert_eq!(note(1, 900), Some(200), "the same echo tells nothing new");
        assert_eq!(note(2, 280), Some(210));
        assert_eq!(note(3, 100), Some(100));
        window.note_echo(7, 1000, false, 907 * MILLISECOND);
        assert_eq!(window.rtt, Some(100 * MILLISECOND), "behind");
        window.note_echo(4, 999, true, 54 * MILLISECOND);
        assert_eq!(window.rtt, Some(100 * MILLISECOND), "not a full one");
    }

    #[test]
    fn a_gap_asks_for_room_for_what_lies_behind_it_and_for_twice_a_round() {
        let limit = |max| {
            let mut window = GrowingWindow::new(50_000, max, 1000);
            // Ten segments are assumed to be a round.
            [29_000, 31_000, 10_000, 80_000].map(|beyond| {
                window.on_gap(beyond);
                window.limit()
            })
        };
        assert_eq!(limit(Some(90_000)), [50_000, 51_000, 51_000, 90_000]);
        assert_eq!(limit(None), [50_000; 4]);
    }

    #[test]
    fn the_scale_is_that_of_the_memory_or_of_the_first_window_of_a_fixed_buffer() {
        let scale = |limit, max| GrowingWindow::new(limit, max, 1000).scale();
        // 32 MiB of memory, as the recorded kernel has and scales by 10.
        let buffer = (32 << 20) * 5 / 8;
        assert_eq!((scale(1000, Some(buffer)), window_scale(buffer)), (10, 9));
        assert_eq!(scale(1000, Some(buffer - 1)), 9);
        // SO_RCVBUF of 20,000 and of 90,000 octets, of which the recorded kernel scales the second by 1.
        assert_eq!((scale(25_000, None), scale(112_500, None)), (0, 1));
    }

    #[test]
    fn a_fixed_buffer_stays() {
        let mut window = GrowingWindow::new(50_000, None, 1000);
        window.note_echo(0, 1000, true, 100 * MILLISECOND);
        window.on_read(1_000_000, 0, 0, 100 * MILLISECOND);
        assert_eq!(window.limit(), 50_000);
    }
}
