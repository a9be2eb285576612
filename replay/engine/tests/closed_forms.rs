//! The engine against formulas that owe nothing to it: PFTK, the inverse square root law, RFC 9438's average window,
//! the drop-tail sawtooth. Every bound holds on both sides.

use hindflight_engine::{Config, FlowSummary, run};

/// Payload and packet of the flows here.
const SMSS: f64 = 1448.0;
const PACKET_BITS: f64 = 12_000.0;

struct Path<'a> {
    rate: &'a str,
    rtt_s: f64,
    queue_pkts: u32,
    loss: String,
}

fn flow(path: &Path<'_>, seconds: u64, variant: &str, stack: &str) -> FlowSummary {
    let Path {
        rate,
        rtt_s,
        queue_pkts,
        loss,
    } = path;
    let delay = (rtt_s / 2.0 * 1e9) as u64;
    let text = format!(
        r#"{{"duration_ns": {seconds}000000000,
            "path": {{"nodes": ["a", "b"], "links": [{{"name": "ab",
                "forward": {{"rate_bps": {rate}, "delay_ns": {delay}, "loss": {loss},
                    "queue": {{"kind": "drop_tail", "limit_pkts": {queue_pkts}}}}},
                "reverse": {{"delay_ns": {delay}}}}}]}},
            "flows": [{{"name": "f", "variant": "{variant}",
                "stack": {{"handshake": false, "delayed_ack": false, "receive_buffer_bytes": 100000000 {stack}}}}}]}}"#
    );
    let config: Config = serde_json::from_str(&text).expect("well-formed");
    let mut summary = run(&config, 1).expect("valid");
    summary.flows.swap_remove(0)
}

fn bernoulli(p: f64) -> String {
    format!(r#"{{"kind": "bernoulli", "per": {p}}}"#)
}

/// One loss every `n` packets.
fn every(n: u64) -> String {
    format!(
        r#"{{"kind": "trace", "positions": [{}], "known_pkts": {n}, "mode": "replayed"}}"#,
        n - 1
    )
}

fn segments_per_s(flow: &FlowSummary) -> f64 {
    flow.goodput_bps / 8.0 / SMSS
}

#[track_caller]
fn assert_within(value: f64, expected: f64, share: f64) {
    let error = value / expected - 1.0;
    assert!(
        error.abs() <= share,
        "{value:.2} against {expected:.2}: {:+.1} %",
        100.0 * error
    );
}

/// Padhye, Firoiu, Towsley and Kurose, "Modeling TCP Throughput", SIGCOMM 1998, equation 30 with b = 1, in segments/s.
fn pftk(p: f64, rtt_s: f64, rto_s: f64) -> f64 {
    let fast = rtt_s * (2.0 * p / 3.0).sqrt();
    let timeouts = rto_s * (3.0 * (3.0 * p / 8.0).sqrt()).min(1.0) * p * (1.0 + 32.0 * p * p);
    1.0 / (fast + timeouts)
}

#[test]
fn newreno_follows_pftk() {
    for (p, rtt_s, seconds) in [
        (3e-4, 0.1, 1800),
        (1e-3, 0.6, 9000),
        (1e-2, 0.1, 1800),
        (1e-2, 0.6, 9000),
    ] {
        let path = Path {
            rate: "null",
            rtt_s,
            queue_pkts: 0,
            loss: bernoulli(p),
        };
        // Start-up left out: slow start ends at the window that the loss rate allows.
        let ssthresh = (1.5_f64 / p).sqrt() as u32;
        let stack = format!(r#", "initial_ssthresh_pkts": {ssthresh}"#);
        let got = segments_per_s(&flow(&path, seconds, "newreno", &stack));
        assert_within(got, pftk(p, rtt_s, rtt_s.max(1.0)), 0.25);
    }
}

#[test]
fn with_one_loss_every_n_packets_the_window_follows_the_square_root_law() {
    for n in [2_000_u64, 10_000] {
        let rtt_s = 0.1;
        let path = Path {
            rate: "null",
            rtt_s,
            queue_pkts: 0,
            loss: every(n),
        };
        let expected = (1.5 * n as f64).sqrt() / rtt_s;
        let ssthresh = (1.5 * n as f64).sqrt() as u32;
        let stack = format!(r#", "initial_ssthresh_pkts": {ssthresh}"#);
        for variant in ["reno", "newreno", "sack"] {
            let got = segments_per_s(&flow(&path, 1500, variant, &stack));
            assert_within(got, expected, 0.05);
        }
    }
}

#[test]
fn with_one_loss_every_n_packets_cubic_has_the_average_window_of_its_rfc() {
    // RFC 9438 §5.1 equation 5, where it lies well above Reno's. The RFC's model has neither fast convergence nor the
    // round trip that recovery takes; both lower the window.
    for (n, rtt_s) in [(10_000_u64, 0.1), (30_000, 0.2)] {
        let (c, beta): (f64, f64) = (0.4, 0.7);
        let steepness = libm::pow(c * (3.0 + beta) / (4.0 * (1.0 - beta)), 0.25);
        let window = steepness * libm::pow(rtt_s * n as f64, 0.75);
        let path = Path {
            rate: "null",
            rtt_s,
            queue_pkts: 0,
            loss: every(n),
        };
        let stack = format!(r#", "initial_ssthresh_pkts": {}"#, window as u32);
        let got = segments_per_s(&flow(&path, 3000, "cubic", &stack));
        assert_within(got, window / rtt_s, 0.10);
    }
}

/// Share of the bottleneck that one Reno flow uses in steady state, with `bdp` and `buffer` in packets.
fn sawtooth_utilisation(bdp: f64, buffer: f64) -> f64 {
    let top = bdp + buffer;
    let bottom = top / 2.0;
    if bottom >= bdp {
        return 1.0;
    }
    // In units of the base RTT: below the BDP a round takes one, above it W / BDP.
    let time = (bdp - bottom) + (top * top - bdp * bdp) / (2.0 * bdp);
    let packets = (top * top - bottom * bottom) / 2.0;
    packets / (bdp * time)
}

#[test]
fn drop_tail_utilisation_is_that_of_the_sawtooth() {
    let (rate, rtt_s) = (10e6, 0.12);
    let bdp = rate * rtt_s / PACKET_BITS;
    for share in [0.1, 0.3, 0.6, 1.0, 2.0] {
        let buffer = (share * bdp).round();
        let path = Path {
            rate: "10e6",
            rtt_s,
            queue_pkts: buffer as u32,
            loss: r#"{"kind": "none"}"#.into(),
        };
        let stack = format!(r#", "initial_ssthresh_pkts": {}"#, (bdp / 2.0) as u32);
        let got = flow(&path, 600, "sack", &stack).goodput_bps / (rate * SMSS * 8.0 / PACKET_BITS);
        assert_within(got, sawtooth_utilisation(bdp, buffer), 0.05);
    }
}
