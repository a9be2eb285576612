//! Loss recovery: what is lost, what is retransmitted, how much may be in flight meanwhile, and which timers run.
//!
//! One file per algorithm. An algorithm is a type without data that implements [`Recovery`] over the sender's state;
//! the list below is the only place that names them all, and `StackRules::algorithm` chooses one when the connection is
//! made. Read `rfc` first: the state machine that most of them share.

pub(in crate::tcp) mod aerotcp;
pub(in crate::tcp) mod fack;
pub(in crate::tcp) mod linux;
pub(in crate::tcp) mod linux_timer;
pub(in crate::tcp) mod newreno;
pub(in crate::tcp) mod ns2;
pub(in crate::tcp) mod ns2_tcp_linux;
pub(in crate::tcp) mod prr;
pub(in crate::tcp) mod rack;
pub(in crate::tcp) mod reno;
pub(in crate::tcp) mod rfc;
pub(in crate::tcp) mod sack;
pub(in crate::tcp) mod snack;
pub(in crate::tcp) mod supertcp;
pub(in crate::tcp) mod undo;
pub(in crate::tcp) mod window;

use crate::cc::RateSample;
use crate::sim::time::Nanos;
use crate::tcp::scoreboard::Digest;
use crate::tcp::sender::Sender;
use window::RecoveryWindow;

/// An ACK with what the scoreboard learned from it.
pub struct Ack {
    /// Its time.
    pub now: Nanos,
    /// It moved `snd_una`.
    pub advances: bool,
    /// By so many octets.
    pub acked_bytes: u64,
    /// Round-trip time of the newest segment that it delivers.
    pub rtt: Option<Nanos>,
    /// It is a duplicate.
    pub duplicate: bool,
    /// Segments in the network before it, and ever marked lost.
    pub prior_flight: u32,
    /// See `prior_flight`.
    pub prior_lost: u64,
    /// First octet of the highest segment that SACK had reported before it; `snd_una` if there was none.
    pub prior_high: u64,
    /// Minimum RTT before it.
    pub prior_min_rtt: Option<Nanos>,
    /// Delivery rate that it shows.
    pub rate: Option<RateSample>,
    /// It echoes a congestion mark.
    pub ecn_echo: bool,
    /// What the scoreboard learned from it.
    pub digest: Digest,
}

/// A segment with data that has just left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tcp) enum Departure {
    /// New data.
    New,
    /// Segment `number` again, because it is lost.
    Retransmission(u64),
    /// Segment `number` again, regardless of the window.
    Forced(u64),
    /// A tail loss probe with new data, or with the segment of this number.
    Probe(Option<u64>),
}

/// A recovery algorithm. It states only what it does differently from the provided methods: the RFCs' state machine (`rfc`),
/// and in its steps what several algorithms share.
pub(in crate::tcp) trait Recovery {
    /// It reads the order in which segments left.
    const READS_ORDER: bool = false;

    /// While nothing is lost, reported or suspected, an ACK that only acknowledges does nothing but increase the window,
    /// restart the timer and, if it reads the order of departure, move RACK on (see `sender/fast_path`).
    const ALLOWS_FAST_PATH: bool = true;

    /// Reacts to an ACK: finds losses, begins and ends recovery, increases the window.
    fn on_ack(sender: &mut Sender, ack: &Ack)
    where
        Self: Sized,
    {
        rfc::on_ack::<Self>(sender, ack);
    }

    /// The retransmission timer expired and has backed off.
    fn on_timeout(sender: &mut Sender, now: Nanos) {
        rfc::on_timeout(sender, now);
    }

    /// RACK's reordering timer expired.
    fn on_reordering_timer(_sender: &mut Sender, _now: Nanos) {}

    /// The timer of the tail loss probe expired.
    fn on_probe_timer(_sender: &mut Sender, _now: Nanos) {}

    /// Whether a probe with new data may leave now.
    fn probe_may_leave(_sender: &mut Sender, _now: Nanos) -> bool {
        true
    }

    /// Starts the timers for a segment that has left.
    #[inline]
    fn on_departure(sender: &mut Sender, departure: Departure, now: Nanos) {
        rfc::time_departure(sender, departure, now);
    }

    /// Restarts the timers after an ACK that leaves data outstanding.
    #[inline]
    fn restart_timers(sender: &mut Sender, ack: &Ack) {
        rfc::restart_timer(sender, ack);
    }

    /// Without SACK: counts a duplicate ACK on the scoreboard; returns the segments delivered.
    fn count_dup_acks(_: &mut Sender, _advances: bool, _duplicate: bool, digest: &Digest) -> u32 {
        digest.delivered
    }

    /// A DSACK reported a retransmission that was unnecessary.
    fn on_dsack(sender: &mut Sender, prior_una: u64) {
        sender.rack.note_dsack(prior_una, sender.snd_nxt);
    }

    /// A step of `rfc::on_ack`: marks what this ACK shows to be lost; returns whether anything was. By default nothing is.
    fn find_losses(_sender: &mut Sender, _ack: &Ack) -> bool {
        false
    }

    /// The same: whether recovery begins, after so many duplicate ACKs. By default (RACK, SNACK) it begins where any segment is
    /// marked lost, however many came; an algorithm that counts duplicate ACKs has its own rule.
    fn is_triggered(sender: &Sender, _dup_acks: u32) -> bool {
        sender.board.lost() > 0
    }

    /// The same: recovery begins, and the window has been reduced. Returns what governs transmission, by default the pipe, and
    /// may move where recovery ends.
    fn begin(_sender: &mut Sender, _entry: &mut rfc::Entry) -> RecoveryWindow {
        RecoveryWindow::Pipe
    }

    /// The same: an ACK in recovery that does not end it; `newly_lost`: it showed a loss. By default it continues the
    /// proportional rate reduction (RFC 9937) if `begin` returned one, and else does nothing.
    fn on_ack_in_recovery(sender: &mut Sender, ack: &Ack, newly_lost: bool) {
        sender.reduce_proportionally(ack.digest.delivered, ack.advances && !newly_lost);
    }

    /// The same: where cwnd is left at the end of recovery, if not where it is, as by default.
    fn exit_cwnd(_sender: &Sender) -> Option<f64> {
        None
    }
}

macro_rules! algorithms {
    ($($name:ident: $rules:ty,)+) => {
        /// The recovery algorithm of a connection.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(in crate::tcp) enum Algorithm {
            $(#[allow(missing_docs, reason = "documented where it is implemented")] $name,)+
        }

        impl Algorithm {
            pub fn reads_order(self) -> bool {
                match self { $(Self::$name => <$rules>::READS_ORDER,)+ }
            }

            pub fn allows_fast_path(self) -> bool {
                match self { $(Self::$name => <$rules>::ALLOWS_FAST_PATH,)+ }
            }

            #[inline]
            pub fn on_ack(self, sender: &mut Sender, ack: &Ack) {
                match self { $(Self::$name => <$rules>::on_ack(sender, ack),)+ }
            }

            pub fn on_timeout(self, sender: &mut Sender, now: Nanos) {
                match self { $(Self::$name => <$rules>::on_timeout(sender, now),)+ }
            }

            pub fn on_reordering_timer(self, sender: &mut Sender, now: Nanos) {
                match self { $(Self::$name => <$rules>::on_reordering_timer(sender, now),)+ }
            }

            pub fn on_probe_timer(self, sender: &mut Sender, now: Nanos) {
                match self { $(Self::$name => <$rules>::on_probe_timer(sender, now),)+ }
            }

            pub fn probe_may_leave(self, sender: &mut Sender, now: Nanos) -> bool {
                match self { $(Self::$name => <$rules>::probe_may_leave(sender, now),)+ }
            }

            #[inline(always)]
            pub fn on_departure(self, sender: &mut Sender, departure: Departure, now: Nanos) {
                match self { $(Self::$name => <$rules>::on_departure(sender, departure, now),)+ }
            }

            #[inline]
            pub fn restart_timers(self, sender: &mut Sender, ack: &Ack) {
                match self { $(Self::$name => <$rules>::restart_timers(sender, ack),)+ }
            }

            pub fn count_dup_acks(self, sender: &mut Sender, advances: bool, duplicate: bool, digest: &Digest) -> u32 {
                match self { $(Self::$name => <$rules>::count_dup_acks(sender, advances, duplicate, digest),)+ }
            }

            pub fn on_dsack(self, sender: &mut Sender, prior_una: u64) {
                match self { $(Self::$name => <$rules>::on_dsack(sender, prior_una),)+ }
            }
        }
    };
}

algorithms! {
    Reno: reno::RenoRecovery,
    Newreno: newreno::NewrenoRecovery,
    Sack: sack::SackRecovery,
    Prr: prr::PrrRecovery,
    Fack: fack::FackRecovery,
    Rack: rack::RackRecovery,
    Snack: snack::SnackRecovery,
    Linux: linux::LinuxRecovery,
    Ns2Reno: ns2::Ns2Recovery<ns2::Reno>,
    Ns2Newreno: ns2::Ns2Recovery<ns2::Newreno>,
    Ns2Sack: ns2::Ns2Recovery<ns2::Sack>,
    Ns2TcpLinux: ns2_tcp_linux::Ns2TcpLinuxRecovery,
    Aerotcp: aerotcp::AerotcpRecovery,
    Supertcp: supertcp::SupertcpRecovery,
}
