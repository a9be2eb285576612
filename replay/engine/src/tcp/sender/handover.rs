//! A sender that knows of handovers in advance: at each one it sets window and round-trip time to the new path's.
//!
//! Does not depend on the source of the forecast. Read `docs/mechanisms.md` first.

use super::Sender;
use crate::cc::{Adjustment, MIN_SSTHRESH, Window};
use crate::config::HandoverRule;
use crate::net::handover_forecast::PathChange;
use crate::sim::time::{NEVER, Nanos, SECOND};
use crate::tcp::timer::Timer;

/// The handovers that are to come, the next one last.
#[derive(Clone, Debug)]
pub(in crate::tcp) struct Handovers {
    news: Vec<PathChange>,
    pub timer: Timer,
}

impl Sender {
    /// The same sender with a handover forecast: the states of the path, the first of which holds when the connection
    /// starts.
    #[must_use]
    pub fn with_handover_forecast(mut self, states: &[PathChange]) -> Self {
        let mut news: Vec<PathChange> = states.iter().skip(1).copied().collect();
        news.reverse();
        let mut timer = Timer::default();
        if let Some(next) = news.last() {
            timer.set(next.at);
            self.handovers = Some(Box::new(Handovers { news, timer }));
        }
        self
    }

    #[inline]
    pub(in crate::tcp) fn next_handover(&self) -> Nanos {
        self.handovers
            .as_ref()
            .map_or(NEVER, |handovers| handovers.timer.armed())
    }

    /// Takes the news that are due.
    pub(in crate::tcp) fn take_news(&mut self, now: Nanos) {
        while let Some(handovers) = &mut self.handovers
            && handovers.timer.fires(now)
            && let Some(news) = handovers.news.pop()
        {
            if let Some(next) = handovers.news.last() {
                handovers.timer.set(next.at);
            }
            if self.established_at().is_some() {
                self.adapt(&news, now);
            }
        }
    }

    /// The window becomes the new path's product, the timeout that of its round-trip time.
    fn adapt(&mut self, news: &PathChange, now: Nanos) {
        let Some(bps) = news.bottleneck_bps else {
            return;
        };
        let packet_bits = 8.0 * f64::from(self.params.packet_bytes());
        let service = (packet_bits / bps * SECOND as f64) as Nanos;
        let rtt = news.rtt + service;
        let product = libm::floor(bps * rtt as f64 / SECOND as f64 / packet_bits);
        let product = product.max(MIN_SSTHRESH);
        let cwnd = match self.params.handover_adaptation {
            HandoverRule::Off => return,
            HandoverRule::SlowStart => self.controller.window().cwnd.min(product),
            HandoverRule::Jump => product,
        };
        self.controller.adjust(Adjustment::Set(Window {
            cwnd,
            ssthresh: product,
        }));
        self.rtt.restart(rtt, self.snd_una, self.snd_nxt);
        // What a break before make has lost is not to wait for a timeout of the old path, backed off.
        if self.rto_timer.is_set() {
            let due = (now + self.rtt.rto()).min(self.rto_timer.deadline());
            self.rto_timer.set(due);
        }
    }
}
