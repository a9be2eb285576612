//! Builders for captures, valid and invalid. They do not use the decoder.
#![allow(dead_code, missing_docs)]

/// Builds a pcap file.
#[derive(Clone)]
pub struct Capture {
    pub octets: Vec<u8>,
    pub big_endian: bool,
    pub ends: Vec<usize>,
}

impl Capture {
    pub fn new(big_endian: bool, nanosecond: bool, snaplen: u32, link: u32) -> Self {
        let mut capture = Self {
            octets: Vec::new(),
            big_endian,
            ends: Vec::new(),
        };
        capture.u32(if nanosecond { 0xa1b2_3c4d } else { 0xa1b2_c3d4 });
        let version: [u8; 4] = if big_endian {
            [0, 2, 0, 4]
        } else {
            [2, 0, 4, 0]
        };
        capture.octets.extend(version);
        for field in [0, 0, snaplen, link] {
            capture.u32(field);
        }
        capture
    }

    /// Microseconds, little endian, Ethernet, default snapshot length, as tcpdump writes on most machines.
    pub fn plain() -> Self {
        Self::new(false, false, 262_144, 1)
    }

    pub fn u32(&mut self, value: u32) {
        self.octets.extend(if self.big_endian {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        });
    }

    /// Adds a record with the given header fields.
    pub fn record(
        &mut self,
        seconds: u32,
        fraction: u32,
        frame_bytes: u32,
        data: &[u8],
    ) -> &mut Self {
        for field in [seconds, fraction, data.len() as u32, frame_bytes] {
            self.u32(field);
        }
        self.octets.extend(data);
        self.ends.push(self.octets.len());
        self
    }

    /// Adds a complete frame, one millisecond after the previous one.
    pub fn frame(&mut self, data: &[u8]) -> &mut Self {
        let n = self.ends.len() as u32;
        self.record(
            1_700_000_000 + n / 1000,
            n % 1000 * 1000,
            data.len() as u32,
            data,
        )
    }
}

/// Builds a TCP segment.
#[derive(Clone)]
pub struct Tcp {
    pub src_port: u16,
    pub dst_port: u16,
    pub seq: u32,
    pub ack: u32,
    pub flags: u16,
    pub window: u16,
    pub options: Vec<u8>,
    pub payload: Vec<u8>,
    pub offset_words: Option<u8>,
}

impl Default for Tcp {
    fn default() -> Self {
        Self {
            src_port: 40_000,
            dst_port: 5001,
            seq: 1_000_000_007,
            ack: 2_000_000_011,
            flags: 0x10,
            window: 512,
            options: Vec::new(),
            payload: vec![0x55; 10],
            offset_words: None,
        }
    }
}

impl Tcp {
    pub fn with_options(options: &[u8]) -> Self {
        Self {
            options: options.to_vec(),
            ..Self::default()
        }
    }

    pub fn octets(&self) -> Vec<u8> {
        let mut options = self.options.clone();
        options.resize(options.len().div_ceil(4) * 4, 0);
        let words = self.offset_words.unwrap_or(5 + (options.len() / 4) as u8);
        let mut out = Vec::new();
        out.extend(self.src_port.to_be_bytes());
        out.extend(self.dst_port.to_be_bytes());
        out.extend(self.seq.to_be_bytes());
        out.extend(self.ack.to_be_bytes());
        out.push(words << 4 | (self.flags >> 8) as u8);
        out.push(self.flags as u8);
        out.extend(self.window.to_be_bytes());
        out.extend([0xbe, 0xef, 0, 0]);
        out.extend(options);
        out.extend(&self.payload);
        out
    }
}

/// An IPv4 packet: identification 0x1234, time to live 61, DSCP and ECN 0x2a.
pub fn ipv4(protocol: u8, options: &[u8], fragment: u16, body: &[u8]) -> Vec<u8> {
    let header_bytes = 20 + options.len();
    let total = (header_bytes + body.len()) as u16;
    let mut out = vec![0x40 | (header_bytes / 4) as u8, 0x2a];
    out.extend(total.to_be_bytes());
    out.extend([0x12, 0x34]);
    out.extend(fragment.to_be_bytes());
    out.extend([61, protocol, 0xde, 0xad, 10, 77, 0, 1, 10, 77, 0, 2]);
    out.extend(options);
    out.extend(body);
    out
}

/// The IPv4 packet with the checksum of its header.
pub fn summed(mut packet: Vec<u8>) -> Vec<u8> {
    packet[10..12].fill(0);
    let words = packet[..20].chunks(2);
    let sum: u32 = words
        .map(|word| u32::from(word[0]) << 8 | u32::from(word[1]))
        .sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let checksum = !((folded & 0xffff) + (folded >> 16)) as u16;
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    packet
}

/// An IPv6 packet: traffic class 0x2a, hop limit 59.
pub fn ipv6(next_header: u8, body: &[u8]) -> Vec<u8> {
    let mut out = vec![0x62, 0xa0, 0, 0];
    out.extend((body.len() as u16).to_be_bytes());
    out.extend([next_header, 59]);
    for last in [1, 2] {
        out.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
    }
    out.extend(body);
    out
}

pub fn ethernet(ethertype: u16, body: &[u8]) -> Vec<u8> {
    let mut out = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
    out.extend(ethertype.to_be_bytes());
    out.extend(body);
    out
}

/// An Ethernet frame with a TCP segment over IPv4.
pub fn tcp_frame(tcp: &Tcp) -> Vec<u8> {
    ethernet(0x0800, &ipv4(6, &[], 0x4000, &tcp.octets()))
}

/// Builds a pcapng file. `ends` holds the end of every block.
pub struct Ng {
    pub octets: Vec<u8>,
    pub ends: Vec<usize>,
    pub big_endian: bool,
}

impl Ng {
    /// A file that starts with a section of the given byte order.
    pub fn new(big_endian: bool) -> Self {
        let mut file = Self {
            octets: Vec::new(),
            ends: Vec::new(),
            big_endian,
        };
        file.section(big_endian);
        file
    }

    pub fn u16_into(&self, out: &mut Vec<u8>, value: u16) {
        out.extend(if self.big_endian {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        });
    }

    pub fn u32_into(&self, out: &mut Vec<u8>, value: u32) {
        out.extend(if self.big_endian {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        });
    }

    /// Starts a section of version 1.0 and unknown length.
    pub fn section(&mut self, big_endian: bool) {
        self.big_endian = big_endian;
        let mut body = Vec::new();
        self.u32_into(&mut body, 0x1a2b_3c4d);
        self.u16_into(&mut body, 1);
        self.u16_into(&mut body, 0);
        body.extend([0xff; 8]);
        self.block(0x0a0d_0d0a, &body);
    }

    /// Adds a block; the body is padded to a multiple of four octets.
    pub fn block(&mut self, kind: u32, body: &[u8]) {
        let padded_bytes = body.len().next_multiple_of(4);
        let mut block = Vec::new();
        self.u32_into(&mut block, kind);
        self.u32_into(&mut block, padded_bytes as u32 + 12);
        block.extend(body);
        block.resize(8 + padded_bytes, 0);
        self.u32_into(&mut block, padded_bytes as u32 + 12);
        self.octets.extend(block);
        self.ends.push(self.octets.len());
    }

    fn options(&self, options: &[(u16, Vec<u8>)]) -> Vec<u8> {
        let mut out = Vec::new();
        for (code, value) in options {
            self.u16_into(&mut out, *code);
            self.u16_into(&mut out, value.len() as u16);
            out.extend(value);
            out.resize(out.len().next_multiple_of(4), 0);
        }
        if !options.is_empty() {
            out.extend([0; 4]);
        }
        out
    }

    pub fn interface(&mut self, link: u16, snaplen: u32, options: &[(u16, Vec<u8>)]) {
        let mut body = Vec::new();
        self.u16_into(&mut body, link);
        self.u16_into(&mut body, 0);
        self.u32_into(&mut body, snaplen);
        body.extend(self.options(options));
        self.block(1, &body);
    }

    pub fn packet(&mut self, interface: u32, ticks: u64, data: &[u8]) {
        self.packet_with(interface, ticks, data, &[]);
    }

    pub fn packet_with(
        &mut self,
        interface: u32,
        ticks: u64,
        data: &[u8],
        options: &[(u16, Vec<u8>)],
    ) {
        let mut body = Vec::new();
        let length = data.len() as u32;
        for field in [
            interface,
            (ticks >> 32) as u32,
            ticks as u32,
            length,
            length,
        ] {
            self.u32_into(&mut body, field);
        }
        body.extend(data);
        body.resize(body.len().next_multiple_of(4), 0);
        body.extend(self.options(options));
        self.block(6, &body);
    }
}
