//! Where a connection was captured: at its sender, at its receiver or between them.

use super::Connection;
use crate::cwnd::CwndEstimator;
use crate::handshake::SplitRtt;
use crate::remote::RemoteSender;
use crate::rows::{Direction, Phase, Vantage};
use crate::untimed::UntimedSender;

/// Minimum number of samples to determine the capture point from timestamps.
pub(super) const MIN_UPSTREAM_SAMPLES: u64 = 8;

impl Connection {
    /// Determines the capture point if the handshake was not captured.
    pub(super) fn set_vantage_from_timestamps(&mut self, direction: Direction) {
        if let Some(rtt) = self.timestamp_rtt(direction) {
            let vantage = rtt.vantage();
            self.set_vantage(match direction {
                Direction::A2b => vantage,
                Direction::B2a => vantage.reverse(),
            });
        }
    }

    /// The RTT from the data of `direction` and their timestamps.
    fn timestamp_rtt(&self, direction: Direction) -> Option<SplitRtt> {
        let sender = &self.senders[direction as usize];
        let upstream = &sender.upstream.rtt;
        if upstream.samples() < MIN_UPSTREAM_SAMPLES || sender.rtt.samples() < MIN_UPSTREAM_SAMPLES
        {
            return None;
        }
        let downstream_ns = sender.rtt.min_ns()?;
        Some(SplitRtt {
            path_ns: downstream_ns + upstream.min_ns()?,
            downstream_ns,
        })
    }

    /// Sets the capture point, given relative to direction a2b.
    pub(super) fn set_vantage(&mut self, vantage_a2b: Vantage) {
        let handshake_rtt_ns = self.handshake.path_rtt_ns();
        let vantages = [vantage_a2b, vantage_a2b.reverse()];
        let phase = if self.handshake.rtt().is_some() {
            Phase::SlowStart
        } else {
            Phase::Unknown
        };
        let estimators = self.remotes.iter_mut().zip(&mut self.untimed);
        let senders = self.senders.iter_mut().zip(estimators);
        for ((sender, (remote, untimed)), vantage) in senders.zip(vantages) {
            sender.set_handshake_rtt(handshake_rtt_ns, self.handshake.is_late);
            sender.vantage = vantage;
            match vantage {
                _ if !self.estimates_cwnd => {}
                Vantage::Sender if sender.cwnd.is_none() => {
                    sender.cwnd = Some(Box::new(CwndEstimator::new(phase)));
                }
                Vantage::Receiver if self.handshake.lacks_timestamps() => {
                    let rtt_ns = handshake_rtt_ns.unwrap_or(0);
                    let new = || Box::new(UntimedSender::new(self.flow_id, rtt_ns));
                    untimed.get_or_insert_with(new);
                }
                Vantage::Receiver | Vantage::Middle if remote.is_none() => {
                    let mss_bytes = sender.board.mss_bytes();
                    let new = RemoteSender::new(phase, mss_bytes, handshake_rtt_ns);
                    *remote = Some(Box::new(new));
                }
                _ => {}
            }
        }
    }
}
