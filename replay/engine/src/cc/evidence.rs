//! The evidence that a sender passes to its controller: one value per ACK, one per congestion signal. `Copy`, no references,
//! cheap.
//!
//! Does not depend on the controller, which sees nothing else: no segments, no scoreboard, no timers, no rwnd.

use crate::sim::time::Nanos;

/// What the sender is in the middle of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RecoveryPhase {
    /// Nothing is known to be lost.
    #[default]
    None,
    /// Fast recovery.
    Recovery,
    /// In loss recovery after a retransmission timeout.
    Loss,
}

/// An ACK outside recovery, for a controller that only counts; see [`AckEvidence`].
#[derive(Clone, Copy, Debug)]
pub struct AckCount {
    /// Time of the ACK.
    pub now: Nanos,
    /// Segments that it delivers.
    pub delivered: u32,
    /// Round-trip time of the newest of them.
    pub rtt: Nanos,
    /// The last round was limited by cwnd.
    pub cwnd_limited: bool,
}

/// What an ACK tells a controller.
#[derive(Clone, Copy, Debug, Default)]
pub struct AckEvidence {
    /// Time of the ACK.
    pub now: Nanos,
    /// Segments that it delivers: acknowledged or sacked for the first time.
    pub delivered: u32,
    /// Octets that it acknowledges cumulatively.
    pub acked_bytes: u64,
    /// Round-trip time of the newest segment that it delivers; none where Karn's rule bars it (RFC 6298 §3).
    pub rtt: Option<Nanos>,
    /// Smoothed round-trip time.
    pub srtt: Option<Nanos>,
    /// Minimum round-trip time of the connection.
    pub min_rtt: Option<Nanos>,
    /// Sequence space: oldest octet not acknowledged and …
    pub snd_una: u64,
    /// … next octet to be sent, to tell round trips apart (see [`Round`]).
    pub snd_nxt: u64,
    /// Segments in the network (RFC 6675 §4: pipe).
    pub flight: u32,
    /// Segments that were in the network before this ACK.
    pub prior_flight: u32,
    /// Segments that this ACK shows to be lost; seen by `on_ack` only.
    pub newly_lost: u64,
    /// Segments ever marked lost; a retransmission that was lost counts again.
    pub lost_total: u64,
    /// Segments ever delivered, the SYN included; counted where rates are sampled.
    pub delivered_total: u64,
    /// Delivery rate that this ACK shows, if the controller samples rates and the sample is valid.
    pub rate: Option<RateSample>,
    /// Pacing allows no segment before this.
    pub paced_until: Nanos,
    /// The recovery phase of the sender: `observe` sees it before the sender reacted to the ACK, `on_ack` after.
    pub recovery_phase: RecoveryPhase,
    /// Window that governs transmission, in segments: in fast recovery that of the proportional rate reduction, not the
    /// controller's.
    pub window_pkts: f64,
    /// The last round was limited by cwnd, not by the application or the receiver's window.
    pub cwnd_limited: bool,
    /// The receiver echoes a congestion mark (RFC 3168 §6.1.2).
    pub ecn_echo: bool,
}

impl AckEvidence {
    /// For how long pacing lets nothing leave.
    #[inline]
    pub fn paced_for(&self) -> Nanos {
        self.paced_until.saturating_sub(self.now)
    }
}

/// A delivery rate (draft-cheng-iccrg-delivery-rate-estimation §3): segments over the interval in which they were sent,
/// or acknowledged if that took longer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateSample {
    /// Segments delivered over the interval.
    pub delivered: u64,
    /// The interval.
    pub interval: Nanos,
    /// Segments that had been delivered when the newest of them was sent.
    pub prior_delivered: u64,
    /// The application, not the path, may have limited it.
    pub app_limited: bool,
    /// Segments in the network when the newest of them was sent, itself included.
    pub tx_in_flight: u32,
    /// Segments that had ever been marked lost by then.
    pub prior_lost: u64,
    /// Of those delivered, the ones whose acknowledgement echoed a congestion mark.
    pub marked: u64,
}

/// A segment that has just been marked lost, for a controller that samples rates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LostSegment {
    /// Segments in the network when it was sent, itself included.
    pub tx_in_flight: u32,
    /// Segments marked lost since then, itself included.
    pub lost: u64,
    /// The application, not the path, may have limited the rate at which it was sent.
    pub app_limited: bool,
    /// Segments delivered by now.
    pub delivered_total: u64,
}

/// Why a window is to be reduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// A lost segment, found by duplicate ACKs, SACK, RACK or a tail loss probe.
    Loss,
    /// A congestion mark (RFC 3168 §6.1.2, RFC 8511).
    EcnEcho,
    /// The retransmission timer expired for the first time for this segment.
    Timeout,
    /// It expired again.
    RepeatedTimeout,
}

/// What a congestion signal tells a controller.
#[derive(Clone, Copy, Debug)]
pub struct SignalEvidence {
    /// Time of the signal.
    pub now: Nanos,
    /// Segments in flight when it came (RFC 5681: FlightSize).
    pub flight: f64,
    /// Segments ever marked lost, those that the signal is about included.
    pub lost_total: u64,
    /// What it is.
    pub signal: Signal,
}

/// A round trip in sequence space: over when what was sent at its start has been acknowledged.
#[derive(Clone, Copy, Debug, Default)]
pub struct Round {
    end: u64,
}

impl Round {
    /// Whether `ack` ends the round; if so the next one begins.
    #[inline]
    pub fn turns(&mut self, ack: &AckEvidence) -> bool {
        let over = ack.snd_una > self.end;
        if over {
            self.end = ack.snd_nxt;
        }
        over
    }

    /// Begins a round now.
    pub fn restart(&mut self, ack: &AckEvidence) {
        self.end = ack.snd_nxt;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_ends_when_what_its_start_had_sent_is_acknowledged() {
        let ack = |snd_una, snd_nxt| AckEvidence {
            snd_una,
            snd_nxt,
            ..AckEvidence::default()
        };
        let mut round = Round::default();
        assert!(round.turns(&ack(1, 1000)));
        assert!(!round.turns(&ack(1000, 2000)), "up to the edge, not beyond");
        assert!(round.turns(&ack(1001, 2001)));
        assert!(!round.turns(&ack(1500, 2500)));
        round.restart(&ack(1500, 3000));
        assert!(!round.turns(&ack(2500, 3500)));
        assert!(round.turns(&ack(3001, 4000)));
    }
}
