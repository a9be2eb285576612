//! The parameters of BBR, version 3. Linux's names and defaults; where the draft has another value the source says so.
//!
//! Does not depend on the state machine.

use crate::cc::params::parameters;

parameters! {
    /// Parameters of BBR, version 3.
    pub struct Bbr3Params {
        /// Pacing gain of STARTUP, in 256ths.
        startup_pacing_gain: whole(710, "1/256", 257, 2048, "Linux v3 tcp_bbr.c: 2.77 = 4 ln 2, and a 256th; draft §5.6.1"),
        /// Window gain of STARTUP and DRAIN.
        startup_cwnd_gain: number(2.0, "", 1.0, 16.0, "Linux v3 tcp_bbr.c; draft §5.6.1"),
        /// Pacing gain of DRAIN, in 256ths.
        drain_gain: whole(88, "1/256", 1, 255, "Linux v3 tcp_bbr.c: 1000/2885; the draft has 0.5"),
        /// Window gain of `PROBE_BW`.
        cwnd_gain: number(2.0, "", 1.0, 16.0, "Linux v3 tcp_bbr.c; draft §5.6.1"),
        /// Window gain more while probing up.
        up_cwnd_gain: number(0.25, "", 0.0, 4.0, "Linux v3 tcp_bbr.c; draft §5.6.1"),
        /// Pacing gain while probing up.
        up_pacing_gain: number(1.25, "", 1.0, 4.0, "Linux v3 tcp_bbr.c; draft §5.6.1"),
        /// Pacing gain while draining what that has queued.
        down_pacing_gain: number(0.91, "", 0.1, 1.0, "Linux v3 tcp_bbr.c; the draft has 0.9"),
        /// Growth of the delivery rate below which the pipe may be full.
        full_bw_growth: number(1.25, "", 1.0, 4.0, "Linux v3 tcp_bbr.c; draft §5.3.1.2"),
        /// Rounds without that growth that fill it.
        full_bw_rounds: whole(3, "rounds", 1, 100, "Linux v3 tcp_bbr.c; draft §5.3.1.2"),
        /// ACKs with losses in a round of recovery that end STARTUP, at a loss rate above `loss_threshold`; 0: none do.
        full_loss_count: whole(6, "", 0, 15, "Linux v3 tcp_bbr.c; draft §5.3.1.3"),
        /// Share lost of what was in flight that is too much.
        loss_threshold: number(0.02, "", 0.001, 0.9, "Linux v3 tcp_bbr.c; draft §2.7"),
        /// What a round of losses takes off the short-term bounds.
        beta: number(0.3, "", 0.0, 0.9, "Linux v3 tcp_bbr.c; draft §2.7 as what remains, 0.7"),
        /// Share of `inflight_hi` that is left free for others.
        headroom: number(0.15, "", 0.0, 0.9, "Linux v3 tcp_bbr.c; draft §2.7"),
        /// Rounds after which it probes at the latest.
        probe_max_rounds: whole(63, "rounds", 1, 1000, "Linux v3 tcp_bbr.c; draft §5.3.3.8"),
        /// Rounds of these that are drawn: so many fewer, less one, at most.
        probe_rand_rounds: whole(2, "rounds", 1, 60, "Linux v3 tcp_bbr.c; draft §5.3.3.8"),
        /// Time after which it probes …
        probe_base_s: number(2.0, "s", 0.01, 3600.0, "Linux v3 tcp_bbr.c; draft §5.3.3.8"),
        /// … and what is drawn and added to it.
        probe_rand_s: number(1.0, "s", 0.0, 3600.0, "Linux v3 tcp_bbr.c; draft §5.3.3.8"),
        /// Time for which the minimum round-trip time holds.
        min_rtt_window_s: number(10.0, "s", 0.1, 3600.0, "Linux v3 tcp_bbr.c; draft §2.13.1"),
        /// Time without a lesser one after which `PROBE_RTT` looks for it.
        probe_rtt_interval_s: number(5.0, "s", 0.1, 3600.0, "Linux v3 tcp_bbr.c; draft §2.13.2"),
        /// Minimum stay in `PROBE_RTT`.
        probe_rtt_ms: number(200.0, "ms", 1.0, 10_000.0, "Linux v3 tcp_bbr.c; draft §2.13.2"),
        /// Window gain of `PROBE_RTT`.
        probe_rtt_cwnd_gain: number(0.5, "", 0.0, 1.0, "Linux v3 tcp_bbr.c; draft §2.13.2"),
        /// Minimum window.
        min_cwnd: whole(4, "segments", 1, 1000, "Linux v3 tcp_bbr.c; draft §2.7"),
        /// What the pacing rate stays below the model's.
        pacing_margin_percent: number(1.0, "%", 0.0, 50.0, "Linux v3 tcp_bbr.c; draft §5.6.2"),
        /// Allow for aggregated ACKs.
        aggregation: flag(true, "Linux v3 tcp_bbr.c; draft §5.5.9"),
        /// Answer congestion marks, as on a path whose queues mark early.
        ecn: flag(false, "Linux v3: on routes with the feature ecn_low only; the draft leaves ECN out"),
        /// Minimum RTT up to which marks are answered; 0: whatever it is.
        ecn_max_rtt_ms: number(5.0, "ms", 0.0, 10_000.0, "Linux v3 tcp_bbr.c"),
        /// Weight of a round in the share of marks.
        ecn_alpha_gain: number(0.0625, "", 0.001, 1.0, "Linux v3 tcp_bbr.c"),
        /// Part of the share of marks that `inflight_lo` loses in a round with a mark.
        ecn_factor: number(0.333, "", 0.0, 1.0, "Linux v3 tcp_bbr.c: 85 256ths"),
        /// Share of marks that is too much while probing.
        ecn_threshold: number(0.5, "", 0.01, 1.0, "Linux v3 tcp_bbr.c"),
        /// Rounds in a row with such a share that end STARTUP.
        full_ecn_rounds: whole(2, "rounds", 1, 100, "Linux v3 tcp_bbr.c"),
        /// Share of `inflight_hi` by which the first round grows when marks have ceased.
        ecn_reprobe_gain: number(0.5, "", 0.0, 1.0, "Linux v3 tcp_bbr.c"),
    }
}
