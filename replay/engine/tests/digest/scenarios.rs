//! The scenarios of the digest: each stresses one part of the engine. Their ids are stable; the golden file names them.

use serde_json::{Value, json};

/// A scenario without its flow's variant and profile.
pub struct Scenario {
    /// Stable name in the golden file.
    pub id: &'static str,
    /// Duration of the run, seconds.
    duration_s: u64,
    links: Vec<Value>,
    /// Keys of the flow besides name, variant, profile and parameters.
    flow: Value,
    /// The flow appears twice, the second one 1 s later.
    twice: bool,
}

/// One direction of a link.
fn direction(rate_bps: f64, delay_ms: u64, limit_pkts: u32) -> Value {
    json!({
        "rate_bps": rate_bps,
        "delay_ns": delay_ms * 1_000_000,
        "queue": {"kind": "drop_tail", "limit_pkts": limit_pkts},
    })
}

fn with(mut object: Value, keys: &Value) -> Value {
    for (key, value) in keys.as_object().expect("an object") {
        object[key] = value.clone();
    }
    object
}

fn link(forward: &Value, reverse: &Value) -> Value {
    json!({"name": "link", "forward": forward, "reverse": reverse})
}

fn one_hop(forward: &Value, reverse: &Value) -> Vec<Value> {
    vec![link(forward, reverse)]
}

/// A clean hop of 4 Mbit/s and 30 ms in front of a satellite hop of 2 Mbit/s and 250 ms with `loss`.
fn satellite(loss: &Value) -> Vec<Value> {
    let near = direction(4e6, 30, 50);
    let far = direction(2e6, 250, 60);
    let lossy = with(far.clone(), &json!({"loss": loss}));
    vec![link(&near, &near), link(&lossy, &far)]
}

fn bernoulli(per: f64) -> Value {
    json!({"kind": "bernoulli", "per": per})
}

fn scenario(id: &'static str, duration_s: u64, links: Vec<Value>, flow: Value) -> Scenario {
    Scenario {
        id,
        duration_s,
        links,
        flow,
        twice: false,
    }
}

/// Every scenario.
pub fn all() -> Vec<Scenario> {
    let mut all = links();
    all.extend(endpoints());
    all
}

/// What the links do.
fn links() -> Vec<Scenario> {
    let near = direction(5e6, 20, 40);
    let bursts = json!({"kind": "gilbert_elliott", "p": 0.002, "r": 0.2, "h": 0.0, "k": 1.0});
    let bit_errors = json!({"kind": "ber", "ber": 1e-7});
    let outage = with(
        direction(2e6, 150, 60),
        &json!({"schedule": [
            {"at_ns": 8_000_000_000_u64, "outage": true},
            {"at_ns": 10_500_000_000_u64, "outage": false, "delay_ns": 60_000_000, "rate_bps": 3e6},
            {"at_ns": 20_000_000_000_u64, "delay_ns": 200_000_000, "rate_bps": 1e6},
        ]}),
    );
    let reordering = with(
        direction(5e6, 40, 60),
        &json!({"jitter": {"kind": "exponential", "spread_ns": 4_000_000}, "in_order": false}),
    );
    let red = with(
        direction(3e6, 40, 60),
        &json!({"queue": {"kind": "red", "limit_pkts": 60, "min_pkts": 5.0, "max_pkts": 20.0}}),
    );
    let codel = with(
        direction(3e6, 40, 100),
        &json!({"queue": {"kind": "codel", "limit_pkts": 200}}),
    );
    let lossy_acks = with(
        direction(3e6, 60, 60),
        &json!({"loss": bernoulli(0.1), "loss_applies_to": "all"}),
    );
    let ecn = json!({"stack": {"ecn": true}});
    let both_lossy = one_hop(&lossy_acks, &lossy_acks);
    let reordered = one_hop(&reordering, &reordering);
    vec![
        scenario("full-queue", 25, one_hop(&near, &near), json!({})),
        scenario("geo-loss", 40, satellite(&bernoulli(0.002)), json!({})),
        scenario("geo-bursts", 40, satellite(&bursts), json!({})),
        scenario("geo-bit-errors", 40, satellite(&bit_errors), json!({})),
        scenario("handover", 30, one_hop(&outage, &outage), json!({})),
        scenario("reordering", 15, reordered, json!({})),
        scenario("red-ecn", 20, one_hop(&red, &near), ecn),
        scenario("lost-acks", 20, both_lossy, json!({})),
        Scenario {
            twice: true,
            ..scenario("two-flows-codel", 25, one_hop(&codel, &near), json!({}))
        },
    ]
}

/// What applications, receivers, stacks and proxies do.
fn endpoints() -> Vec<Scenario> {
    let near = direction(5e6, 20, 40);
    let lossy = with(near.clone(), &json!({"loss": bernoulli(0.004)}));
    let path = || one_hop(&lossy, &near);
    let on_off = json!({"application": {"kind": "on_off", "rate_bps": 1.5e6, "on_ns": 700_000_000,
        "off_ns": 900_000_000, "spread": "exponential"}});
    let receiver = json!({"stack": {"receive_buffer_bytes": 40_000, "read_rate_bps": 2e6}});
    let send_buffer = json!({"stack": {"send_buffer_bytes": 60_000, "nagle": "minshall"},
        "application": {"kind": "greedy", "write_bytes": 7000}});
    let short = json!({"size_bytes": 150_000, "stack": {"handshake": true, "close": true}});
    let without_sack = json!({"stack": {"sack": false, "timestamps": false}});
    let proxy = json!({"proxies": [{"node": "n1", "receive_buffer": {"pkts": 80}}]});
    vec![
        scenario("limited-application", 25, path(), on_off),
        scenario("limited-receiver", 20, path(), receiver),
        scenario("send-buffer", 20, path(), send_buffer),
        scenario("short-transfer", 60, satellite(&bernoulli(0.03)), short),
        scenario(
            "without-sack",
            30,
            satellite(&bernoulli(0.005)),
            without_sack,
        ),
        scenario("proxy", 30, satellite(&bernoulli(0.004)), proxy),
    ]
}

impl Scenario {
    /// The engine's configuration for a variant under a profile.
    pub fn config(&self, variant: &str, profile: &str) -> Value {
        let nodes: Vec<_> = (0..=self.links.len()).map(|n| format!("n{n}")).collect();
        let share = json!({"satellite_rate": 2e6, "satellite_rtt": 0.6, "connections": 1});
        let params = if matches!(variant, "aerotcp" | "supertcp") {
            share
        } else {
            json!({})
        };
        let head =
            json!({"name": "flow", "variant": variant, "profile": profile, "params": params});
        let flow = with(head, &self.flow);
        let mut flows = vec![flow.clone()];
        if self.twice {
            flows.push(with(
                flow,
                &json!({"name": "second", "start_ns": 1_000_000_000}),
            ));
        }
        json!({
            "duration_ns": self.duration_s * 1_000_000_000,
            "path": {"nodes": nodes, "links": self.links},
            "flows": flows,
        })
    }
}
