//! The rules by which stacks differ, derived once per connection from its profile and recovery: the recovery algorithm, and
//! the rules of sender and receiver. The only place in `tcp` that reads the profile.
//!
//! Does not depend on the state of a connection.

use super::recovery::Algorithm;
use super::sender::validation::UnusedWindow;
use crate::config::{Profile, RecoveryKind, RtoRule, StackParams};

/// Linux 6.18 (`tcp_syn_linear_timeouts`): so many SYNs leave again without a longer timeout, beyond the limit of the others.
const LINEAR_SYN_TIMEOUTS: u32 = 4;

/// The rules of a sender that do not change while the connection lasts.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct StackRules {
    pub algorithm: Algorithm,
    /// The order in which segments left is kept.
    pub keeps_order: bool,
    /// SACK was agreed on.
    pub sack: bool,
    /// A tail loss probe is sent (RFC 8985 §7), which needs SACK.
    pub tail_loss_probe: bool,
    /// RFC 3042 §2: the first two duplicate ACKs each let a new segment leave. With SACK the pipe shrinks by itself
    /// (RFC 6675 §5 step (3)).
    pub limited_transmit: bool,
    /// Outside recovery all that is outstanding counts against the window: ns-2 knows a pipe in recovery only.
    pub counts_outstanding: bool,
    /// The window increases by the number of ACKs, not of segments (ns-2).
    pub counts_acks: bool,
    /// Without SACK, duplicate ACKs count as segments sacked (Linux).
    pub counts_dup_acks: bool,
    /// Segments that arrived twice count as delivered each time, for the window as for the rate (Linux, `tcp_dsack_seen`).
    ///
    /// Deviation: RFC 9937 §6.2 counts what snd.una and SACK blocks newly cover.
    pub counts_duplicates: bool,
    /// ns-2 forgets SACK at a timeout and learns nothing from it until all has been sent again.
    pub ignores_sack_after_timeout: bool,
    /// Karn's rule apart, SACK measures the round-trip time too.
    ///
    /// Deviation: as Linux, and as a sender whose window no loss stops; RFC 6298 measures on cumulative ACKs.
    pub sack_measures_rtt: bool,
    /// A timestamp measures where nothing else does.
    ///
    /// Deviation: as Linux; RFC 7323 §4.2 takes it always.
    pub timestamp_measures_rtt: bool,
    /// What an ACK holds back stays behind only while that ACK is dealt with (Linux).
    pub holds_for_one_ack: bool,
    /// An ACK of a retransmission gives no RTT sample.
    pub distrusts_retransmissions: bool,
    /// One segment at a time is timed (ns-2).
    pub times_one_segment: bool,
    /// Every ACK gives a sample of the round-trip time by its timestamp echo, duplicates too (ns-2's TCP/Linux).
    pub times_every_ack: bool,
    /// Every ACK is acted on, one that reports nothing new too (ns-2's TCP/Linux).
    pub acts_on_every_ack: bool,
    /// Segments leave in bursts, the last of which is pushed, and wait for one another (Linux).
    pub sends_bursts: bool,
    /// What becomes of a window that the application does not use.
    pub unused_window: UnusedWindow,
    /// SYNs that leave again without a longer timeout.
    pub linear_syn_timeouts: u32,
    /// Of so many lost SYNs the window takes no notice; after more it begins with one segment. RFC 5681 §3.1: none; Linux
    /// (`tcp_init_transfer`): one.
    pub forgiven_syns: u32,
    /// A congestion mark reduces the window over a round trip (Linux).
    pub mark_reduces_gradually: bool,
    /// Deviation: Linux takes cwnd for RecoverFS; RFC 9937 §6.1 the flight.
    pub recover_fs_is_cwnd: bool,
    /// Deviation: in Linux the ACK that ends recovery increases the window.
    pub exit_ack_increases: bool,
}

impl StackRules {
    /// Those of `params`; `models_path`: the controller governs transmission in recovery too.
    pub fn of(params: &StackParams, models_path: bool) -> Self {
        let algorithm = algorithm(params, models_path);
        let linux = params.profile == Profile::Linux;
        let recovers_as_linux = algorithm == Algorithm::Linux;
        let ns2 = matches!(
            algorithm,
            Algorithm::Ns2Reno | Algorithm::Ns2Newreno | Algorithm::Ns2Sack
        );
        let ns2_tcp_linux = algorithm == Algorithm::Ns2TcpLinux;
        let ns2_timer = params.rto_rule == RtoRule::Ns2;
        let sack = params.sack_enabled();
        let snack = algorithm == Algorithm::Snack;
        Self {
            algorithm,
            keeps_order: algorithm.reads_order(),
            sack,
            tail_loss_probe: params.tail_loss_probe && sack,
            limited_transmit: params.limited_transmit && (ns2 || !sack && !recovers_as_linux),
            counts_outstanding: ns2,
            counts_acks: ns2 || ns2_tcp_linux,
            counts_dup_acks: recovers_as_linux && !sack,
            counts_duplicates: linux,
            ignores_sack_after_timeout: ns2,
            sack_measures_rtt: linux || snack,
            timestamp_measures_rtt: linux && params.timestamps,
            holds_for_one_ack: recovers_as_linux,
            distrusts_retransmissions: snack,
            times_one_segment: ns2_timer && !ns2_tcp_linux,
            times_every_ack: ns2_timer && ns2_tcp_linux,
            acts_on_every_ack: ns2_tcp_linux,
            sends_bursts: linux,
            unused_window: match params.profile {
                Profile::Ns2 => UnusedWindow::Kept,
                Profile::Rfc => UnusedWindow::Restarts,
                Profile::Linux if models_path => UnusedWindow::Kept,
                Profile::Linux => UnusedWindow::Decays,
            },
            linear_syn_timeouts: if linux { LINEAR_SYN_TIMEOUTS } else { 0 },
            forgiven_syns: match params.profile {
                Profile::Rfc => 0,
                Profile::Linux => 1,
                Profile::Ns2 => u32::MAX,
            },
            mark_reduces_gradually: recovers_as_linux && !models_path,
            recover_fs_is_cwnd: linux,
            exit_ack_increases: linux,
        }
    }
}

/// The rules by which receivers decide when to acknowledge and what to echo. They do not change while the connection
/// lasts.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct AckRules {
    /// The delay of an ACK follows the spacing of segments (Linux); RFC 5681 §4.2 has a constant one.
    pub adapts_delay: bool,
    /// More than one full segment is acknowledged at once (Linux), not only two (RFC 5681 §4.2).
    pub acks_beyond_one_segment: bool,
    /// Data that the application has read up to a push is acknowledged at once (Linux).
    pub acks_pushed_data: bool,
    /// RFC 5681 §4.2: a segment that fills a gap in part is acknowledged at once.
    pub acks_partial_fill: bool,
    /// ACKs of a gap are spaced out (Linux, with SACK).
    pub spaces_gap_acks: bool,
    /// The timestamp of a segment that ends before the last ACK is not echoed (Linux, `tcp_sequence`).
    ///
    /// Deviation: RFC 7323 §5.3 (R2) refuses all that lies before the window; the profile `rfc` echoes it.
    pub refuses_old_timestamps: bool,
}

impl AckRules {
    /// Those of `params`.
    pub fn of(params: &StackParams) -> Self {
        let linux = params.profile == Profile::Linux;
        Self {
            adapts_delay: linux,
            acks_beyond_one_segment: linux,
            acks_pushed_data: linux,
            acks_partial_fill: !linux,
            spaces_gap_acks: linux && params.sack_enabled(),
            refuses_old_timestamps: linux,
        }
    }
}

/// The recovery algorithm of a connection.
fn algorithm(params: &StackParams, models_path: bool) -> Algorithm {
    let ns2 = params.profile == Profile::Ns2 && !models_path;
    match params.recovery {
        RecoveryKind::Reno if ns2 => Algorithm::Ns2Reno,
        RecoveryKind::Newreno if ns2 => Algorithm::Ns2Newreno,
        RecoveryKind::Sack if ns2 => Algorithm::Ns2Sack,
        RecoveryKind::RackPrr if params.profile == Profile::Linux => Algorithm::Linux,
        RecoveryKind::Reno => Algorithm::Reno,
        RecoveryKind::Newreno => Algorithm::Newreno,
        RecoveryKind::Sack => Algorithm::Sack,
        RecoveryKind::Prr => Algorithm::Prr,
        RecoveryKind::Fack => Algorithm::Fack,
        RecoveryKind::RackPrr => Algorithm::Rack,
        RecoveryKind::Ns2TcpLinux => Algorithm::Ns2TcpLinux,
        RecoveryKind::Snack => Algorithm::Snack,
        RecoveryKind::Aerotcp => Algorithm::Aerotcp,
        RecoveryKind::Supertcp => Algorithm::Supertcp,
    }
}
