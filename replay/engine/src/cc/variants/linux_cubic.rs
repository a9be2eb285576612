//! CUBIC's congestion avoidance as Linux counts it: whole segments, and a window that increases by one per so many
//! segments acknowledged. The curve is RFC 9438's; where it is read and how it is rounded differ. K approximates Linux's.
//!
//! Does not depend on slow start or recovery. Read RFC 9438 §4 first, then `docs/variants/cubic.md`.

use super::reno::AckCounter;
use crate::cc::{AckEvidence, Window, WindowIncrease};
use crate::sim::time::{Nanos, SECOND, keep_min};
use crate::tcp::jiffies::TICK;

/// Linux: the curve's own unit of time is 1/1024 s.
const UNITS_PER_SECOND: u64 = 1024;
/// Distance from the origin at which the curve is steep enough for any window: 12 days.
const MAX_UNITS: u64 = 1 << 30;

/// Deviation: as Linux, 717/1024 where RFC 9438 §4.6 has 0.7.
const BETA: u64 = 717;
const BETA_SCALE: u64 = 1024;
/// RFC 9438 §5.1: C = 0.4 segments/s³. Deviation: as Linux, 410/1024.
const C_TIMES_1024: u64 = 410;
/// RFC 9438 §4.3 with the β above: eighths of a window whose acknowledgement raises the Reno-friendly one by a
/// segment, 8 (1 + β) / (3 (1 - β)) rounded down.
const RENO_EIGHTHS: u64 = 15;
/// What Newton's method starts from, over the root of the leading bits: the mean of Linux's table. See [`k_units`].
const START_ABOVE: f64 = 1.037;
/// Deviation: as Linux, a segment per window/100 where the curve is flat.
const PLATEAU_WINDOWS: u64 = 100;
/// Deviation: as Linux, before the first loss at least a segment per 20 acknowledged.
const MAX_ACKED_BEFORE_LOSS: u64 = 20;
/// RFC 9438 §4.2: at most half as much again per round trip.
const MIN_ACKED: u64 = 2;
/// Deviation: as Linux, the curve is read again only after a thirty-second of a second unless cwnd has changed, and
/// once per tick at most.
const REREAD_AFTER_TICKS: u64 = SECOND / 32 / TICK;
/// Deviation: as Linux, RTT samples of the first second of an epoch do not count for the minimum RTT of the path.
const SETTLING: Nanos = SECOND;

/// State of the window increase function.
#[derive(Clone, Debug, Default)]
pub struct LinuxCubic {
    /// Window at the plateau; 0 before the first decrease or after a timeout.
    w_max: u64,
    stage: Option<Stage>,
    /// Minimum RTT of data.
    min_rtt: Option<Nanos>,
    /// Segments acknowledged per increment of the window.
    per_segment: u64,
    read: Option<Reading>,
    counter: AckCounter,
}

/// One stage of congestion avoidance.
#[derive(Clone, Copy, Debug)]
struct Stage {
    start: Nanos,
    origin: u64,
    /// RFC 9438 §4.2: K.
    k_units: u64,
    /// RFC 9438 §4.3: `W_est`, and the segments acknowledged that it has not used yet.
    w_est: u64,
    acked: u64,
}

/// When the curve was read last, and for which window.
#[derive(Clone, Copy, Debug)]
struct Reading {
    tick: u64,
    cwnd: u64,
}

/// RFC 9438 §4.2 equation 2, for a window `below` the plateau.
///
/// Deviation: as Linux, by one step of Newton's method, with 341/1024 for a third. It approximates Linux's K, whose start is a
/// table of the root of the leading bits, 3.2 to 5.2 % too high; here it is their root 3.7 % too high, the table's mean. Of the
/// distances below 1000, 23 % give Linux's K, and the mean difference is 1.9 units (13 % and 2.8 by an exact root). Linux's K is
/// 0.11 % less to 0.15 % more than the root; this one 0.11 % less to 0.03 % more.
fn k_units(below: u64) -> u64 {
    let cube = 1024 * UNITS_PER_SECOND.pow(3) / C_TIMES_1024 * below;
    let shift = ((u64::BITS - cube.leading_zeros()) * 84 / 256).saturating_sub(1);
    let leading = (cube >> (3 * shift)) as f64;
    let start = (libm::cbrt(leading) * START_ABOVE * f64::from(1 << shift)) as u64;
    let rest = cube.checked_div(start * start.saturating_sub(1));
    ((2 * start + rest.unwrap_or(0)) * 341) >> 10
}

/// RFC 9438 §4.2 equation 1 in whole segments: the distance from the origin is rounded down on either side of it.
fn target(origin: u64, k_units: u64, t_units: u64) -> u64 {
    let offset = u128::from(t_units.abs_diff(k_units).min(MAX_UNITS));
    let cube = u128::from(C_TIMES_1024) * offset * offset * offset;
    let distance = (cube / (1024 * u128::from(UNITS_PER_SECOND.pow(3)))) as u64;
    if t_units < k_units {
        origin.saturating_sub(distance)
    } else {
        origin.saturating_add(distance)
    }
}

/// Segments to be acknowledged for the next increment of the window.
fn acked_per_segment(cwnd: u64, target: u64, before_loss: bool) -> u64 {
    let count = if target > cwnd {
        cwnd / (target - cwnd)
    } else {
        PLATEAU_WINDOWS * cwnd
    };
    if before_loss {
        count.min(MAX_ACKED_BEFORE_LOSS)
    } else {
        count
    }
}

/// RFC 9438 §4.7 in whole segments.
fn w_max_after_reduction(cwnd: u64, w_max: u64) -> u64 {
    if cwnd < w_max {
        cwnd * (BETA_SCALE + BETA) / (2 * BETA_SCALE)
    } else {
        cwnd
    }
}

impl Stage {
    fn begin(now: Nanos, cwnd: u64, w_max: u64, acked: u64) -> Self {
        let below = w_max.saturating_sub(cwnd);
        Self {
            start: now,
            origin: w_max.max(cwnd),
            k_units: k_units(below),
            w_est: cwnd,
            acked,
        }
    }

    /// Time into the stage and `ahead`, in the curve's unit.
    fn t_units(&self, now: Nanos, ahead: Nanos) -> u64 {
        let ticks = (now / TICK).saturating_sub(self.start / TICK) + ahead.div_ceil(TICK);
        ticks * UNITS_PER_SECOND / (SECOND / TICK)
    }

    /// RFC 9438 §4.3: `W_est` gains a segment per 15/8 windows acknowledged; says how far it leads.
    fn reno_friendly_lead(&mut self, cwnd: u64) -> u64 {
        let per_segment = (cwnd * RENO_EIGHTHS / 8).max(1);
        while self.acked > per_segment {
            self.acked -= per_segment;
            self.w_est += 1;
        }
        self.w_est.saturating_sub(cwnd)
    }
}

impl LinuxCubic {
    /// Factor of the window decrease.
    pub const BETA: f64 = BETA as f64 / BETA_SCALE as f64;

    /// Takes an RTT sample of data.
    #[inline]
    pub fn take_rtt(&mut self, rtt: Nanos, now: Nanos) {
        let settling = |stage: Stage| now.saturating_sub(stage.start) < SETTLING;
        if !self.stage.is_some_and(settling) {
            keep_min(&mut self.min_rtt, rtt);
        }
    }

    /// Takes `acked` segments in congestion avoidance.
    #[inline]
    pub fn count(&mut self, cwnd: &mut f64, acked: f64, now: Nanos) {
        self.update(*cwnd as u64, acked as u64, now);
        self.counter.count(cwnd, self.per_segment as f64, acked);
    }

    fn update(&mut self, cwnd: u64, acked: u64, now: Nanos) {
        if let Some(stage) = &mut self.stage {
            stage.acked += acked;
        }
        let tick = now / TICK;
        let fresh = |read: Reading| read.cwnd == cwnd && tick - read.tick <= REREAD_AFTER_TICKS;
        if self.read.is_some_and(fresh) {
            return;
        }
        let read_now = self.stage.is_some() && self.read.is_some_and(|read| read.tick == tick);
        let w_max = self.w_max;
        let stage = self
            .stage
            .get_or_insert_with(|| Stage::begin(now, cwnd, w_max, acked));
        let mut count = self.per_segment;
        if !read_now {
            self.read = Some(Reading { tick, cwnd });
            // Deviation: as Linux, the target lies the minimum RTT ahead, not the smoothed one (RFC 9438 §4.2).
            let t_units = stage.t_units(now, self.min_rtt.unwrap_or(0));
            let target = target(stage.origin, stage.k_units, t_units);
            count = acked_per_segment(cwnd, target, w_max == 0);
        }
        let lead = stage.reno_friendly_lead(cwnd);
        if let Some(friendly) = cwnd.checked_div(lead) {
            count = count.min(friendly);
        }
        self.per_segment = count.max(MIN_ACKED);
    }
}

impl WindowIncrease for LinuxCubic {
    const OBSERVES: bool = true;

    /// RTT samples of data, in recovery too.
    fn observe(&mut self, ack: &AckEvidence) {
        if let Some(rtt) = ack.rtt {
            self.take_rtt(rtt, ack.now);
        }
    }

    fn on_ack(&mut self, window: &mut Window, acked: f64, ack: &AckEvidence) {
        self.count(&mut window.cwnd, acked, ack.now);
    }

    /// RFC 9438 §4.6 and §4.7.
    fn on_decrease(&mut self, before: &Window) {
        let cwnd = before.cwnd as u64;
        self.w_max = w_max_after_reduction(cwnd, self.w_max);
        self.stage = None;
        self.counter = AckCounter::default();
    }

    /// Everything is reset, the minimum RTT too.
    fn on_timeout(&mut self) {
        *self = Self::default();
    }

    /// RFC 9438 §5.8: the curve goes on where it was; one that began in the idle time begins now (Linux:
    /// `cubictcp_cwnd_event`).
    fn on_resume(&mut self, idle: Nanos, now: Nanos) {
        if let Some(stage) = &mut self.stage {
            stage.start = (stage.start + idle).min(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::time::MILLISECOND;

    fn ack(now: Nanos) -> AckEvidence {
        AckEvidence {
            now,
            delivered: 1,
            srtt: Some(900 * MILLISECOND),
            cwnd_limited: true,
            ..AckEvidence::default()
        }
    }

    #[test]
    fn the_target_is_whole_on_both_sides_of_the_origin() {
        // C * 2³ = 3.2: three segments below and three above.
        let units = |seconds: u64| seconds * UNITS_PER_SECOND;
        assert_eq!(target(100, units(4), units(2)), 97);
        assert_eq!(target(100, units(4), units(4)), 100);
        assert_eq!(target(100, units(4), units(6)), 103);
        assert_eq!(target(10, units(40), 0), 0);
        assert_eq!(target(10, 0, u64::MAX), target(10, 0, MAX_UNITS));
    }

    #[test]
    fn k_is_the_cube_root_of_the_distance_over_c_by_one_step_of_newtons_method() {
        // cbrt(4 * 1024 / 410) = 2.15373 s, 2205.4 units. Of its cube, 10,726,942,708, the highest bits are 9, with 30 behind
        // them: it begins at 1.037 * cbrt(9) * 2^10 = 2208, and (2 * 2208 + cube / (2208 * 2207)) * 341 / 1024 is 2203.
        assert_eq!(k_units(4), 2203);
        assert_eq!(k_units(28), 4215);
        assert_eq!(k_units(0), 0);
        // 341/1024 is 0.1 % short of a third, and so is K where the step starts at the root itself, because of the bits that were
        // cut off. From 3.7 % above the root it ends 0.13 % above. An exact root, rounded down, would be 0 to 0.04 % short.
        let off = (1..5000_u32).map(|below| {
            let exact = libm::cbrt((1u64 << 40) as f64 / 410.0 * f64::from(below));
            100.0 * (k_units(below.into()) as f64 / exact - 1.0)
        });
        let (min, max) = off.fold((0.0_f64, 0.0_f64), |(min, max), off| {
            (min.min(off), max.max(off))
        });
        assert!((-0.12..-0.1).contains(&min), "{min}");
        assert!((0.03..0.04).contains(&max), "{max}");
    }

    #[test]
    fn time_is_counted_in_ticks_and_the_least_rtt_is_rounded_up() {
        let stage = Stage::begin(5 * MILLISECOND, 80, 100, 0);
        assert_eq!(stage.t_units(7 * MILLISECOND, 0), 0);
        assert_eq!(stage.t_units(8 * MILLISECOND, 0), 4);
        assert_eq!(stage.t_units(7 * MILLISECOND, MILLISECOND), 4);
        assert_eq!(stage.t_units(1004 * MILLISECOND, 500 * MILLISECOND), 1536);
    }

    #[test]
    fn counts_by_hand() {
        assert_eq!(acked_per_segment(70, 80, false), 7);
        assert_eq!(acked_per_segment(70, 70, false), 7000);
        assert_eq!(acked_per_segment(70, 70, true), 20);
        assert_eq!(acked_per_segment(70, 80, true), 7);
    }

    #[test]
    fn the_plateau_is_rounded_down_before_it_is_compared() {
        // (1024 + 717) / 2048 of 80 is 68.0; of 81, 68.85.
        assert_eq!(w_max_after_reduction(80, 100), 68);
        assert_eq!(w_max_after_reduction(81, 100), 68);
        assert_eq!(w_max_after_reduction(100, 100), 100);
        assert_eq!(w_max_after_reduction(80, 0), 80);
    }

    #[test]
    fn the_reno_friendly_window_gains_one_per_fifteen_eighths_of_a_window() {
        let mut stage = Stage::begin(0, 80, 100, 0);
        stage.acked = 150;
        assert_eq!(stage.reno_friendly_lead(80), 0);
        stage.acked = 151;
        assert_eq!(stage.reno_friendly_lead(80), 1);
        assert_eq!(stage.acked, 1);
    }

    #[test]
    fn the_first_stage_grows_by_five_per_cent_per_round_trip() {
        let (mut cubic, mut window) = (LinuxCubic::default(), Window::at(100.0));
        for n in 0..100 {
            cubic.on_ack(&mut window, 1.0, &ack(n * MILLISECOND));
        }
        assert_eq!(window.cwnd.to_bits(), 105.0_f64.to_bits());
    }

    #[test]
    fn the_target_lies_the_least_rtt_ahead_and_the_settling_second_gives_none() {
        let mut cubic = LinuxCubic::default();
        cubic.take_rtt(300 * MILLISECOND, 0);
        cubic.on_decrease(&Window::at(100.0));
        cubic.update(71, 1, SECOND);
        // K = cbrt(29 / C) = 4.168 s; 0.3 s ahead the curve stands 23.2 below the origin, at 77.
        assert_eq!(cubic.per_segment, 71 / (77 - 71));
        cubic.take_rtt(MILLISECOND, 2 * SECOND - 1);
        assert_eq!(cubic.min_rtt, Some(300 * MILLISECOND));
        cubic.take_rtt(200 * MILLISECOND, 2 * SECOND);
        assert_eq!(cubic.min_rtt, Some(200 * MILLISECOND));
    }

    #[test]
    fn the_curve_is_read_again_only_after_seven_ticks_or_at_another_window_in_another_tick() {
        let mut cubic = LinuxCubic::default();
        cubic.on_decrease(&Window::at(1000.0));
        let mut count = |cwnd, ticks| {
            cubic.update(cwnd, 1, ticks * TICK);
            cubic.per_segment
        };
        let first = count(700, 0);
        assert_eq!(count(700, REREAD_AFTER_TICKS), first);
        let second = count(700, REREAD_AFTER_TICKS + 1);
        assert!(second < first, "{second}");
        let third = count(400, REREAD_AFTER_TICKS + 2);
        assert!(third < second, "{third}");
        assert_eq!(count(800, REREAD_AFTER_TICKS + 2), third);
        assert!(count(800, REREAD_AFTER_TICKS + 3) > third);
    }

    #[test]
    fn a_timeout_forgets_the_plateau_and_idle_time_does_not_count() {
        let mut cubic = LinuxCubic::default();
        cubic.on_decrease(&Window::at(100.0));
        cubic.update(71, 1, 0);
        let starts_at = |cubic: &LinuxCubic, seconds: u64| {
            cubic
                .stage
                .is_some_and(|stage| stage.start == seconds * SECOND)
        };
        cubic.on_resume(5 * SECOND, 5 * SECOND);
        cubic.update(70, 1, 5 * SECOND);
        assert!(starts_at(&cubic, 5));
        cubic.on_resume(5 * SECOND, 7 * SECOND);
        assert!(starts_at(&cubic, 7), "not later than now");
        cubic.on_timeout();
        assert_eq!((cubic.w_max, cubic.stage.is_none()), (0, true));
    }
}
