//! TCP-Peach: Reno's congestion avoidance; beyond it, answers to low-priority dummy segments open the window.
//!
//! Does not depend on when dummy segments are sent (`tcp/sender/probe_segments.rs`). Read Akyildiz, Morabito and Palazzo
//! 2001 §III first, then `docs/variants/peach.md`.

use super::reno::Reno;
use crate::cc::decrease::Factor;
use crate::cc::definition::{ControllerParts, Definition};
use crate::cc::params::{choices, parameters};
use crate::cc::{AckEvidence, HALF, MIN_SSTHRESH, SlowStart, Window, WindowIncrease, Windowed};
use crate::config::{ProbeSegments, StackParams};

choices! {
    /// What a segment of low priority carries.
    pub enum LowPriority {
        /// Octets that have been sent before: TCP-Peach.
        Dummy = "dummy",
        /// Octets not acknowledged yet, so that it also serves as a retransmission: TCP-Peach+.
        Nil = "nil",
    }
}

parameters! {
    /// Parameters of TCP-Peach.
    pub struct PeachParams {
        /// Segments that ask for room within the first round-trip time, the first of data among them.
        sudden_start_pkts: whole(64, "segments", 1, 100_000, "rwnd of Akyildiz et al. 2001 §III-A, its figure recalled rather than read"),
        /// Dummy segments after a loss, as a share of the window before it.
        recovery_share: number(1.0, "", 0.0, 4.0, "Akyildiz et al. 2001 §III-B, recalled rather than read"),
        /// What segments of low priority carry.
        segments: choice(LowPriority, Dummy = "dummy", "Akyildiz et al. 2001; nil as TCP-Peach+, Akyildiz, Zhang and Fang 2002"),
        /// Differentiated services code point of dummy segments and their answers.
        dscp: whole(8, "", 1, 63, "RFC 3662 §4 (CS1: lower effort); the paper has a bit of the TOS field"),
    }
}

/// What the catalogue knows of it.
pub const DEFINITION: Definition = Definition {
    name: "peach",
    family: "probe",
    summary: "low-priority dummy segments probe for capacity at the start and after a loss",
    source: "Akyildiz, Morabito and Palazzo 2001",
    year: 2001,
    params: PeachParams::SPECS,
    uses_ssthresh: |_| false,
    fix: |stack, values| stack.low_priority_probes = Some(PeachParams::of(values).dummy_segments()),
    parts: |stack, _, _| {
        ControllerParts::Window(Peach::windowed(f64::from(stack.initial_window_pkts), stack))
    },
    ..Definition::BASE
};

impl PeachParams {
    /// What the stack has to know of them.
    pub fn dummy_segments(&self) -> ProbeSegments {
        ProbeSegments {
            dscp: self.dscp as u8,
            sudden_start_pkts: self.sudden_start_pkts,
            recovery_share: self.recovery_share,
            carry_unacknowledged: self.segments == LowPriority::Nil,
        }
    }
}

/// State of TCP-Peach.
#[derive(Clone, Debug, Default)]
pub struct Peach {
    reno: Reno,
    /// Answers that do not open the window yet (wdsn in the paper).
    awaited: u32,
}

impl Peach {
    /// TCP-Peach from an initial window of `segments`.
    pub fn windowed(segments: f64, params: &StackParams) -> Windowed {
        // Sudden Start takes the place of slow start: the window stands in congestion avoidance from the first.
        let window = Window {
            cwnd: segments,
            ssthresh: segments,
        };
        let decrease = Factor::of(HALF, params.profile);
        Windowed::new(window, SlowStart::standard(None), Self::default(), decrease)
    }
}

impl WindowIncrease for Peach {
    const OWNS_SLOW_START: bool = true;

    fn on_ack(&mut self, window: &mut Window, acked: f64, ack: &AckEvidence) {
        // RFC 5681 §3.1 equation 4: two segments at least.
        window.ssthresh = window.ssthresh.min(window.cwnd.max(MIN_SSTHRESH));
        if ack.cwnd_limited {
            self.reno.on_ack(window, acked, ack);
        }
    }

    /// If the queue dropped the segment, the half of the window that was given up leaves room for as many dummy segments.
    /// Answers beyond these show that the path had room, so the loss was due to the link.
    fn on_decrease(&mut self, before: &Window) {
        self.reno.on_decrease(before);
        // Akyildiz et al. 2001 §III-B: as many answers do not count as Rapid Recovery took from the window.
        self.awaited = (HALF * before.cwnd) as u32;
    }

    /// Sudden Start counts every answer.
    fn on_timeout(&mut self) {
        self.reno.on_timeout();
        self.awaited = 0;
    }

    fn on_probe_answer(&mut self, window: &mut Window) {
        if self.awaited > 0 {
            self.awaited -= 1;
        } else {
            window.cwnd += 1.0;
        }
    }

    fn undo(&mut self, before: &Self) {
        self.awaited = before.awaited;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::{Adjustment, ConnectionEvent};
    use crate::cc::{Signal, SignalEvidence};
    use crate::config::{Profile, StackOverrides};

    fn peach(segments: f64) -> Windowed {
        let params = StackParams::resolve(Profile::Rfc, &StackOverrides::default());
        Peach::windowed(segments, &params)
    }

    fn answers(controller: &mut Windowed, n: u32) -> f64 {
        for _ in 0..n {
            controller.on_event(&ConnectionEvent::ProbeAnswer);
        }
        controller.window().cwnd
    }

    fn signal(signal: Signal, flight: f64) -> SignalEvidence {
        SignalEvidence {
            now: 0,
            flight,
            lost_total: 1,
            signal,
        }
    }

    fn same(a: f64, b: f64) {
        assert_eq!(a.to_bits(), b.to_bits(), "{a} for {b}");
    }

    #[test]
    fn at_the_start_every_answer_is_a_segment_more() {
        let mut controller = peach(1.0);
        same(answers(&mut controller, 1), 2.0);
        same(answers(&mut controller, 62), 64.0);
        assert!(!controller.in_slow_start() || controller.window().ssthresh <= 1.0);
    }

    #[test]
    fn after_a_loss_the_first_half_of_the_answers_buys_nothing_and_the_other_gives_the_window_back()
    {
        let mut controller = peach(20.0);
        controller.on_congestion(&signal(Signal::Loss, 20.0));
        same(controller.window().cwnd, 10.0);
        same(answers(&mut controller, 10), 10.0);
        same(answers(&mut controller, 1), 11.0);
        same(answers(&mut controller, 9), 20.0);
    }

    #[test]
    fn after_a_timeout_answers_count_from_the_first() {
        let mut controller = peach(20.0);
        controller.on_timeout(&signal(Signal::Timeout, 20.0));
        same(controller.window().cwnd, 1.0);
        same(answers(&mut controller, 1), 2.0);
    }

    #[test]
    fn a_reduction_that_is_undone_leaves_no_answers_to_wait_for() {
        let mut controller = peach(20.0);
        controller.on_congestion(&signal(Signal::Loss, 20.0));
        controller.adjust(Adjustment::Undo);
        same(answers(&mut controller, 1), 21.0);
    }

    #[test]
    fn a_window_of_acks_buys_one_segment_below_ssthresh_too_and_only_where_the_window_is_used() {
        let mut controller = peach(8.0);
        controller.on_timeout(&signal(Signal::Timeout, 8.0));
        let mut ack = AckEvidence {
            delivered: 1,
            cwnd_limited: true,
            ..AckEvidence::default()
        };
        controller.on_ack(&ack);
        same(controller.window().cwnd, 2.0);
        controller.on_ack(&ack);
        same(controller.window().cwnd, 2.0);
        ack.cwnd_limited = false;
        controller.on_ack(&ack);
        same(controller.window().cwnd, 2.0);
        ack.cwnd_limited = true;
        controller.on_ack(&ack);
        same(controller.window().cwnd, 3.0);
    }
}
