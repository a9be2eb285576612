//! Quick-Start: the SYN requests a rate from the routers, and the first window is paced at the granted rate.
//!
//! Does not depend on the routers: the rate that they grant is given. Read RFC 4782 §4 first, then `docs/mechanisms.md`.

use super::Sender;
use crate::cc::{Adjustment, MIN_SSTHRESH, Window};
use crate::sim::time::{Nanos, SECOND};

/// RFC 4782 §3.1: the rates that a request can name are 40 kbit/s times 2^N, N from 1 to 15.
const RATE_UNIT_BPS: f64 = 40_000.0;
const MAX_EXPONENT: f64 = 15.0;

/// State of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Asked for.
    Requested,
    /// The first window is being sent from this octet on.
    Sending { start: u64 },
    /// It has been sent, up to `end`: not all of it has been acknowledged.
    Validating { start: u64, end: u64 },
    /// Nothing is left of it.
    Over,
}

/// Quick-Start at a sender.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct QuickStart {
    granted_bps: f64,
    stage: Stage,
}

/// RFC 4782 §3.1: the largest rate of the table that is not above `bps`; none below the smallest.
pub fn encoded_bps(bps: f64) -> Option<f64> {
    let exponent = libm::floor(libm::log2(bps / RATE_UNIT_BPS)).min(MAX_EXPONENT);
    (exponent >= 1.0).then(|| RATE_UNIT_BPS * libm::exp2(exponent))
}

/// RFC 4782 §4.4: QS-cwnd = R T / (MSS + H), in segments.
fn granted_window(granted_bps: f64, rtt: Nanos, packet_bytes: u32) -> f64 {
    let octets = granted_bps / 8.0 * rtt as f64 / SECOND as f64;
    libm::floor(octets / f64::from(packet_bytes))
}

impl Sender {
    /// The same sender, to which the routers grant `granted_bps` at most; none: nothing.
    #[must_use]
    pub fn granted(mut self, granted_bps: Option<f64>) -> Self {
        let wanted = self.params.quick_start_bps.zip(granted_bps);
        let granted = wanted.and_then(|(wanted, granted)| encoded_bps(wanted.min(granted)));
        self.quick_start = granted.map(|granted_bps| QuickStart {
            granted_bps,
            stage: Stage::Requested,
        });
        self
    }

    fn stage(&mut self) -> Option<(&mut Stage, f64)> {
        let quick_start = self.quick_start.as_mut()?;
        Some((&mut quick_start.stage, quick_start.granted_bps))
    }

    /// The SYN-ACK reports the granted rate, `rtt` after the SYN.
    pub(in crate::tcp) fn begin_quick_start(&mut self, rtt: Nanos) {
        let packet_bytes = self.params.packet_bytes();
        let (cwnd, start) = (self.controller.window().cwnd, self.snd_nxt);
        let Some((stage, granted_bps)) = self.stage() else {
            return;
        };
        let window = granted_window(granted_bps, rtt, packet_bytes);
        // RFC 4782 §4.4: no use where the initial window is larger.
        if window <= cwnd {
            *stage = Stage::Over;
            return;
        }
        *stage = Stage::Sending { start };
        self.controller.adjust(Adjustment::AtLeast(window));
        if let Some(pacer) = &mut self.pacer {
            pacer.pace_all();
        }
    }

    /// The rate of the first window while it is being sent.
    pub(in crate::tcp) fn quick_start_pkts_per_s(&self) -> f64 {
        match &self.quick_start {
            Some(QuickStart {
                granted_bps,
                stage: Stage::Sending { .. },
            }) => {
                let packet_bytes = self.params.packet_bytes();
                granted_bps / 8.0 / f64::from(packet_bytes)
            }
            _ => f64::INFINITY,
        }
    }

    /// RFC 4782 §4.4: the ACK of the first of its packets ends the mode; the window is then no more than what was in
    /// flight, `prior_flight`.
    pub(in crate::tcp) fn follow_quick_start(&mut self, prior_flight: u32) {
        let (una, nxt) = (self.snd_una, self.snd_nxt);
        let Some((stage, _)) = self.stage() else {
            return;
        };
        match *stage {
            Stage::Sending { start } if una > start => {
                *stage = Stage::Validating { start, end: nxt };
                let min = f64::from(self.params.initial_window_pkts);
                let used = f64::from(prior_flight).max(min);
                let (cwnd, ssthresh) = (
                    self.controller.window().cwnd,
                    self.controller.window().ssthresh,
                );
                self.controller.adjust(Adjustment::Set(Window {
                    cwnd: cwnd.min(used),
                    ssthresh,
                }));
            }
            Stage::Validating { end, .. } if una >= end => *stage = Stage::Over,
            _ => {}
        }
    }

    /// RFC 4782 §4.6: a packet of the first window was lost or marked: the window is what it would have been, and ssthresh
    /// at most half of what got through.
    pub(in crate::tcp) fn fail_quick_start(&mut self) {
        let una = self.snd_una;
        let Some((stage, _)) = self.stage() else {
            return;
        };
        let (Stage::Sending { start } | Stage::Validating { start, .. }) = *stage else {
            return;
        };
        *stage = Stage::Over;
        let through = (una - start) / u64::from(self.params.smss_bytes);
        let through = through as f64 + f64::from(self.board.sacked());
        let initial = f64::from(self.params.initial_window_pkts);
        self.controller.adjust(Adjustment::Set(Window {
            cwnd: self.controller.window().cwnd.min(initial),
            ssthresh: self
                .controller
                .window()
                .ssthresh
                .min(through / 2.0)
                .max(MIN_SSTHRESH),
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::time::MILLISECOND;

    #[test]
    fn rates_are_those_of_the_table_that_do_not_exceed() {
        assert_eq!(encoded_bps(79_999.0), None);
        assert_eq!(encoded_bps(80_000.0), Some(80_000.0));
        assert_eq!(encoded_bps(159_999.0), Some(80_000.0));
        assert_eq!(encoded_bps(2e6), Some(1.28e6));
        assert_eq!(encoded_bps(1e12), Some(1_310_720_000.0));
    }

    #[test]
    fn the_window_is_what_the_rate_sends_in_a_round_trip() {
        // 1.28 Mbit/s, 0.5 s: 80 000 octets.
        assert_eq!(granted_window(1.28e6, 500 * MILLISECOND, 1500), 53.0);
        assert_eq!(granted_window(1.28e6, 500 * MILLISECOND, 1000), 80.0);
    }
}
