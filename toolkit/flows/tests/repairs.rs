//! Captures at the receiver of a flow without timestamps, with a queue before the capture point: how long a round trip
//! takes shows in how long holes stay open. `support/mod.rs` explains the notation.

mod support;

use hindflight_flows::EventKind;
use support::{losses, run, ten_segments};

type Row = (Option<i64>, Option<u32>, Option<u64>);

fn lost(starts: &[i64]) -> Vec<Row> {
    starts
        .iter()
        .map(|&start| (Some(start), Some(1), None))
        .collect()
}

#[test]
fn the_end_of_a_flight_is_no_retransmission_where_a_queue_makes_round_trips_long() {
    // The handshake takes 100 ms, the first hole 400 ms. 21 is the end of the flight.
    let ladder = format!(
        "{}
          121.0 a>b A 11001:12001 ack 1 id 14     # 13: a hole
          121.1 b>a A 1 ack 10001 sack 11001-12001
          521.0 a>b A 10001:11001 ack 1 id 15
          521.1 b>a A 1 ack 12001
          531.0 a>b A 12001:13001 ack 1 id 16
          531.1 b>a A 1 ack 13001
          541.0 a>b A 14001:15001 ack 1 id 18     # 17: a hole
          541.1 b>a A 1 ack 13001 sack 14001-15001
          551.0 a>b A 16001:17001 ack 1 id 20     # 19: a hole
          551.1 b>a A 1 ack 13001 sack 16001-17001 14001-15001
          941.0 a>b A 13001:14001 ack 1 id 22
          941.1 b>a A 1 ack 15001 sack 16001-17001
          951.0 a>b A 15001:16001 ack 1 id 23
          951.1 b>a A 1 ack 17001
          961.0 a>b A 18001:19001 ack 1 id 24
          961.1 b>a A 1 ack 17001 sack 18001-19001
         1361.0 a>b A 17001:18001 ack 1 id 25
         1361.1 b>a A 1 ack 19001",
        ten_segments()
    );
    let once = lost(&[10_001, 13_001, 15_001, 17_001]);
    assert_eq!(losses(&run(&ladder)), once);
}

/// The ACK of the handshake and the first three segments were lost. The fourth one comes 160 ms after the SYN; what
/// fills the hole, `wait_ms` later. The sender counts its packets with IPv4 IDs, or not.
fn without_first_packets(wait_ms: u32, ids: bool) -> (Vec<Row>, usize) {
    let id = |id: u32| {
        if ids {
            format!("id {id}")
        } else {
            String::new()
        }
    };
    let t_ms = 160 + wait_ms;
    let outcome = run(&format!(
        "  0.00 a>b S  0 mss 1000 sackok {}
           0.05 b>a SA 0 ack 1 mss 1000 sackok
         160.0 a>b A 3001:4001 ack 1 {}
         160.1 b>a A 1 ack 1 sack 3001-4001
         {t_ms}.0 a>b A 1:1001 ack 1 {}
         {t_ms}.1 b>a A 1 ack 1001 sack 3001-4001
         {t_ms}.2 a>b A 1001:2001 ack 1 {}
         {t_ms}.3 b>a A 1 ack 2001 sack 3001-4001
         {t_ms}.4 a>b A 2001:3001 ack 1 {}
         {t_ms}.5 b>a A 1 ack 4001",
        id(1),
        id(6),
        id(7),
        id(8),
        id(9)
    ));
    let reordered = |event: &&hindflight_flows::Event| event.kind == EventKind::Reordering;
    let reordered_n = outcome.events.iter().filter(reordered).count();
    (losses(&outcome), reordered_n)
}

#[test]
fn ids_that_step_as_the_sequence_numbers_do_count_without_the_ack_of_the_handshake() {
    assert_eq!(without_first_packets(20, true), (lost(&[1, 1001, 2001]), 0));
}

#[test]
fn a_handshake_without_its_ack_shows_what_a_round_trip_takes_at_most() {
    // A round trip takes 160 ms at most, so that 40 ms are the largest reordering window.
    assert_eq!(
        without_first_packets(50, false),
        (lost(&[1, 1001, 2001]), 0)
    );
    assert_eq!(without_first_packets(30, false), (lost(&[]), 3));
}
