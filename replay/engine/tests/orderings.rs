//! Orderings that measurements agree on, with margins far from chance: whole runs of minutes over a link with losses, and
//! side by side.

use hindflight_engine::{Config, run};

/// One link, one flow per variant.
struct Link {
    rate_bps: f64,
    delay_ms: u64,
    queue_pkts: u32,
    packet_loss: f64,
}

impl Link {
    /// Goodput of each in Mbit/s over `seconds`.
    fn goodput(&self, variants: &[&str], seconds: u64) -> Vec<f64> {
        let hop = format!(
            r#""rate_bps": {}, "delay_ns": {}000000, "queue": {{"kind": "drop_tail", "limit_pkts": {}}}"#,
            self.rate_bps, self.delay_ms, self.queue_pkts
        );
        let flows: Vec<String> = variants
            .iter()
            .map(|name| format!(r#"{{"name": "{name}", "variant": "{name}", "profile": "linux"}}"#))
            .collect();
        let json = format!(
            r#"{{"duration_ns": {seconds}000000000, "path": {{"nodes": ["a", "b"], "links": [{{"name": "ab",
                "forward": {{{hop}, "loss": {{"kind": "bernoulli", "per": {}}}}}, "reverse": {{{hop}}}}}]}},
                "flows": [{}]}}"#,
            self.packet_loss,
            flows.join(",")
        );
        let config: Config = serde_json::from_str(&json).expect("well-formed");
        let summary = run(&config, 1).expect("valid");
        let mbit_per_s = |bytes: u64| bytes as f64 * 8e-6 / seconds as f64;
        let flows = summary.flows.iter();
        flows.map(|f| mbit_per_s(f.delivered_bytes)).collect()
    }
}

fn geo(packet_loss: f64) -> Link {
    Link {
        rate_bps: 20e6,
        delay_ms: 125,
        queue_pkts: 500,
        packet_loss,
    }
}

#[test]
fn both_bbrs_hold_their_goodput_at_one_percent_loss_and_the_third_gives_way_beyond_two() {
    let alone = |name, loss| geo(loss).goodput(&[name], 60)[0];
    let (first, third, cubic) = (
        alone("bbr", 0.01),
        alone("bbr3", 0.01),
        alone("cubic", 0.01),
    );
    assert!(first > 15.0 && third > 12.0, "{first} and {third} of 20");
    assert!(cubic < 0.1 * third, "{cubic}");
    let (first, third) = (alone("bbr", 0.05), alone("bbr3", 0.05));
    assert!(third < 0.25 * first, "{third} of {first}");
}

#[test]
fn cubic_gets_more_beside_the_third_bbr_than_beside_the_first() {
    let link = Link {
        rate_bps: 50e6,
        delay_ms: 20,
        queue_pkts: 100,
        packet_loss: 0.0,
    };
    let cubic_with = |name| link.goodput(&[name, "cubic"], 60)[1];
    let (first, third) = (cubic_with("bbr"), cubic_with("bbr3"));
    assert!(third > 1.5 * first, "{third} and {first}");
    assert!((10.0..35.0).contains(&third), "{third}");
}
