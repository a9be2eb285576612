//! ns-2's round-trip times: one segment timed at a time, in whole ticks of a coarse clock, with integer estimates.
//!
//! Does not depend on segments or back-off: `rtt` owns both. Read RFC 6298 §2 first, whose gains these are.

use crate::sim::time::Nanos;

/// Clock and estimates.
#[derive(Clone, Copy, Debug)]
pub struct Ticks {
    tick: Nanos,
    /// The clock ticks so much earlier than time itself (random in ns-2).
    phase: Nanos,
    /// End and departure of the segment that is being timed.
    timed: Option<(u64, Nanos)>,
    /// Eight times the smoothed round-trip time, in ticks; 0: none.
    srtt_by_8: u64,
    /// Four times its variation.
    rttvar_by_4: u64,
}

impl Ticks {
    /// A clock that ticks every `tick`, without estimates.
    pub fn new(tick: Nanos) -> Self {
        Self {
            tick: tick.max(1),
            phase: 0,
            timed: None,
            srtt_by_8: 0,
            rttvar_by_4: 0,
        }
    }

    /// Sets the phase, modulo the tick.
    pub fn set_phase(&mut self, phase: Nanos) {
        self.phase = phase % self.tick;
    }

    /// Times the segment that ends at `end`, unless one is being timed.
    pub fn time(&mut self, end: u64, now: Nanos) {
        self.timed.get_or_insert((end, now));
    }

    /// The segment that is being timed may be sent again: it will give no sample.
    pub fn stop(&mut self) {
        self.timed = None;
    }

    /// Takes the sample, if the ACK of everything before `snd_una` answers the segment that is timed: its time.
    pub fn answer(&mut self, snd_una: u64, now: Nanos) -> Option<Nanos> {
        let (_, sent_at) = self.timed.filter(|&(end, _)| end <= snd_una)?;
        self.timed = None;
        // The ticks that went by, not the time.
        let ticked = |time: Nanos| (time + self.phase) / self.tick;
        self.sample(ticked(now) - ticked(sent_at));
        Some(now - sent_at)
    }

    /// Takes a sample of so many ticks.
    pub fn sample(&mut self, ticks: u64) {
        let ticks = ticks.max(1);
        if self.srtt_by_8 == 0 {
            self.srtt_by_8 = 8 * ticks;
            self.rttvar_by_4 = 2 * ticks;
        } else {
            let srtt = self.srtt_by_8 / 8;
            self.srtt_by_8 = (self.srtt_by_8 + ticks - srtt).max(1);
            self.rttvar_by_4 =
                (self.rttvar_by_4 + srtt.abs_diff(ticks) - self.rttvar_by_4 / 4).max(1);
        }
    }

    /// The same under the rule of Linux, which TCP/Linux has: where the round-trip time falls, the variation takes an
    /// eighth of what is beyond it.
    pub fn sample_as_linux(&mut self, ticks: u64) {
        let (ticks, srtt) = (ticks.max(1), self.srtt_by_8 / 8);
        let variation = self.rttvar_by_4 / 4;
        if self.srtt_by_8 == 0 || ticks >= srtt || srtt - ticks <= variation {
            self.sample(ticks);
        } else {
            self.srtt_by_8 = (self.srtt_by_8 + ticks - srtt).max(1);
            self.rttvar_by_4 += (srtt - ticks - variation) / 8;
        }
    }

    /// The estimates are stale: the next sample starts them anew, with what they were as variation.
    pub fn distrust(&mut self) {
        self.rttvar_by_4 += self.srtt_by_8 / 8;
        self.srtt_by_8 = 0;
    }

    /// Smoothed round-trip time.
    pub fn srtt(&self) -> Nanos {
        self.srtt_by_8 * self.tick / 8
    }

    /// Its variation.
    pub fn rttvar(&self) -> Nanos {
        self.rttvar_by_4 * self.tick / 4
    }

    /// SRTT + 4 RTTVAR in whole ticks, two at least.
    pub fn rto(&self) -> Nanos {
        (self.rttvar_by_4 + self.srtt_by_8 / 8).max(2) * self.tick
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::time::MILLISECOND;

    const TICK: Nanos = 100 * MILLISECOND;

    #[test]
    fn samples_count_ticks_of_the_clock_that_went_by() {
        for (sent_ms, ticks) in [(0, 5), (40, 5), (50, 6), (99, 6)] {
            let mut clock = Ticks::new(TICK);
            clock.time(10, sent_ms * MILLISECOND);
            let answered = clock.answer(10, (sent_ms + 550) * MILLISECOND);
            assert_eq!(answered, Some(550 * MILLISECOND));
            assert_eq!(clock.srtt(), ticks * TICK, "sent at {sent_ms} ms");
        }
    }

    #[test]
    fn the_phase_moves_the_ticks() {
        for (phase_ms, ticks) in [(0, 5), (49, 5), (50, 6), (149, 5), (150, 6)] {
            let mut clock = Ticks::new(TICK);
            clock.set_phase(phase_ms * MILLISECOND);
            clock.time(10, 0);
            clock.answer(10, 550 * MILLISECOND);
            assert_eq!(clock.srtt(), ticks * TICK, "phase {phase_ms} ms");
        }
    }

    #[test]
    fn the_timeout_follows_the_samples_in_whole_ticks() {
        let mut clock = Ticks::new(TICK);
        clock.sample(5);
        // 5 + 4 * 2.5.
        assert_eq!(clock.rto(), 15 * TICK);
        clock.sample(5);
        // Variation 10/4 falls by a quarter of itself, rounded down: 8/4.
        assert_eq!(clock.rto(), 13 * TICK);
        clock.sample(13);
        // SRTT 5 + 8/8 = 6; variation 8/4 + (8 - 2)/4.
        assert_eq!((clock.srtt(), clock.rto()), (6 * TICK, 20 * TICK));
    }

    #[test]
    fn one_segment_is_timed_at_a_time_and_none_that_was_stopped() {
        let mut clock = Ticks::new(TICK);
        clock.time(10, 0);
        clock.time(20, 50 * MILLISECOND);
        assert_eq!(clock.answer(9, 500 * MILLISECOND), None);
        assert_eq!(clock.answer(20, 500 * MILLISECOND), Some(500 * MILLISECOND));
        clock.time(30, 0);
        clock.stop();
        assert_eq!(clock.answer(30, 500 * MILLISECOND), None);
    }

    #[test]
    fn distrusted_estimates_are_replaced_by_the_next_sample() {
        let mut clock = Ticks::new(TICK);
        clock.sample(5);
        clock.distrust();
        assert_eq!((clock.srtt(), clock.rttvar()), (0, 15 * TICK / 4));
        clock.sample(9);
        assert_eq!((clock.srtt(), clock.rttvar()), (9 * TICK, 18 * TICK / 4));
    }
}
