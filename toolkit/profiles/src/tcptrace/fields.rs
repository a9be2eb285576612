//! The fields of `tcptrace --csv -l -r -n -W`, names and values in its order, and after them those that it prints
//! without `--csv` only.

use super::connection::Connection;
use super::direction::Direction;
use super::sequence_space::elapsed_us;
use crate::cells::Cells;
use crate::packet::Ends;

/// Fields of a connection.
const FIRST: [&str; 7] = [
    "conn_#",
    "host_a",
    "host_b",
    "port_a",
    "port_b",
    "first_packet",
    "last_packet",
];

/// Fields of each direction.
#[rustfmt::skip]
const OF_DIRECTIONS: [&str; 70] = [
    "total_packets", "resets_sent", "ack_pkts_sent", "pure_acks_sent", "sack_pkts_sent", "dsack_pkts_sent",
    "max_sack_blks/ack", "unique_bytes_sent", "actual_data_pkts", "actual_data_bytes", "rexmt_data_pkts",
    "rexmt_data_bytes", "zwnd_probe_pkts", "zwnd_probe_bytes", "outoforder_pkts", "pushed_data_pkts",
    "SYN/FIN_pkts_sent", "req_1323_ws/ts", "adv_wind_scale", "req_sack", "sacks_sent", "urgent_data_pkts",
    "urgent_data_bytes", "mss_requested", "max_segm_size", "min_segm_size", "avg_segm_size", "max_win_adv",
    "min_win_adv", "zero_win_adv", "avg_win_adv", "max_owin", "min_non-zero_owin", "avg_owin", "wavg_owin",
    "initial_window_bytes", "initial_window_pkts", "ttl_stream_length", "missed_data", "truncated_data",
    "truncated_packets", "data_xmit_time", "idletime_max", "hardware_dups", "throughput", "RTT_samples", "RTT_min",
    "RTT_max", "RTT_avg", "RTT_stdev", "RTT_from_3WHS", "RTT_full_sz_smpls", "RTT_full_sz_min", "RTT_full_sz_max",
    "RTT_full_sz_avg", "RTT_full_sz_stdev", "post-loss_acks", "ambiguous_acks", "RTT_min_(last)", "RTT_max_(last)",
    "RTT_avg_(last)", "RTT_sdv_(last)", "segs_cum_acked", "duplicate_acks", "triple_dupacks", "max_#_retrans",
    "min_retr_time", "max_retr_time", "avg_retr_time", "sdv_retr_time",
];

/// Fields of a connection that tcptrace prints without `--csv`.
const LAST: [&str; 5] = [
    "complete_conn",
    "SYNs",
    "FINs",
    "elapsed_time",
    "total_packets",
];

/// The names of all fields. That of one lacks an underscore in tcptrace, too.
pub fn names() -> Vec<String> {
    let first = FIRST.iter().map(|&name| name.to_owned());
    let both = OF_DIRECTIONS
        .iter()
        .flat_map(|name| ["a2b", "b2a"].map(|way| format!("{name}_{way}")))
        .map(|name| match name.as_str() {
            "RTT_full_sz_stdev_a2b" => "RTT full_sz_stdev_a2b".to_owned(),
            _ => name,
        });
    let last = LAST.iter().map(|&name| name.to_owned());
    first.chain(both).chain(last).collect()
}

/// Writes the values of the connection with this number.
pub fn write(number: u32, ends: &Ends, connection: &Connection, out: &mut impl Cells) {
    out.integer(u64::from(number));
    out.address(ends.a.address());
    out.address(ends.b.address());
    out.integer(u64::from(ends.a.port));
    out.integer(u64::from(ends.b.port));
    out.time(connection.first_us);
    out.time(connection.last_us);
    let ways = [&connection.a2b, &connection.b2a];
    let elapsed_us = elapsed_us(connection.first_us, connection.last_us);
    write_packets(ways, out);
    write_options(ways, out);
    write_windows(ways, elapsed_us, out);
    write_stream(ways, elapsed_us, out);
    write_rtt(ways, out);
    let count = |bits: fn(&Direction) -> u32| ways.iter().filter(|d| bits(d) > 0).count() as u64;
    let (syns, fins) = (count(|d| d.syns), count(|d| d.fins));
    out.text(match () {
        () if connection.is_reset() => "RESET",
        () if syns == 2 && fins == 2 => "yes",
        () => "no",
    });
    out.integer(syns);
    out.integer(fins);
    out.duration(elapsed_us);
    out.integer(ways.iter().map(|d| d.packets).sum());
}

type Ways<'a> = [&'a Direction; 2];

/// Writes a value of each direction.
#[inline]
fn integers(ways: Ways<'_>, out: &mut impl Cells, value: impl Fn(&Direction) -> u64) {
    out.integer(value(ways[0]));
    out.integer(value(ways[1]));
}

#[inline]
fn milliseconds(ways: Ways<'_>, out: &mut impl Cells, us: impl Fn(&Direction) -> u64) {
    out.milliseconds(us(ways[0]));
    out.milliseconds(us(ways[1]));
}

#[inline]
fn fractions(ways: Ways<'_>, out: &mut impl Cells, us: impl Fn(&Direction) -> f64) {
    for way in ways {
        out.decimal(us(way) / 1000.0, 1);
    }
}

fn write_packets(ways: Ways<'_>, out: &mut impl Cells) {
    integers(ways, out, |d| d.packets);
    integers(ways, out, |d| u64::from(d.resets));
    integers(ways, out, |d| d.acks);
    integers(ways, out, |d| d.pure_acks);
    integers(ways, out, |d| d.sack_packets);
    integers(ways, out, |d| d.dsack_packets);
    integers(ways, out, |d| u64::from(d.max_sack_blocks));
    integers(ways, out, |d| d.unique_bytes);
    integers(ways, out, |d| d.data_packets);
    integers(ways, out, |d| d.data_bytes);
    integers(ways, out, |d| d.retransmitted_packets);
    integers(ways, out, |d| d.retransmitted_bytes);
    integers(ways, out, |d| d.probe_packets);
    integers(ways, out, |d| d.probe_bytes);
    integers(ways, out, |d| d.out_of_order_packets);
    integers(ways, out, |d| d.pushed_packets);
    for way in ways {
        out.ratio(u64::from(way.syns), u64::from(way.fins));
    }
}

fn write_options(ways: Ways<'_>, out: &mut impl Cells) {
    for way in ways {
        out.text(match (way.asked_scale, way.asked_timestamps) {
            (true, true) => "Y/Y",
            (true, false) => "Y/N",
            (false, true) => "N/Y",
            (false, false) => "N/N",
        });
    }
    integers(ways, out, |d| u64::from(d.wscale));
    for way in ways {
        out.text(if way.asked_sack { "Y" } else { "N" });
    }
    integers(ways, out, |d| d.sacks);
    integers(ways, out, |d| d.urgent_packets);
    integers(ways, out, |d| d.urgent_bytes);
    integers(ways, out, |d| u64::from(d.mss));
    integers(ways, out, |d| u64::from(d.max_segment_bytes));
    integers(ways, out, |d| u64::from(d.min_segment_bytes));
    integers(ways, out, |d| {
        (d.data_bytes as f64 / (d.data_packets as f64 + 0.001)) as u64
    });
}

fn write_windows(ways: Ways<'_>, elapsed_us: u64, out: &mut impl Cells) {
    integers(ways, out, |d| d.max_window);
    integers(ways, out, |d| d.min_window);
    integers(ways, out, |d| d.zero_windows);
    if ways.iter().all(|d| d.scaled_windows) {
        integers(ways, out, |d| {
            d.window_sum.checked_div(d.scaled_packets).unwrap_or(0)
        });
    } else {
        integers(ways, out, |d| {
            d.window_sum.checked_div(d.packets).unwrap_or(0)
        });
    }
    integers(ways, out, |d| d.max_owin);
    integers(ways, out, |d| d.min_owin);
    integers(ways, out, |d| {
        d.owin_sum.checked_div(d.owin_count).unwrap_or(0)
    });
    for way in ways {
        if elapsed_us == 0 {
            out.missing();
        } else {
            out.integer((way.owin_octet_seconds as f64 / (elapsed_us as f64 / 1e6)) as u64);
        }
    }
    integers(ways, out, |d| d.initial_bytes);
    integers(ways, out, |d| d.initial_packets);
}

fn write_stream(ways: Ways<'_>, elapsed_us: u64, out: &mut impl Cells) {
    let streams = ways.map(Direction::stream_bytes);
    for stream in streams {
        match stream {
            Some(bytes) => out.integer(bytes),
            None => out.missing(),
        }
    }
    for (stream, way) in streams.into_iter().zip(ways) {
        match stream {
            // Deviation: where more was sent than the stream is long, tcptrace prints the difference modulo 2^64.
            Some(bytes) => out.integer(bytes.saturating_sub(way.unique_bytes)),
            None => out.missing(),
        }
    }
    integers(ways, out, |d| d.missing_bytes);
    integers(ways, out, |d| d.missing_packets);
    for way in ways {
        let first_us = way.first_data_us.unwrap_or(way.last_data_us);
        let seconds = self::elapsed_us(first_us, way.last_data_us) as f64 / 1e6;
        out.decimal(seconds, 3);
    }
    for way in ways {
        if way.last_us.is_some() {
            out.milliseconds(way.idle_max_us);
        } else {
            out.missing();
        }
    }
    integers(ways, out, |d| d.copies);
    for way in ways {
        if elapsed_us == 0 {
            out.missing();
        } else {
            out.decimal(way.unique_bytes as f64 / (elapsed_us as f64 / 1e6), 0);
        }
    }
}

fn write_rtt(ways: Ways<'_>, out: &mut impl Cells) {
    integers(ways, out, |d| d.answers.rtt.count);
    milliseconds(ways, out, |d| d.answers.rtt.min_us);
    milliseconds(ways, out, |d| d.answers.rtt.max_us);
    fractions(ways, out, |d| d.answers.rtt.mean_us());
    fractions(ways, out, |d| d.answers.rtt.deviation_us());
    milliseconds(ways, out, |d| d.handshake_rtt_us);
    integers(ways, out, |d| d.answers.full_size.samples.count);
    milliseconds(ways, out, |d| d.answers.full_size.samples.min_us);
    milliseconds(ways, out, |d| d.answers.full_size.samples.max_us);
    fractions(ways, out, |d| d.answers.full_size.samples.mean_us());
    fractions(ways, out, |d| d.answers.full_size.samples.deviation_us());
    integers(ways, out, |d| d.answers.unsampled);
    integers(ways, out, |d| d.answers.rtt_resent.count);
    milliseconds(ways, out, |d| d.answers.rtt_resent.min_us);
    milliseconds(ways, out, |d| d.answers.rtt_resent.max_us);
    fractions(ways, out, |d| d.answers.rtt_resent.mean_us());
    fractions(ways, out, |d| d.answers.rtt_resent.deviation_us());
    integers(ways, out, |d| d.answers.cumulative);
    integers(ways, out, |d| d.answers.duplicates);
    integers(ways, out, |d| d.answers.third_duplicates);
    integers(ways, out, |d| u64::from(d.max_resent));
    milliseconds(ways, out, |d| d.resent.min_us);
    milliseconds(ways, out, |d| d.resent.max_us);
    fractions(ways, out, |d| d.resent.mean_us());
    fractions(ways, out, |d| d.resent.deviation_us());
}
