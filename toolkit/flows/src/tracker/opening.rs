//! A connection of which the capture has shown only a SYN, in a few octets: a scan opens millions of them.

use hindflight_decoder::{Checksum, Segment, TcpOptions, flags};

use crate::connection::Connection;
use crate::key::Key;

/// What a connection keeps of its first segment, a SYN without payload.
#[derive(Clone, Copy, Debug)]
pub struct Opening {
    /// Time of the SYN.
    pub t_ns: i64,
    record: u64,
    seq: u32,
    timestamps: Option<(u32, u32)>,
    ip_id: Option<u16>,
    mss: Option<u16>,
    flags: u16,
    window: u16,
    wscale: Option<u8>,
    sack_permitted: bool,
    /// The lower end of the key sent it.
    from_low: bool,
}

impl Opening {
    /// The state of a connection whose first segment is `segment`, if it fits.
    pub fn of(segment: &Segment, key: &Key) -> Option<Self> {
        const OTHERS: u16 = flags::ACK | flags::FIN | flags::RST;
        let options = &segment.options;
        let plain = segment.flags & (flags::SYN | OTHERS) == flags::SYN
            && segment.payload_bytes == 0
            && options.sack.as_slice().is_empty();
        plain.then(|| Self {
            t_ns: segment.t_ns,
            record: segment.record,
            seq: segment.seq,
            timestamps: options.timestamps,
            ip_id: segment.ip_id,
            mss: options.mss,
            flags: segment.flags,
            window: segment.window,
            wscale: options.wscale,
            sack_permitted: options.sack_permitted,
            from_low: key.ends()[0] == (segment.src, segment.src_port),
        })
    }

    /// The connection after its SYN.
    pub fn connection(&self, flow_id: u32, key: &Key, estimates_cwnd: bool) -> Connection {
        let segment = self.segment(key);
        let mut connection = Connection::new(flow_id, &segment, estimates_cwnd);
        // A SYN is neither an event nor a sample.
        connection.push(&segment, &mut Vec::new(), &mut Vec::new());
        connection
    }

    /// The SYN. What no row of `flows` depends on is 0.
    fn segment(&self, key: &Key) -> Segment {
        let [low, high] = key.ends();
        let (source, target) = if self.from_low {
            (low, high)
        } else {
            (high, low)
        };
        Segment {
            record: self.record,
            t_ns: self.t_ns,
            frame_bytes: 0,
            captured_bytes: 0,
            src: source.0,
            dst: target.0,
            src_port: source.1,
            dst_port: target.1,
            ip_id: self.ip_id,
            ttl: 0,
            dscp_ecn: 0,
            ip_bytes: 0,
            seq: self.seq,
            ack: 0,
            flags: self.flags,
            window: self.window,
            urgent: 0,
            payload_bytes: 0,
            missing_bytes: 0,
            ip_checksum: Checksum::NotChecked,
            tcp_checksum: Checksum::NotChecked,
            options: TcpOptions {
                mss: self.mss,
                wscale: self.wscale,
                sack_permitted: self.sack_permitted,
                timestamps: self.timestamps,
                ..TcpOptions::default()
            },
        }
    }
}
