//! Numbers of a configuration with their unit, as "300 s" or "64 KiB"; the end of the key determines the unit.

const HOUR_NS: f64 = 3600e9;

/// `value` of the key `key` with its unit; without, if the key names none.
pub(crate) fn quantity(key: &str, value: f64) -> String {
    let name = key.trim_end_matches(|c: char| c == ']' || c == '[' || c.is_ascii_digit());
    let suffix = name.rsplit('_').next().unwrap_or("");
    match suffix {
        "ns" if value >= HOUR_NS && value % HOUR_NS == 0.0 => format!("{} h", value / HOUR_NS),
        "ns" => scaled(value, &[(1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns")]),
        "bps" => {
            let units = [
                (1e9, "Gbit/s"),
                (1e6, "Mbit/s"),
                (1e3, "kbit/s"),
                (1.0, "bit/s"),
            ];
            scaled(value, &units)
        }
        "bytes" => octets(value),
        "pkts" => {
            let number = value.to_string();
            let unit = if number == "1" { "pkt" } else { "pkts" };
            format!("{number} {unit}")
        }
        _ => format!("{value}"),
    }
}

/// In the largest unit of which there is at least one.
fn scaled(value: f64, units: &[(f64, &str)]) -> String {
    let unit = units.iter().find(|(factor, _)| value >= *factor);
    let (factor, unit) = unit.or(units.last()).copied().unwrap_or((1.0, ""));
    format!("{} {unit}", value / factor)
}

/// In the largest unit of which it is a whole multiple.
fn octets(value: f64) -> String {
    let units = [
        (1_073_741_824.0, "GiB"),
        (1_048_576.0, "MiB"),
        (1024.0, "KiB"),
        (1e6, "MB"),
        (1e3, "kB"),
    ];
    let whole = |(factor, _): &&(f64, &str)| value >= *factor && value % *factor == 0.0;
    let (factor, unit) = units.iter().find(whole).copied().unwrap_or((1.0, "B"));
    format!("{} {unit}", value / factor)
}

#[cfg(test)]
mod tests {
    use super::quantity;

    #[test]
    fn the_end_of_a_key_determines_the_unit() {
        for (key, value, expected) in [
            ("flows[0].stack.min_rto_ns", 300e9, "300 s"),
            ("min_rto_ns", 2_592_000e9, "720 h"),
            ("min_rto_ns", 3_601e9, "3601 s"),
            ("min_rto_ns", 0.0, "0 ns"),
            ("min_rto_ns", 1_500_000.0, "1.5 ms"),
            ("starts_ns[12]", 1000.0, "1 us"),
            ("rate_bps", 8.0, "8 bit/s"),
            ("rate_bps", 1e13, "10000 Gbit/s"),
            ("rate_bps", -1.0, "-1 bit/s"),
            ("smss_bytes", 1448.0, "1448 B"),
            ("receive_buffer_bytes", 65_536.0, "64 KiB"),
            ("receive_buffer_bytes", 1_073_741_824.0, "1 GiB"),
            ("send_buffer_bytes", 100_000.0, "100 kB"),
            ("initial_window_pkts", 1.0, "1 pkt"),
            ("initial_window_pkts", 2.0, "2 pkts"),
            ("dscp", 64.0, "64"),
            ("rate_bps", f64::NAN, "NaN bit/s"),
        ] {
            assert_eq!(quantity(key, value), expected, "{key}");
        }
    }
}
