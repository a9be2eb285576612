//! A connection that has been silent, in a few hundred octets, until its next segment: its state is several kilobytes,
//! most of them as in any other connection.

use lz4_flex::block::{compress_into_with_dict, decompress_with_dict, get_maximum_output_size};

use crate::connection::Connection;

/// Maximum length of the template: one with many segments outstanding is no model.
const MAX_TEMPLATE_BYTES: usize = 1 << 12;

/// A connection without loss of anything.
#[derive(Debug)]
pub struct Packed {
    octets: Box<[u8]>,
    plain_bytes: u32,
    /// Time of its last segment.
    pub end_ns: i64,
    /// As [`Connection::is_established`].
    pub established: bool,
}

/// Packs connections and unpacks those that it packed.
#[derive(Debug, Default)]
pub struct Packer {
    /// The first small connection packed. What later ones have in common with it is left out; those before it do not
    /// refer to it.
    template: Vec<u8>,
    out: Vec<u8>,
}

impl Packer {
    /// The compact form of `connection`; `None` if it has none.
    pub fn pack(&mut self, connection: &Connection) -> Option<Packed> {
        let plain = postcard::to_allocvec(connection).ok()?;
        if self.template.is_empty() && plain.len() <= MAX_TEMPLATE_BYTES {
            self.template.clone_from(&plain);
        }
        let max_len = get_maximum_output_size(plain.len());
        self.out.resize(max_len.max(self.out.len()), 0);
        let length = compress_into_with_dict(&plain, &mut self.out, &self.template).ok()?;
        Some(Packed {
            octets: self.out[..length].into(),
            plain_bytes: u32::try_from(plain.len()).ok()?,
            end_ns: connection.end_ns(),
            established: connection.is_established(),
        })
    }

    /// The connection that was packed.
    pub fn unpack(&self, packed: &Packed) -> Option<Connection> {
        let length = packed.plain_bytes as usize;
        let plain = decompress_with_dict(&packed.octets, length, &self.template).ok()?;
        postcard::from_bytes(&plain).ok()
    }
}
