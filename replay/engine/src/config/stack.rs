//! Stack parameters: the profiles, what a scenario may override, and the result.
//!
//! Does not depend on how the parameters are used. A profile is a complete set of values; an override replaces one of
//! them.

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

/// What replaces the value of a parameter, if it is given.
pub trait Overridable {
    type Given;

    fn or(self, given: Self::Given) -> Self;
}

impl<T> Overridable for Option<T> {
    type Given = Self;

    fn or(self, given: Self) -> Self {
        given.or(self)
    }
}

macro_rules! overridable {
    ($($type:ty)*) => {
        $(impl Overridable for $type {
            type Given = Option<Self>;

            fn or(self, given: Option<Self>) -> Self {
                given.unwrap_or(self)
            }
        })*
    };
}

overridable! { bool u32 u64 SlowStartKind RecoveryKind RtoRule NagleRule HandoverRule }

/// Declares the parameters, each with its type and its value under the profile `rfc`: those that a scenario may override, and
/// those that it may not.
macro_rules! stack_params {
    (
        $($(#[$doc:meta])* $name:ident: $type:ty = $rfc:expr,)*
        ;
        $($(#[$own_doc:meta])* $own:ident: $own_type:ty = $own_rfc:expr,)*
    ) => {
        /// Parameters that replace those of the profile; absent ones keep its value.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct StackOverrides {
            $($(#[$doc])* pub $name: <$type as Overridable>::Given,)*
        }

        /// The resolved parameters of a flow's stack.
        #[derive(Clone, Copy, Debug, PartialEq, Serialize)]
        pub struct StackParams {
            $($(#[$doc])* pub $name: $type,)*
            $($(#[$own_doc])* pub $own: $own_type,)*
        }

        impl StackParams {
            fn rfc() -> Self {
                Self { $($name: $rfc,)* $($own: $own_rfc,)* }
            }

            fn overridden(self, given: &StackOverrides) -> Self {
                Self { $($name: Overridable::or(self.$name, given.$name),)* ..self }
            }
        }
    };
}

stack_params! {
    /// Open with SYN, SYN-ACK, ACK; otherwise the connection is established when the flow starts.
    handshake: bool = true,
    /// Close with FIN in both directions after the application's last octet; otherwise the flow ends without.
    close: bool = false,
    /// Reset the connection when nothing has been acknowledged for this time since the first timeout (RFC 5482); none:
    /// `retry_limit` decides.
    user_timeout_ns: Option<Nanos> = None,
    /// Reset the connection after the time that this number of consecutive timeouts takes from `min_rto_ns` on (Linux
    /// `tcp_retries2`), or after this number of unanswered window probes; none: never.
    retry_limit: Option<u32> = None,
    /// Retransmissions of the SYN before the connection attempt is given up; none: no limit.
    syn_retry_limit: Option<u32> = None,
    /// The SYN carries the first data, as after an earlier connection that left a cookie (TCP Fast Open, RFC 7413).
    fast_open: bool = false,
    /// Timestamps option (RFC 7323): 12 octets of header and three SACK blocks instead of four.
    timestamps: bool = true,
    /// Payload of a full segment.
    smss_bytes: u32 = 1448,
    /// IP and TCP header of every segment with its options.
    header_bytes: u32 = 52,
    /// Initial window (RFC 6928).
    initial_window_pkts: u32 = 10,
    /// Initial ssthresh; none: unlimited (RFC 5681 §3.1).
    initial_ssthresh_pkts: Option<u32> = None,
    /// Fixed window, instead of the variant's controller; none: the variant's controller.
    fixed_window_pkts: Option<u32> = None,
    /// Maximum increase of cwnd per ACK in slow start, segments (RFC 5681 §3.1: 1; RFC 3465: L = 2); none: no limit.
    slow_start_limit_pkts: Option<u32> = Some(1),
    /// Exit of slow start without a loss; none: the variant decides.
    slow_start: Option<SlowStartKind> = None,
    /// Limited transmit (RFC 3042).
    limited_transmit: bool = true,
    /// Recovery of the variants that do not determine it themselves.
    recovery: RecoveryKind = RecoveryKind::Sack,
    /// Formula of the retransmission timeout.
    rto_rule: RtoRule = RtoRule::Rfc6298,
    /// Minimum retransmission timeout (RFC 6298 §2.4: 1 s).
    min_rto_ns: Nanos = SECOND,
    /// Timeout before the first RTT sample (RFC 6298 §2.1: 1 s).
    initial_rto_ns: Nanos = SECOND,
    /// Maximum retransmission timeout (RFC 6298 §2.5: at least 60 s).
    max_rto_ns: Nanos = 60 * SECOND,
    /// Clock granularity G (RFC 6298 §2.3).
    clock_granularity_ns: Nanos = MILLISECOND,
    /// Acknowledge every second full segment, or after the timeout (RFC 5681 §4.2).
    delayed_ack: bool = true,
    /// Maximum delay of an ACK.
    delayed_ack_timeout_ns: Nanos = 200 * MILLISECOND,
    /// Acknowledge every segment while the sender signals slow start (RFC 2760 §3.2.3).
    delayed_ack_after_slow_start: bool = false,
    /// Segments that are acknowledged immediately at the start of a connection and after a duplicate (Linux: quick
    /// ACKs).
    quickack_segments: u32 = 0,
    /// SACK (RFC 2018), if the recovery uses it.
    sack: bool = true,
    /// Report duplicate segments (RFC 2883).
    dsack: bool = false,
    /// Receive buffer of the last node.
    receive_buffer_bytes: u64 = 16 << 20,
    /// Maximum that autotuning grows the buffer to, by what the application reads per round trip; none: no autotuning.
    receive_buffer_max_bytes: Option<u64> = None,
    /// Offer four fifths of the buffer at first and the rest as full segments arrive (Linux); otherwise all of it at
    /// once.
    receive_window_growth: bool = false,
    /// Rate at which the application reads; none: immediately.
    read_rate_bps: Option<f64> = None,
    /// NewReno's slow-but-steady variant; otherwise only the first partial ACK restarts the timer (RFC 6582 §3.2).
    reset_timer_on_each_partial_ack: bool = false,
    /// Tail loss probe (RFC 8985 §7).
    tail_loss_probe: bool = false,
    /// Undo the decrease after a spurious retransmission or timeout (RFC 3522, RFC 3708, RFC 4015).
    undo: bool = true,
    /// F-RTO (RFC 5682), if timestamps do not reveal a spurious timeout or under Linux.
    frto: bool = true,
    /// Pace a window-based controller: twice the window per round trip in slow start, 1.2 times after it, as Linux's
    /// internal pacing. Controllers with their own pacing rate always pace.
    pacing: bool = false,
    /// When a partial segment may leave.
    nagle: NagleRule = NagleRule::Rfc,
    /// Memory for octets that are written and not acknowledged; none: the application never waits.
    send_buffer_bytes: Option<u64> = None,
    /// Maximum that autotuning grows the send buffer to with cwnd; none: no autotuning.
    send_buffer_max_bytes: Option<u64> = None,
    /// Unsent octets above which the application waits (Linux: `TCP_NOTSENT_LOWAT`); none: any number.
    notsent_lowat_bytes: Option<u64> = None,
    /// Negotiate ECN (RFC 3168 §6.1). By default Linux accepts ECN and does not request it (`tcp_ecn`).
    ecn: bool = false,
    /// Share of FlightSize after a congestion mark (RFC 8511 §3); none: as after a loss.
    ecn_beta: Option<f64> = None,
    /// Time before an outage at which the receiver closes its window, until the end of the outage (Freeze-TCP); none:
    /// not at all.
    freeze_warning_ns: Option<Nanos> = None,
    /// How the sender reacts to handovers.
    handover_adaptation: HandoverRule = HandoverRule::Off,
    /// Rate that the SYN requests from the routers (Quick-Start, RFC 4782); none: no request.
    quick_start_bps: Option<f64> = None,
    ;
    /// Maximum number of ACKs per round-trip time for data in order; only a variant sets it.
    acks_per_round_trip: Option<f64> = None,
    /// Low-priority probe segments; only a variant sets them.
    low_priority_probes: Option<ProbeSegments> = None,
    /// The profile, for behaviour of ns-2 and Linux that no other parameter describes.
    profile: Profile = Profile::Rfc,
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

impl StackOverrides {
    /// Whether it gives another recovery than a variant that determines its own.
    pub fn sets_another(&self, fixed: RecoveryKind) -> bool {
        self.recovery.is_some_and(|given| given != fixed) || self.lacks_sack_for(fixed)
    }

    /// Whether it leaves out the SACK blocks that the recovery of a variant reads.
    pub fn lacks_sack_for(&self, fixed: RecoveryKind) -> bool {
        self.sack == Some(false) && matches!(fixed, RecoveryKind::Sack | RecoveryKind::Fack)
    }
}

impl StackParams {
    /// Octets of a full segment with its headers.
    pub fn packet_bytes(&self) -> u32 {
        self.smss_bytes + self.header_bytes
    }

    /// The parameters of `profile` with `overrides`.
    pub fn resolve(profile: Profile, overrides: &StackOverrides) -> Self {
        let mut params = Self::of(profile).sized(overrides).overridden(overrides);
        // Linux's recovery handles flows without SACK; elsewhere a stack without SACK follows RFC 6582.
        if !params.sack && overrides.recovery.is_none() && profile != Profile::Linux {
            params.recovery = RecoveryKind::Newreno;
        }
        params
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
            header_bytes,
            smss_bytes,
            receive_buffer_bytes,
            // Linux: no autotuning of a buffer whose size is given (SOCK_RCVBUF_LOCK).
            receive_buffer_max_bytes: (self.receive_buffer_max_bytes)
                .filter(|_| o.receive_buffer_bytes.is_none()),
            initial_ssthresh_pkts: natural_ssthresh,
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
