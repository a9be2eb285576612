//! The key of a connection: the addresses and ports of both ends in a fixed order, and a hash function.

use std::hash::{BuildHasher, BuildHasherDefault, Hasher};
use std::net::IpAddr;

use hindflight_decoder::Segment;

/// The two ends of a connection, the lower one first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// Upper and lower half of the lower address. Plain fields, which are compared in registers.
    low_upper: u64,
    low_lower: u64,
    /// Those of the higher one.
    high_upper: u64,
    high_lower: u64,
    /// Both ports and the IP version.
    ports: u64,
}

fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => u128::from(v4.to_bits()),
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

impl Key {
    /// The key of a segment. Both directions have the same key.
    pub fn of(segment: &Segment) -> Self {
        let source = (bits(segment.src), segment.src_port);
        let target = (bits(segment.dst), segment.dst_port);
        let (low, high) = if source <= target {
            (source, target)
        } else {
            (target, source)
        };
        let version = u64::from(segment.src.is_ipv6());
        Self {
            low_upper: (low.0 >> 64) as u64,
            low_lower: low.0 as u64,
            high_upper: (high.0 >> 64) as u64,
            high_lower: high.0 as u64,
            ports: version << 32 | u64::from(low.1) << 16 | u64::from(high.1),
        }
    }

    /// Both ends, the lower one first.
    pub fn ends(&self) -> [(IpAddr, u16); 2] {
        let ports = [(self.ports >> 16) as u16, self.ports as u16];
        let addresses = [
            (self.low_upper, self.low_lower),
            (self.high_upper, self.high_lower),
        ];
        [0, 1].map(|at| {
            let (upper, lower) = addresses[at];
            let address = if self.ports >> 32 == 1 {
                IpAddr::from((u128::from(upper) << 64 | u128::from(lower)).to_be_bytes())
            } else {
                IpAddr::from((lower as u32).to_be_bytes())
            };
            (address, ports[at])
        })
    }

    /// Its hash.
    pub fn hashed(&self) -> u64 {
        BuildKeyHasher::default().hash_one(self)
    }
}

impl std::hash::Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for word in [
            self.low_upper,
            self.low_lower,
            self.high_upper,
            self.high_lower,
            self.ports,
        ] {
            state.write_u64(word);
        }
    }
}

/// A hash for keys: a widening multiplication per 64-bit word.
#[derive(Clone, Copy, Debug, Default)]
pub struct KeyHasher(u64);

/// 2^64 divided by the golden ratio, an odd number with evenly distributed bits.
const MULTIPLIER: u128 = 0x9E37_79B9_7F4A_7C15;

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, word: u64) {
        let product =
            u128::from(self.0.rotate_left(23) ^ word ^ 0x5851_F42D_4C95_7F2D) * MULTIPLIER;
        self.0 = product as u64 ^ (product >> 64) as u64;
    }
}

/// Builds [`KeyHasher`].
type BuildKeyHasher = BuildHasherDefault<KeyHasher>;

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn keys_with_consecutive_ports_are_distributed_evenly() {
        let mut low_bits = HashSet::new();
        for port in 0..4096_u64 {
            let key = Key {
                low_upper: 0,
                low_lower: 0x0A00_0001,
                high_upper: 0,
                high_lower: 0x0A00_0002,
                ports: port << 16 | 0x50,
            };
            low_bits.insert(key.hashed() & 0xFFFF);
        }
        // 4096 random values of 16 bits hit about 3970 of the 65536.
        assert!(
            low_bits.len() > 3800 && low_bits.len() <= 4096,
            "{}",
            low_bits.len()
        );
    }
}
