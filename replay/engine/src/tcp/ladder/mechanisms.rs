//! Ladders of mechanisms that do not belong to a variant: freezing, announced handovers, Quick-Start. Notation as in
//! `ladder`.

use super::{check, sender, window};
use crate::cc::catalogue::Variant;
use crate::config::{HandoverRule, Profile, StackOverrides};
use crate::net::handover_forecast::PathChange;
use crate::sim::time::{MILLISECOND, Nanos};
use crate::tcp::sender::Sender;

#[test]
fn a_frozen_sender_probes_keeps_its_window_and_goes_on_with_it() {
    // All that was in flight arrives before the outage; no timeout, no restart after the pause.
    check(
        sender(Variant::FreezeTcp, Profile::Rfc, window(4)),
        "0.000 > 1 2 3 4 (cwnd 4 slow start)
         0.100 < ack 3 wnd 0
         0.110 < ack 5 wnd 0
         1.110 > P4 (cwnd 6 slow start)
         3.110 > P4 (cwnd 6 slow start)
         5.000 < ack 5 wnd 99
         5.000 > 5 6 7 8 9 10 (cwnd 6 slow start)
         5.000 < ack 5 wnd 99
         5.000 < ack 5 wnd 99
         5.100 < ack 6 wnd 99
         5.100 > 11 12 (cwnd 7 slow start)",
    );
}

#[test]
fn the_third_ack_after_an_outage_retransmits_what_was_lost() {
    // 3 and 4 were in flight: the warning came too late. Reno, SACK and RACK alike send 3 again at once.
    let script = |retransmissions: &str| {
        format!(
            "0.000 > 1 2 3 4 (cwnd 4 slow start)
             0.100 < ack 3 wnd 0
             5.000 < ack 3 wnd 2
             5.001 < ack 3 wnd 2
             5.002 < ack 3 wnd 2
             5.002 > {retransmissions}"
        )
    };
    let probes =
        "0.100 < ack 3 wnd 0\n1.100 > P2 (cwnd 5 slow start)\n3.100 > P2 (cwnd 5 slow start)";
    let frozen = |profile, recovery| {
        let overrides = StackOverrides {
            recovery,
            ..window(4)
        };
        sender(Variant::FreezeTcp, profile, overrides)
    };
    let script = |retransmissions| script(retransmissions).replace("0.100 < ack 3 wnd 0", probes);
    check(
        frozen(Profile::Rfc, None),
        &script("R3 R4 (cwnd 2 recovery)"),
    );
    let reno = Some(crate::config::RecoveryKind::Newreno);
    check(frozen(Profile::Rfc, reno), &script("R3 (cwnd 5 recovery)"));
}

/// 100 packets of 1052 octets a second and 100 ms with their service: a product of ten.
fn news(at_ms: u64) -> [PathChange; 2] {
    let state = |at: Nanos, bps| PathChange {
        at,
        bottleneck_bps: Some(bps),
        rtt: 90 * MILLISECOND,
    };
    [state(0, 1e9), state(at_ms * MILLISECOND, 841_600.0)]
}

fn with_forecast(rule: HandoverRule, pkts: u32, at_ms: u64) -> Sender {
    let overrides = StackOverrides {
        handover_adaptation: Some(rule),
        ..window(pkts)
    };
    sender(Variant::Newreno, Profile::Rfc, overrides).with_handover_forecast(&news(at_ms))
}

#[test]
fn a_handover_takes_a_small_window_to_the_new_product_at_once_or_by_slow_start() {
    check(
        with_forecast(HandoverRule::Jump, 2, 150),
        "0.000 > 1 2 (cwnd 2 slow start)
         0.100 < ack 2
         0.100 > 3 4 (cwnd 3 slow start)
         0.150 > 5 6 7 8 9 10 11 (cwnd 10 avoidance)
         0.200 < ack 3
         0.200 > 12 (cwnd 10 avoidance)",
    );
    check(
        with_forecast(HandoverRule::SlowStart, 2, 150),
        "0.000 > 1 2 (cwnd 2 slow start)
         0.100 < ack 2
         0.100 > 3 4 (cwnd 3 slow start)
         0.200 < ack 5
         0.200 > 5 6 7 8 (cwnd 4 slow start)
         0.300 < ack 6
         0.300 > 9 10 (cwnd 5 slow start)",
    );
}

#[test]
fn a_handover_takes_a_large_window_down_to_the_new_product() {
    for rule in [HandoverRule::Jump, HandoverRule::SlowStart] {
        check(
            with_forecast(rule, 12, 150),
            "0.000 > 1 2 3 4 5 6 7 8 9 10 11 12 (cwnd 12 slow start)
             0.200 < ack 6
             0.200 > 13 14 15 (cwnd 10 avoidance)",
        );
    }
}

#[test]
fn a_handover_ends_the_wait_for_a_timeout_that_an_outage_has_doubled() {
    // The third would come at 7.000; a round trip of the new path is 100 ms, so the minimum RTO of 1 s counts.
    check(
        with_forecast(HandoverRule::Jump, 2, 3200),
        "0.000 > 1 2 (cwnd 2 slow start)
         1.000 > R1 (cwnd 1 loss)
         3.000 > R1 (cwnd 1 loss)
         3.200 > R2 3 4 5 6 7 8 9 10 (cwnd 10 loss)
         4.200 > R1 (cwnd 1 loss)
         4.300 end",
    );
}

/// A SYN that took 200 ms and was granted 320 kbit/s: seven packets of 1052 octets, one in 26.3 ms.
fn quick(pkts: u32) -> Sender {
    let overrides = StackOverrides {
        quick_start_bps: Some(400_000.0),
        ..window(pkts)
    };
    let mut sender = sender(Variant::Sack, Profile::Rfc, overrides).granted(Some(1e9));
    sender.begin_quick_start(200 * MILLISECOND);
    sender.update_pacing();
    sender
}

const FIRST_WINDOW: &str = "0.000 > 1 (cwnd 7 slow start)
     0.026 > 2 (cwnd 7 slow start)
     0.053 > 3 (cwnd 7 slow start)
     0.079 > 4 (cwnd 7 slow start)
     0.105 > 5 (cwnd 7 slow start)
     0.132 > 6 (cwnd 7 slow start)
     0.158 > 7 (cwnd 7 slow start)
";

#[test]
fn rfc4782_the_first_window_is_paced_at_the_granted_rate_and_slow_start_goes_on_from_it() {
    check(
        quick(4),
        &format!(
            "{FIRST_WINDOW}
             0.200 < ack 2
             0.200 > 8 9 (cwnd 8 slow start)
             0.226 < ack 3
             0.226 > 10 11 (cwnd 9 slow start)"
        ),
    );
    // A larger initial window is kept, unpaced.
    check(
        quick(8),
        "0.000 > 1 2 3 4 5 6 7 8 (cwnd 8 slow start)
         0.200 < ack 2
         0.200 > 9 10 (cwnd 9 slow start)",
    );
}

#[test]
fn rfc4782_a_loss_in_the_first_window_reverts_to_the_initial_one() {
    // Four of its packets got through: ssthresh 2, where half of the seven in flight would be 3.
    check(
        quick(4),
        &format!(
            "{FIRST_WINDOW}
             0.200 < ack 2
             0.200 > 8 9 (cwnd 8 slow start)
             0.250 < ack 2 sack 3-3
             0.250 > 10 (cwnd 8 slow start)
             0.276 < ack 2 sack 3-4
             0.276 > 11 (cwnd 8 slow start)
             0.302 < ack 2 sack 3-5
             0.302 > R2 (cwnd 4 recovery)"
        ),
    );
}

#[test]
fn hyblas_spacing_and_hoes_estimate() {
    // RTT 100 ms: rho 4. Until three ACKs have come a segment each; the second and third show 100 segments a second over 120 ms:
    // 12, which 15 more segments per ACK would pass. The first ten leave unspaced, the others an RTT over cwnd apart.
    let hybla = super::sender_with(
        (
            Variant::Hybla,
            r#"{"spacing": true, "hoe_estimate": true, "scale_initial_window": false}"#,
        ),
        Profile::Rfc,
        window(4),
    );
    check(
        hybla,
        "0.000 > 1 2 3 4 (cwnd 4 slow start)
         0.100 < ack 2
         0.100 > 5 6 (cwnd 5 slow start)
         0.110 < ack 3
         0.110 > 7 8 (cwnd 6 slow start)
         0.120 < ack 4
         0.120 > 9 10 (cwnd 12 avoidance)
         0.129 > 11 (cwnd 12 avoidance)
         0.137 > 12 (cwnd 12 avoidance)
         0.146 > 13 (cwnd 12 avoidance)
         0.155 > 14 (cwnd 12 avoidance)
         0.160 end",
    );
}
