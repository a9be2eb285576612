//! The congestion window at the receiver, from timestamps, where packets are lost. `support/mod.rs` explains the notation.

mod support;

use std::fmt::Write;

use hindflight_flows::{Phase, Sample};
use support::run;

const MS: i64 = 1_000_000;

/// Ten round trips of 100 ms in each of which `window` segments arrive, each acknowledged at once. The IDs are those of
/// the segments plus 3, and each ACK has the time as its timestamp. The last segments arrive from 1010 ms on.
fn round_trips(window: u32) -> String {
    let mut ladder = String::from(
        "  0.00 a>b S  0 mss 1000 sackok id 1 ts 100/0
           0.05 b>a SA 0 ack 1 mss 1000 sackok ts 1/100
         100.00 a>b A  1 ack 1 id 2 ts 200/1
        ",
    );
    for number in 0..10 * window {
        let t_ms = 110 + number / window * 100 + number % window;
        let (start, id, echo) = (1 + number * 1000, 3 + number, t_ms - 100);
        let echo = if number < window { 1 } else { echo };
        arrive(&mut ladder, t_ms, (start, id), echo);
    }
    ladder
}

/// A segment that begins at `start` arrives and is acknowledged at once.
fn arrive(ladder: &mut String, t_ms: u32, (start, id): (u32, u32), echo: u32) {
    let (end, ts_val) = (start + 1000, t_ms + 100);
    writeln!(
        ladder,
        "{t_ms}.0 a>b A {start}:{end} ack 1 id {id} ts {ts_val}/{echo}"
    )
    .expect("text");
    writeln!(ladder, "{t_ms}.1 b>a A 1 ack {end} ts {t_ms}/{ts_val}").expect("text");
}

fn srtt_ns_at(samples: &[Sample], t_ms: i64) -> i64 {
    row_at(samples, t_ms).srtt_ns.expect("an SRTT")
}

fn row_at(samples: &[Sample], t_ms: i64) -> &Sample {
    let count = samples.partition_point(|sample| sample.t_ns <= t_ms * MS);
    samples[..count].last().expect("a row")
}

#[test]
fn a_probe_exceeds_the_window() {
    let ladder = format!(
        "{}
         1310.0 a>b A 22001:23001 ack 1 id 25 ts 1410/1011    # a probe; 23 and 24: the window
         1310.1 b>a A 1 ack 20001 sack 22001-23001 ts 1310/1410
         1410.0 a>b A 20001:21001 ack 1 id 26 ts 1510/1310
         1410.1 b>a A 1 ack 21001 sack 22001-23001 ts 1410/1510",
        round_trips(2)
    );
    let samples = run(&ladder).samples;
    for t_ms in [1050, 1150, 1200, 1320] {
        assert_eq!(row_at(&samples, t_ms).cwnd_bytes, Some(2000), "{t_ms}");
    }
}

/// The first segment of the window after ten round trips is lost, and so is its retransmission. `last` follows.
fn first_retransmission_lost(last: &str) -> Vec<Sample> {
    let mut ladder = round_trips(10);
    for number in 1..10 {
        let (t_ms, start) = (1110 + number, 100_001 + number * 1000);
        let (end, id, echo, ts_val) = (start + 1000, 103 + number, t_ms - 100, t_ms + 100);
        writeln!(
            ladder,
            "{t_ms}.0 a>b A {start}:{end} ack 1 id {id} ts {ts_val}/{echo}"
        )
        .expect("text");
        writeln!(
            ladder,
            "{t_ms}.1 b>a A 1 ack 100001 sack 101001-{end} ts {t_ms}/{ts_val}"
        )
        .expect("text");
    }
    write!(
        ladder,
        "1216.0 a>b A 110001:111001 ack 1 id 114 ts 1316/1116
         1216.1 b>a A 1 ack 100001 sack 101001-111001 ts 1216/1316
         1218.0 a>b A 111001:112001 ack 1 id 115 ts 1318/1118
         1218.1 b>a A 1 ack 100001 sack 101001-112001 ts 1218/1318
         {last}"
    )
    .expect("text");
    run(&ladder).samples
}

#[test]
fn recovery_begins_though_its_first_retransmission_was_lost() {
    let samples = first_retransmission_lost(
        "1330.0 a>b A 100001:101001 ack 1 id 116 ts 1430/1218
         1330.1 b>a A 1 ack 112001 ts 1330/1430",
    );
    let before = row_at(&samples, 1119);
    assert_eq!(before.cwnd_bytes, Some(10_000));
    let row = row_at(&samples, 1219);
    assert_eq!(row.phase, Phase::Recovery);
    // Above the highest SACKed octet, and the retransmission.
    assert_eq!(row.cwnd_bytes, Some(4000));
    assert_eq!(row.recoveries, 0, "the segments may have been reordered");
    let last = samples.last().expect("a row");
    assert_eq!(last.recoveries, 1, "a retransmission was captured");
}

#[test]
fn a_recovery_that_a_timeout_ends_counts_though_all_its_retransmissions_were_lost() {
    let samples = first_retransmission_lost(
        "1830.0 a>b A 100001:101001 ack 1 id 117 ts 1930/1218    # 116: the same
         1830.1 b>a A 1 ack 112001 ts 1830/1930
         1930.0 a>b A 112001:113001 ack 1 id 118 ts 2030/1830
         1930.1 b>a A 1 ack 113001 ts 1930/2030
         2030.0 a>b A 113001:114001 ack 1 id 119 ts 2130/1930",
    );
    let last = samples.last().expect("a row");
    assert_eq!((last.recoveries, last.rtos), (1, 1));
}

#[test]
fn segments_that_overtake_another_begin_no_recovery() {
    let mut ladder = round_trips(10);
    // The first segment of the next window comes last.
    for number in 1..10 {
        let (t_ms, start) = (1110 + number, 100_001 + number * 1000);
        let (end, id, echo, ts_val) = (start + 1000, 103 + number, t_ms - 100, t_ms + 100);
        writeln!(
            ladder,
            "{t_ms}.0 a>b A {start}:{end} ack 1 id {id} ts {ts_val}/{echo}"
        )
        .expect("text");
        writeln!(
            ladder,
            "{t_ms}.1 b>a A 1 ack 100001 sack 101001-{end} ts {t_ms}/1110"
        )
        .expect("text");
    }
    write!(
        ladder,
        "1119.5 a>b A 100001:101001 ack 1 id 103 ts 1210/1010
         1119.6 b>a A 1 ack 110001 ts 1119/1210
        "
    )
    .expect("text");
    for number in 0..50 {
        let t_ms = 1211 + number / 10 * 100 + number % 10;
        let (start, id, echo) = (110_001 + number * 1000, 113 + number, t_ms - 100);
        let (end, ts_val) = (start + 1000, t_ms + 100);
        let echo = echo.min(if number < 10 { 1119 } else { echo });
        writeln!(
            ladder,
            "{t_ms}.0 a>b A {start}:{end} ack 1 id {id} ts {ts_val}/{echo}"
        )
        .expect("text");
        writeln!(ladder, "{t_ms}.1 b>a A 1 ack {end} ts {t_ms}/{ts_val}").expect("text");
    }
    let samples = run(&ladder).samples;
    let (before, after) = (row_at(&samples, 1200), row_at(&samples, 1600));
    assert_eq!(row_at(&samples, 1215).phase, Phase::Recovery);
    assert_eq!(after.phase, before.phase);
    assert_eq!(after.ssthresh_bytes, before.ssthresh_bytes);
    assert!(samples.iter().all(|sample| sample.recoveries == 0));
}

#[test]
fn an_echo_undoes_a_recovery_that_began_before_its_first_retransmission() {
    // Captured in the middle. The first segment arrives after the fifth one.
    let mut ladder = String::from(
        "  0.00 a>b S  0 mss 1000 sackok ts 1000/0
          50.00 b>a SA 0 ack 1 mss 1000 sackok ts 25/1000
         100.00 a>b A  1 ack 1 ts 1100/25
        ",
    );
    for number in 0..10 {
        let start = 1 + number * 1000;
        let end = start + 1000;
        writeln!(ladder, "110.{number} a>b A {start}:{end} ack 1 ts 1110/25").expect("text");
    }
    let samples = run(&format!(
        "{ladder}
         160.1 b>a A 1 ack 1 sack 1001-2001 ts 135/1100
         160.2 b>a A 1 ack 1 sack 1001-3001 ts 135/1100
         160.3 b>a A 1 ack 1 sack 1001-4001 ts 135/1100
         160.4 b>a A 1 ack 1 sack 1001-5001 ts 135/1100
         160.9 b>a A 1 ack 5001 ts 136/1110
         210.5 a>b A 1:1001 ack 1 ts 1210/135
         211.0 a>b A 10001:11001 ack 1 ts 1211/136
         212.0 a>b A 11001:12001 ack 1 ts 1212/136"
    ))
    .samples;
    let row = row_at(&samples, 212);
    assert_eq!((row.phase, row.recoveries), (Phase::CongestionAvoidance, 1));
}

#[test]
fn all_that_was_lost_before_a_timeout_was_in_the_window() {
    let ladder = |id: u32| {
        format!(
            "{}
             1510.0 a>b A 20001:21001 ack 1 id 24 ts 1610/1011    # a timeout; 23: the same
             1510.1 b>a A 1 ack 21001 ts 1510/1610
             2010.0 a>b A 21001:22001 ack 1 id {id} ts 2110/1510    # a timeout
             2010.1 b>a A 1 ack 22001 ts 2010/2110",
            round_trips(2)
        )
    };
    let window = |id| row_at(&run(&ladder(id)).samples, 1650).cwnd_bytes;
    assert_eq!(window(26), Some(1000), "25: the same");
    assert_eq!(window(27), Some(2000), "26: new data");
    let snd_nxt = |ladder: &str| row_at(&run(ladder).samples, 1650).snd_nxt;
    assert_eq!(
        snd_nxt(&ladder(97)),
        81_001,
        "no more than the window allows"
    );
    let fin = ladder(27).replace("a>b A 21001:22001", "a>b FA 21001:22001");
    assert_eq!(snd_nxt(&fin), 22_002, "nothing after the FIN");
}

#[test]
fn what_was_lost_after_a_short_segment_had_the_full_size() {
    let ladder = format!(
        "{}
         1510.0 a>b A 20001:21001 ack 1 id 24 ts 1610/1011    # a timeout; 23: the same
         1510.1 b>a A 1 ack 21001 ts 1510/1610
         2010.0 a>b A 21001:21501 ack 1 id 27 ts 2110/1510    # a timeout; 25: the same; 26: new data
         2010.1 b>a A 1 ack 21501 ts 2010/2110",
        round_trips(2)
    );
    assert_eq!(row_at(&run(&ladder).samples, 1650).snd_nxt, 22_501);
}

#[test]
fn a_silence_is_no_round_trip_at_the_receiver() {
    let ladder = format!(
        "{}
         5010.0 a>b A 20001:21001 ack 1 id 24 ts 5110/1011    # a timeout; 23: the same
         5010.1 b>a A 1 ack 21001 ts 5010/5110
         5110.0 a>b A 21001:22001 ack 1 id 25 ts 5210/5010
         5110.1 b>a A 1 ack 22001 ts 5110/5210",
        round_trips(2)
    );
    let samples = run(&ladder).samples;
    let srtt_ns = srtt_ns_at(&samples, 5111);
    assert!(srtt_ns < 110 * MS, "{srtt_ns}");
}

#[test]
fn a_pause_of_the_application_is_no_round_trip_at_the_receiver() {
    let ladder = format!(
        "{}
         3010.0 a>b A 20001:21001 ack 1 id 23 ts 3110/1011
         3010.1 b>a A 1 ack 21001 ts 3010/3110
         3110.0 a>b A 21001:22001 ack 1 id 24 ts 3210/3010
         3110.1 b>a A 1 ack 22001 ts 3110/3210",
        round_trips(2)
    );
    let samples = run(&ladder).samples;
    let srtt_ns = srtt_ns_at(&samples, 3111);
    assert!(srtt_ns < 110 * MS, "{srtt_ns}");
}

#[test]
fn the_rtt_of_a_window_of_one_segment_can_triple() {
    let mut ladder = round_trips(1);
    for number in 0..12 {
        let (t_ms, start, id) = (1310 + number * 300, 10_001 + number * 1000, 13 + number);
        let echo = if number == 0 { 1010 } else { t_ms - 300 };
        arrive(&mut ladder, t_ms, (start, id), echo);
    }
    let samples = run(&ladder).samples;
    let srtt_ns = srtt_ns_at(&samples, 9000);
    assert!((200 * MS..300 * MS).contains(&srtt_ns), "{srtt_ns}");
}

#[test]
fn no_ack_gives_an_estimate_in_a_silence() {
    let ladder = format!(
        "{}
         1261.0 a>b A 20001:21001 ack 1 id 23 ts 1361/1011
         1261.1 b>a A 1 ack 21001 ts 1261/1361
         1361.0 a>b A 21001:22001 ack 1 id 24 ts 1461/1261
         1361.1 b>a A 1 ack 22001 ts 1361/1461
         1461.0 a>b A 22001:23001 ack 1 id 25 ts 1561/1361",
        round_trips(2)
    );
    // Without IDs, a timer may have sent something.
    let lines = ladder.lines().map(|line| {
        let (before, after) = line.split_once(" id ").unwrap_or((line, ""));
        let after = after.split_once(' ').map_or("", |(_, rest)| rest);
        format!("{before} {after}\n")
    });
    let samples = run(&lines.collect::<String>()).samples;
    assert_eq!(row_at(&samples, 1200).cwnd_bytes, Some(2000));
    assert_eq!(row_at(&samples, 1220).cwnd_bytes, None);
    assert_eq!(row_at(&samples, 1260).cwnd_bytes, None);
    // The last ACK took 250 ms; the one before, which arrived with it, is no sample.
    let srtt_ns = srtt_ns_at(&samples, 1461);
    assert!((112 * MS..120 * MS).contains(&srtt_ns), "{srtt_ns}");
}

#[test]
fn the_end_of_a_zero_window_arrives_after_it_was_sent() {
    let ladder = format!(
        "{}
         1110.0 a>b A 20001:21001 ack 1 id 23 ts 1210/1011
         1110.1 b>a A 1 ack 21001 win 0 ts 1110/1210
         3110.0 b>a A 1 ack 21001 ts 3110/1210
         3210.0 a>b A 21001:22001 ack 1 id 24 ts 3310/3110
         3210.1 b>a A 1 ack 22001 ts 3210/3310
         3310.0 a>b A 22001:23001 ack 1 id 25 ts 3410/3210
         3310.1 b>a A 1 ack 23001 ts 3310/3410
         3410.0 a>b A 23001:24001 ack 1 id 26 ts 3510/3310",
        round_trips(2)
    );
    let samples = run(&ladder).samples;
    assert_eq!(row_at(&samples, 3000).snd_wnd_bytes, Some(0));
    assert_eq!(row_at(&samples, 3410).snd_wnd_bytes, Some(60_000));
    let srtt_ns = srtt_ns_at(&samples, 3410);
    assert!(
        srtt_ns < 110 * MS,
        "no round trip of two seconds: {srtt_ns}"
    );
}
