//! Stack parameters: the profiles, what a scenario may override, and the result.
//!
//! Does not depend on how the parameters are used. A profile is a complete set of values; an override replaces one of
//! them.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::sim::time::{MILLISECOND, Nanos, SECOND};

/// A complete set of stack parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Profile {
    /// As the RFCs recommend.
    #[default]
    Rfc,
    /// As Linux 6.x: RACK with PRR, HyStart for cubic, quick ACKs at the start, a minimum RTO of 200 ms.
    Linux,
    /// As ns-2.35, the simulator of the papers: windows in packets, an ACK per packet, clock ticks of 0.1 s.
    Ns2,
}

impl Profile {
    /// Every profile.
    pub const ALL: [Self; 3] = [Self::Rfc, Self::Linux, Self::Ns2];

    /// Its name in scenarios.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rfc => "rfc",
            Self::Linux => "linux",
            Self::Ns2 => "ns2",
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How losses are detected and what limits the flight during recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RecoveryKind {
    /// Fast recovery of RFC 5681 §3.2: the first ACK of new data ends it.
    Reno,
    /// RFC 6582: each partial ACK triggers a retransmission.
    Newreno,
    /// RFC 6675: SACK scoreboard and pipe.
    Sack,
    /// Loss detection of RFC 6675 with proportional rate reduction (RFC 9937).
    Prr,
    /// Loss detection of RACK (RFC 8985) with proportional rate reduction, as in Linux.
    RackPrr,
    /// FACK: octets below the forward-most SACKed octet do not count as in flight (Mathis and Mahdavi 1996).
    Fack,
    /// ns-2's Agent/TCP/Linux: losses by the forward-most SACKed segment, with rate halving.
    Ns2TcpLinux,
    /// SCPS-TP: every reported hole is retransmitted at once. Only its variant has it.
    #[serde(skip_deserializing)]
    Snack,
    /// AeroTCP's. Only its variant has it.
    #[serde(skip_deserializing)]
    Aerotcp,
    /// Super TCP's. Only its variant has it.
    #[serde(skip_deserializing)]
    Supertcp,
}

impl RecoveryKind {
    /// Its name in a configuration, or that of the only variant that has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Reno => "reno",
            Self::Newreno => "newreno",
            Self::Sack => "sack",
            Self::Prr => "prr",
            Self::RackPrr => "rack_prr",
            Self::Fack => "fack",
            Self::Ns2TcpLinux => "ns2_tcp_linux",
            Self::Snack => "snack",
            Self::Aerotcp => "aerotcp",
            Self::Supertcp => "supertcp",
        }
    }
}

/// How the retransmission timeout is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RtoRule {
    /// RFC 6298: max(SRTT + max(G, 4 RTTVAR), minimum).
    Rfc6298,
    /// Linux: SRTT + max(deviation term, minimum); the term decreases at most once per round trip.
    Linux,
    /// ns-2: one timed segment at a time, in whole ticks of the granularity.
    Ns2,
}

/// How a sender leaves slow start without a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SlowStartKind {
    /// Not at all.
    Standard,
    /// HyStart as in Linux: ACK train and delay increase.
    Hystart,
    /// HyStart++ (RFC 9406).
    Hystartpp,
}

/// When a partial segment may leave while data are outstanding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NagleRule {
    /// At once, as with `TCP_NODELAY`.
    Off,
    /// When all data are acknowledged (Nagle, RFC 9293 §3.7.4).
    Rfc,
    /// When the previous partial segment is acknowledged (Minshall's variant, as in Linux).
    Minshall,
}

/// How a sender reacts to an announced handover.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HandoverRule {
    /// Not at all: handovers are not announced.
    #[default]
    Off,
    /// ssthresh is the bandwidth-delay product of the new path, and cwnd at most that.
    SlowStart,
    /// Both are the bandwidth-delay product of the new path.
    Jump,
}

/// Low-priority probe segments (TCP-Peach: dummy segments). Each is answered by a segment of the same priority.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ProbeSegments {
    /// Differentiated services code point of the segments and their answers.
    pub dscp: u8,
    /// Number of them that fill the first round-trip time, together with the first data segment.
    pub sudden_start_pkts: u32,
    /// Number of them that leave in fast recovery, as a share of the window before the loss.
    pub recovery_share: f64,
    /// They carry unacknowledged data, the oldest first; otherwise the latest data that have been sent.
    pub carry_unacknowledged: bool,
}

/// Parameters that replace those of the profile; absent ones keep its value.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(
    missing_docs,
    reason = "each is the field of StackParams of the same name"
)]
pub struct StackOverrides {
    pub handshake: Option<bool>,
    pub close: Option<bool>,
    pub user_timeout_ns: Option<Nanos>,
    pub retry_limit: Option<u32>,
    pub syn_retry_limit: Option<u32>,
    pub timestamps: Option<bool>,
    pub smss_bytes: Option<u32>,
    pub header_bytes: Option<u32>,
    pub initial_window_pkts: Option<u32>,
    pub initial_ssthresh_pkts: Option<u32>,
    pub fixed_window_pkts: Option<u32>,
    pub slow_start_limit_pkts: Option<u32>,
    pub slow_start: Option<SlowStartKind>,
    pub limited_transmit: Option<bool>,
    pub recovery: Option<RecoveryKind>,
    pub rto_rule: Option<RtoRule>,
    pub min_rto_ns: Option<Nanos>,
    pub initial_rto_ns: Option<Nanos>,
    pub max_rto_ns: Option<Nanos>,
    pub clock_granularity_ns: Option<Nanos>,
    pub delayed_ack: Option<bool>,
    pub delayed_ack_timeout_ns: Option<Nanos>,
    pub delayed_ack_after_slow_start: Option<bool>,
    pub quickack_segments: Option<u32>,
    pub sack: Option<bool>,
    pub dsack: Option<bool>,
    pub receive_buffer_bytes: Option<u64>,
    pub receive_buffer_max_bytes: Option<u64>,
    pub receive_window_growth: Option<bool>,
    pub read_rate_bps: Option<f64>,
    pub reset_timer_on_each_partial_ack: Option<bool>,
    pub tail_loss_probe: Option<bool>,
    pub undo: Option<bool>,
    pub frto: Option<bool>,
    pub pacing: Option<bool>,
    pub nagle: Option<NagleRule>,
    pub send_buffer_bytes: Option<u64>,
    pub send_buffer_max_bytes: Option<u64>,
    pub notsent_lowat_bytes: Option<u64>,
    pub ecn: Option<bool>,
    pub ecn_beta: Option<f64>,
    pub freeze_warning_ns: Option<Nanos>,
    pub handover_adaptation: Option<HandoverRule>,
    pub quick_start_bps: Option<f64>,
}

/// The resolved parameters of a flow's stack.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct StackParams {
    /// Open with SYN, SYN-ACK, ACK; otherwise the connection is established when the flow starts.
    pub handshake: bool,
    /// Close with FIN in both directions after the application's last octet; otherwise the flow ends without.
    pub close: bool,
    /// Reset the connection when nothing has been acknowledged for this time since the first timeout (RFC 5482); none:
    /// `retry_limit` decides.
    pub user_timeout_ns: Option<Nanos>,
    /// Reset the connection after the time that this number of consecutive timeouts takes from `min_rto_ns` on (Linux
    /// `tcp_retries2`), or after this number of unanswered window probes; none: never.
    pub retry_limit: Option<u32>,
    /// Retransmissions of the SYN before the connection attempt is given up; none: no limit.
    pub syn_retry_limit: Option<u32>,
    /// Timestamps option (RFC 7323): 12 octets of header and three SACK blocks instead of four.
    pub timestamps: bool,
    /// Payload of a full segment.
    pub smss_bytes: u32,
    /// IP and TCP header of every segment with its options.
    pub header_bytes: u32,
    /// Initial window (RFC 6928).
    pub initial_window_pkts: u32,
    /// Initial ssthresh; none: unlimited (RFC 5681 §3.1).
    pub initial_ssthresh_pkts: Option<u32>,
    /// Fixed window, instead of the variant's controller; none: the variant's controller.
    pub fixed_window_pkts: Option<u32>,
    /// Maximum increase of cwnd per ACK in slow start, segments (RFC 5681 §3.1: 1; RFC 3465: L = 2); none: no limit.
    pub slow_start_limit_pkts: Option<u32>,
    /// Exit of slow start without a loss; none: the variant decides.
    pub slow_start: Option<SlowStartKind>,
    /// Limited transmit (RFC 3042).
    pub limited_transmit: bool,
    /// Recovery of the variants that do not determine it themselves.
    pub recovery: RecoveryKind,
    /// Formula of the retransmission timeout.
    pub rto_rule: RtoRule,
    /// Minimum retransmission timeout (RFC 6298 §2.4: 1 s).
    pub min_rto_ns: Nanos,
    /// Timeout before the first RTT sample (RFC 6298 §2.1: 1 s).
    pub initial_rto_ns: Nanos,
    /// Maximum retransmission timeout (RFC 6298 §2.5: at least 60 s).
    pub max_rto_ns: Nanos,
    /// Clock granularity G (RFC 6298 §2.3).
    pub clock_granularity_ns: Nanos,
    /// Acknowledge every second full segment, or after the timeout (RFC 5681 §4.2).
    pub delayed_ack: bool,
    /// Maximum delay of an ACK.
    pub delayed_ack_timeout_ns: Nanos,
    /// Acknowledge every segment while the sender signals slow start (RFC 2760 §3.2.3).
    pub delayed_ack_after_slow_start: bool,
    /// Segments that are acknowledged immediately at the start of a connection and after a duplicate (Linux: quick
    /// ACKs).
    pub quickack_segments: u32,
    /// SACK (RFC 2018), if the recovery uses it.
    pub sack: bool,
    /// Report duplicate segments (RFC 2883).
    pub dsack: bool,
    /// Receive buffer of the last node.
    pub receive_buffer_bytes: u64,
    /// Maximum that autotuning grows the buffer to, by what the application reads per round trip; none: no autotuning.
    pub receive_buffer_max_bytes: Option<u64>,
    /// Offer four fifths of the buffer at first and the rest as full segments arrive (Linux); otherwise all of it at
    /// once.
    pub receive_window_growth: bool,
    /// Rate at which the application reads; none: immediately.
    pub read_rate_bps: Option<f64>,
    /// NewReno's slow-but-steady variant; otherwise only the first partial ACK restarts the timer (RFC 6582 §3.2).
    pub reset_timer_on_each_partial_ack: bool,
    /// Tail loss probe (RFC 8985 §7).
    pub tail_loss_probe: bool,
    /// Undo the decrease after a spurious retransmission or timeout (RFC 3522, RFC 3708, RFC 4015).
    pub undo: bool,
    /// F-RTO (RFC 5682), if timestamps do not reveal a spurious timeout or under Linux.
    pub frto: bool,
    /// Pace a window-based controller: twice the window per round trip in slow start, 1.2 times after it, as Linux's
    /// internal pacing. Controllers with their own pacing rate always pace.
    pub pacing: bool,
    /// When a partial segment may leave.
    pub nagle: NagleRule,
    /// Memory for octets that are written and not acknowledged; none: the application never waits.
    pub send_buffer_bytes: Option<u64>,
    /// Maximum that autotuning grows the send buffer to with cwnd; none: no autotuning.
    pub send_buffer_max_bytes: Option<u64>,
    /// Unsent octets above which the application waits (Linux: `TCP_NOTSENT_LOWAT`); none: any number.
    pub notsent_lowat_bytes: Option<u64>,
    /// Negotiate ECN (RFC 3168 §6.1). By default Linux accepts ECN and does not request it (`tcp_ecn`).
    pub ecn: bool,
    /// Share of FlightSize after a congestion mark (RFC 8511 §3); none: as after a loss.
    pub ecn_beta: Option<f64>,
    /// Time before an outage at which the receiver closes its window, until the end of the outage (Freeze-TCP); none:
    /// not at all.
    pub freeze_warning_ns: Option<Nanos>,
    /// How the sender reacts to handovers.
    pub handover_adaptation: HandoverRule,
    /// Rate that the SYN requests from the routers (Quick-Start, RFC 4782); none: no request.
    pub quick_start_bps: Option<f64>,
    /// Maximum number of ACKs per round-trip time for data in order; only a variant sets it.
    pub acks_per_round_trip: Option<f64>,
    /// Low-priority probe segments; only a variant sets them.
    pub low_priority_probes: Option<ProbeSegments>,
    /// The profile, for behaviour of ns-2 and Linux that no other parameter describes.
    pub profile: Profile,
}

/// IPv4 and TCP header without options.
const BARE_HEADER_BYTES: u32 = 40;
/// Timestamps option with its padding (RFC 7323 appendix A).
const TIMESTAMPS_BYTES: u32 = 12;
/// Octets of the MSS option (RFC 9293 §3.7.1) and, with padding, of the window scale (RFC 7323 §2.2).
const MSS_OPTION_BYTES: u32 = 4;
const WINDOW_SCALE_BYTES: u32 = 4;
/// IP packet of a full segment unless the scenario gives a size.
const DEFAULT_PACKET_BYTES: u32 = 1500;
/// ns-2's `window_`: the receiver's window and the initial ssthresh, packets.
const NS2_WINDOW_PKTS: u32 = 20;
/// ns-2's `maxSackBlocks_`.
const NS2_SACK_BLOCKS: usize = 3;
/// Linux 6.18 (`tcp_rmem`): initial and maximum memory of a receive buffer; full Ethernet segments fill five eighths of
/// it with payload.
const LINUX_BUFFER_BYTES: u64 = (128 << 10) * 5 / 8;
const LINUX_BUFFER_MAX_BYTES: u64 = (32 << 20) * 5 / 8;

impl StackParams {
    /// Octets of a full segment with its headers.
    pub fn packet_bytes(&self) -> u32 {
        self.smss_bytes + self.header_bytes
    }

    /// The parameters of `profile` with `overrides`.
    pub fn resolve(profile: Profile, overrides: &StackOverrides) -> Self {
        let o = overrides;
        let base = Self::of(profile).sized(o);
        Self {
            handshake: o.handshake.unwrap_or(base.handshake),
            close: o.close.unwrap_or(base.close),
            user_timeout_ns: o.user_timeout_ns.or(base.user_timeout_ns),
            retry_limit: o.retry_limit.or(base.retry_limit),
            syn_retry_limit: o.syn_retry_limit.or(base.syn_retry_limit),
            initial_window_pkts: o.initial_window_pkts.unwrap_or(base.initial_window_pkts),
            fixed_window_pkts: o.fixed_window_pkts.or(base.fixed_window_pkts),
            slow_start_limit_pkts: o.slow_start_limit_pkts.or(base.slow_start_limit_pkts),
            slow_start: o.slow_start.or(base.slow_start),
            limited_transmit: o.limited_transmit.unwrap_or(base.limited_transmit),
            recovery: o.recovery.unwrap_or(base.recovery),
            rto_rule: o.rto_rule.unwrap_or(base.rto_rule),
            min_rto_ns: o.min_rto_ns.unwrap_or(base.min_rto_ns),
            initial_rto_ns: o.initial_rto_ns.unwrap_or(base.initial_rto_ns),
            max_rto_ns: o.max_rto_ns.unwrap_or(base.max_rto_ns),
            clock_granularity_ns: o.clock_granularity_ns.unwrap_or(base.clock_granularity_ns),
            delayed_ack: o.delayed_ack.unwrap_or(base.delayed_ack),
            delayed_ack_timeout_ns: o
                .delayed_ack_timeout_ns
                .unwrap_or(base.delayed_ack_timeout_ns),
            delayed_ack_after_slow_start: o
                .delayed_ack_after_slow_start
                .unwrap_or(base.delayed_ack_after_slow_start),
            quickack_segments: o.quickack_segments.unwrap_or(base.quickack_segments),
            sack: o.sack.unwrap_or(base.sack),
            dsack: o.dsack.unwrap_or(base.dsack),
            // Linux: no autotuning of a buffer whose size is given (SOCK_RCVBUF_LOCK).
            receive_buffer_max_bytes: (o.receive_buffer_max_bytes).or(base
                .receive_buffer_max_bytes
                .filter(|_| o.receive_buffer_bytes.is_none())),
            receive_window_growth: o
                .receive_window_growth
                .unwrap_or(base.receive_window_growth),
            read_rate_bps: o.read_rate_bps.or(base.read_rate_bps),
            reset_timer_on_each_partial_ack: o
                .reset_timer_on_each_partial_ack
                .unwrap_or(base.reset_timer_on_each_partial_ack),
            tail_loss_probe: o.tail_loss_probe.unwrap_or(base.tail_loss_probe),
            undo: o.undo.unwrap_or(base.undo),
            frto: o.frto.unwrap_or(base.frto),
            pacing: o.pacing.unwrap_or(base.pacing),
            nagle: o.nagle.unwrap_or(base.nagle),
            send_buffer_bytes: o.send_buffer_bytes.or(base.send_buffer_bytes),
            send_buffer_max_bytes: o.send_buffer_max_bytes.or(base.send_buffer_max_bytes),
            notsent_lowat_bytes: o.notsent_lowat_bytes.or(base.notsent_lowat_bytes),
            ecn: o.ecn.unwrap_or(base.ecn),
            ecn_beta: o.ecn_beta.or(base.ecn_beta),
            freeze_warning_ns: o.freeze_warning_ns.or(base.freeze_warning_ns),
            handover_adaptation: o.handover_adaptation.unwrap_or(base.handover_adaptation),
            quick_start_bps: o.quick_start_bps.or(base.quick_start_bps),
            ..base
        }
    }

    /// The parameters with sizes that depend on each other: headers, segments, receive buffer and ssthresh.
    fn sized(self, o: &StackOverrides) -> Self {
        let timestamps = o.timestamps.unwrap_or(self.timestamps);
        let natural = BARE_HEADER_BYTES + if timestamps { TIMESTAMPS_BYTES } else { 0 };
        let header_bytes = o.header_bytes.unwrap_or(natural);
        let smss_bytes = o
            .smss_bytes
            .unwrap_or(DEFAULT_PACKET_BYTES.saturating_sub(header_bytes));
        let receive_buffer_bytes = o.receive_buffer_bytes.unwrap_or(match self.profile {
            Profile::Ns2 => u64::from(NS2_WINDOW_PKTS * smss_bytes),
            Profile::Rfc | Profile::Linux => self.receive_buffer_bytes,
        });
        // In ns-2, `window_` is both.
        let window_pkts = u32::try_from(receive_buffer_bytes / u64::from(smss_bytes.max(1))).ok();
        let window_pkts = window_pkts.filter(|_| self.profile == Profile::Ns2);
        let natural_ssthresh = self.initial_ssthresh_pkts.or(window_pkts);
        Self {
            timestamps,
            header_bytes,
            smss_bytes,
            receive_buffer_bytes,
            initial_ssthresh_pkts: o.initial_ssthresh_pkts.or(natural_ssthresh),
            ..self
        }
    }

    fn of(profile: Profile) -> Self {
        match profile {
            Profile::Rfc => Self::rfc(),
            Profile::Linux => Self::linux(),
            Profile::Ns2 => Self::ns2(),
        }
    }

    fn rfc() -> Self {
        Self {
            handshake: true,
            close: false,
            user_timeout_ns: None,
            retry_limit: None,
            syn_retry_limit: None,
            timestamps: true,
            smss_bytes: 1448,
            header_bytes: 52,
            initial_window_pkts: 10,
            initial_ssthresh_pkts: None,
            fixed_window_pkts: None,
            slow_start_limit_pkts: Some(1),
            slow_start: None,
            limited_transmit: true,
            recovery: RecoveryKind::Sack,
            rto_rule: RtoRule::Rfc6298,
            min_rto_ns: SECOND,
            initial_rto_ns: SECOND,
            max_rto_ns: 60 * SECOND,
            clock_granularity_ns: MILLISECOND,
            delayed_ack: true,
            delayed_ack_timeout_ns: 200 * MILLISECOND,
            delayed_ack_after_slow_start: false,
            quickack_segments: 0,
            sack: true,
            dsack: false,
            receive_buffer_bytes: 16 << 20,
            receive_buffer_max_bytes: None,
            receive_window_growth: false,
            read_rate_bps: None,
            reset_timer_on_each_partial_ack: false,
            tail_loss_probe: false,
            undo: true,
            frto: true,
            pacing: false,
            nagle: NagleRule::Rfc,
            send_buffer_bytes: None,
            send_buffer_max_bytes: None,
            notsent_lowat_bytes: None,
            ecn: false,
            ecn_beta: None,
            freeze_warning_ns: None,
            handover_adaptation: HandoverRule::Off,
            quick_start_bps: None,
            acks_per_round_trip: None,
            low_priority_probes: None,
            profile: Profile::Rfc,
        }
    }

    /// Values of Linux 6.x with default sysctls.
    fn linux() -> Self {
        Self {
            retry_limit: Some(15),
            syn_retry_limit: Some(6),
            slow_start_limit_pkts: None,
            recovery: RecoveryKind::RackPrr,
            rto_rule: RtoRule::Linux,
            min_rto_ns: 200 * MILLISECOND,
            max_rto_ns: 120 * SECOND,
            delayed_ack_timeout_ns: 40 * MILLISECOND,
            quickack_segments: 16,
            receive_buffer_bytes: LINUX_BUFFER_BYTES,
            receive_buffer_max_bytes: Some(LINUX_BUFFER_MAX_BYTES),
            receive_window_growth: true,
            dsack: true,
            tail_loss_probe: true,
            nagle: NagleRule::Minshall,
            profile: Profile::Linux,
            ..Self::rfc()
        }
    }

    /// Defaults of ns-2.35, except the tick, which is that of its older releases and of the papers (0.1 s).
    fn ns2() -> Self {
        Self {
            handshake: false,
            timestamps: false,
            initial_window_pkts: 2,
            recovery: RecoveryKind::Ns2TcpLinux,
            rto_rule: RtoRule::Ns2,
            min_rto_ns: 200 * MILLISECOND,
            initial_rto_ns: 3 * SECOND,
            clock_granularity_ns: 100 * MILLISECOND,
            delayed_ack: false,
            undo: false,
            frto: false,
            profile: Profile::Ns2,
            ..Self::rfc()
        }
    }

    /// Whether it is the stack of ns-2 that runs Linux's modules of congestion control.
    pub fn runs_ns2_module(&self) -> bool {
        self.profile == Profile::Ns2 && self.recovery == RecoveryKind::Ns2TcpLinux
    }

    /// Tick of the clock of ns-2's timeout: that of TCP/Linux is Linux's, whatever the granularity of the others.
    pub fn ns2_tick_ns(&self) -> Nanos {
        if self.recovery == RecoveryKind::Ns2TcpLinux {
            MILLISECOND
        } else {
            self.clock_granularity_ns
        }
    }

    /// Whether SACK is negotiated: the recovery must use it.
    #[inline]
    pub fn sack_enabled(&self) -> bool {
        self.sack
            && matches!(
                self.recovery,
                RecoveryKind::Sack
                    | RecoveryKind::Prr
                    | RecoveryKind::RackPrr
                    | RecoveryKind::Fack
                    | RecoveryKind::Ns2TcpLinux
                    | RecoveryKind::Snack
                    | RecoveryKind::Aerotcp
            )
    }

    /// Maximum segment size of the connection (RFC 9293 §3.7.1): a full segment with its TCP options.
    pub fn mss_bytes(&self) -> u32 {
        self.smss_bytes + self.header_bytes.saturating_sub(BARE_HEADER_BYTES)
    }

    /// Whether a sender uses the schedule of its path.
    pub fn reads_schedule(&self) -> bool {
        self.handover_adaptation != HandoverRule::Off || self.quick_start_bps.is_some()
    }

    /// IP and TCP header of a SYN, with MSS and window scale and perhaps SACK-permitted, which replaces the padding of
    /// the timestamps option if there is one (RFC 7323 appendix A).
    pub fn syn_header_bytes(&self) -> u32 {
        let permits_sack = self.sack_enabled() && !self.timestamps;
        self.header_bytes + MSS_OPTION_BYTES + WINDOW_SCALE_BYTES + if permits_sack { 4 } else { 0 }
    }

    /// Whether a connection may end before the run: by FIN, or because the other end does not answer.
    pub fn may_end(&self) -> bool {
        self.close
            || self.user_timeout_ns.is_some()
            || self.retry_limit.is_some()
            || self.syn_retry_limit.is_some()
    }

    /// Maximum number of SACK blocks next to the other options (RFC 2018 §3: four, three with timestamps).
    pub fn sack_blocks(&self) -> usize {
        if self.profile == Profile::Ns2 {
            return NS2_SACK_BLOCKS;
        }
        if self.timestamps { 3 } else { 4 }
    }
}
