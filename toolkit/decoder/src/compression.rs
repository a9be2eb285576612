//! Decompression of captures in the xz, gzip, zstd, bzip2 and lz4 formats. The first octets select the format; file names are
//! ignored.

use std::io::{self, BufReader, Chain, Cursor, Read};

use bzip2::bufread::MultiBzDecoder;
use flate2::bufread::MultiGzDecoder;
use liblzma::stream::{Action, CONCATENATED, Status, Stream};
use lz4_flex::frame::FrameDecoder;

/// The compression of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Not compressed.
    None,
    /// The xz format.
    Xz,
    /// The gzip format (RFC 1952).
    Gzip,
    /// The Zstandard format (RFC 8878).
    Zstd,
    /// The bzip2 format.
    Bzip2,
    /// The lz4 frame format.
    Lz4,
}

impl Compression {
    /// Short name; `none` for an uncompressed file.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Xz => "xz",
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
            Self::Bzip2 => "bzip2",
            Self::Lz4 => "lz4",
        }
    }

    fn detect(start: &[u8]) -> Self {
        match start {
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Self::Xz,
            [0x1f, 0x8b, ..] => Self::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Self::Zstd,
            [b'B', b'Z', b'h', b'1'..=b'9', ..] => Self::Bzip2,
            [0x04, 0x22, 0x4d, 0x18, ..] => Self::Lz4,
            _ => Self::None,
        }
    }
}

/// Length of the longest magic number.
const MAGIC_BYTES: usize = 6;

/// Memory limit of the xz decoder: a header that asks for more is damaged, hostile, or of an unusual dictionary. `xz -9` needs 65 MiB.
const XZ_MEMORY_LIMIT_BYTES: u64 = 68 << 20;

/// Largest window of a zstd frame, as a power of two: 64 MiB. `zstd -19` uses 8 MiB.
const ZSTD_MAX_WINDOW_LOG: u32 = 26;

/// Largest read from the decoders other than that of xz, which discard the output of a whole read when they meet damage.
const MAX_READ_BYTES: usize = 8 << 10;

/// The source with the octets put back that [`Compression::detect`] has seen.
type Rewound<R> = Chain<Cursor<Vec<u8>>, R>;

/// A decompressed input.
pub(crate) enum Input<R: Read> {
    Plain(Rewound<R>),
    Xz(Box<Xz<Rewound<R>>>),
    Gzip(Box<MultiGzDecoder<BufReader<Rewound<R>>>>),
    Zstd(Box<zstd::stream::read::Decoder<'static, BufReader<Rewound<R>>>>),
    Bzip2(Box<MultiBzDecoder<BufReader<Rewound<R>>>>),
    Lz4(Box<FrameDecoder<BufReader<Rewound<R>>>>),
}

impl<R: Read> Input<R> {
    /// Detects the compression of `source` and sets up the decoder.
    pub fn new(mut source: R) -> io::Result<Self> {
        let mut start = Vec::with_capacity(MAGIC_BYTES);
        source
            .by_ref()
            .take(MAGIC_BYTES as u64)
            .read_to_end(&mut start)?;
        let compression = Compression::detect(&start);
        let rewound = Cursor::new(start).chain(source);
        Ok(match compression {
            Compression::None => Self::Plain(rewound),
            Compression::Xz => Self::Xz(Box::new(Xz::new(rewound)?)),
            Compression::Gzip => Self::Gzip(Box::new(MultiGzDecoder::new(BufReader::new(rewound)))),
            Compression::Zstd => {
                let mut decoder =
                    zstd::stream::read::Decoder::with_buffer(BufReader::new(rewound))?;
                decoder.window_log_max(ZSTD_MAX_WINDOW_LOG)?;
                Self::Zstd(Box::new(decoder))
            }
            Compression::Bzip2 => {
                Self::Bzip2(Box::new(MultiBzDecoder::new(BufReader::new(rewound))))
            }
            Compression::Lz4 => Self::Lz4(Box::new(FrameDecoder::new(BufReader::new(rewound)))),
        })
    }

    pub fn compression(&self) -> Compression {
        match self {
            Self::Plain(_) => Compression::None,
            Self::Xz(_) => Compression::Xz,
            Self::Gzip(_) => Compression::Gzip,
            Self::Zstd(_) => Compression::Zstd,
            Self::Bzip2(_) => Compression::Bzip2,
            Self::Lz4(_) => Compression::Lz4,
        }
    }
}

impl<R: Read> Read for Input<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let limit = buffer.len().min(MAX_READ_BYTES);
        match self {
            Self::Plain(source) => source.read(buffer),
            Self::Xz(source) => source.read(buffer),
            Self::Gzip(source) => source.read(&mut buffer[..limit]),
            Self::Zstd(source) => source.read(&mut buffer[..limit]),
            Self::Bzip2(source) => source.read(&mut buffer[..limit]),
            // The decoder ends at the end of each frame; the next read starts the next frame.
            Self::Lz4(source) => match source.read(&mut buffer[..limit])? {
                0 => source.read(&mut buffer[..limit]),
                count => Ok(count),
            },
        }
    }
}

/// An xz decoder. Unlike the reader of the liblzma crate, it returns all output that precedes an error before it
/// returns the error.
pub(crate) struct Xz<R> {
    source: R,
    stream: Stream,
    input: Box<[u8]>,
    start: usize,
    end: usize,
    state: State,
}

enum State {
    Running,
    Ended,
    Failed(io::Error),
}

const XZ_INPUT_BYTES: usize = 64 << 10;

impl<R: Read> Xz<R> {
    fn new(source: R) -> io::Result<Self> {
        Ok(Self {
            source,
            stream: Stream::new_stream_decoder(XZ_MEMORY_LIMIT_BYTES, CONCATENATED)?,
            input: vec![0; XZ_INPUT_BYTES].into_boxed_slice(),
            start: 0,
            end: 0,
            state: State::Running,
        })
    }

    /// Runs the decoder once and returns the length of its output. The state keeps an end or error for the next call.
    fn step(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
            self.end = self.source.read(&mut self.input)?;
        }
        let input = &self.input[self.start..self.end];
        let at_end = input.is_empty();
        let action = if at_end { Action::Finish } else { Action::Run };
        let (in_before, out_before) = (self.stream.total_in(), self.stream.total_out());
        let status = self.stream.process(input, buffer, action);
        let out_bytes = (self.stream.total_out() - out_before) as usize;
        let in_bytes = (self.stream.total_in() - in_before) as usize;
        self.start += in_bytes;
        match status {
            Ok(Status::StreamEnd) => self.state = State::Ended,
            Ok(_) if at_end && out_bytes == 0 => {
                self.state = State::Failed(io::ErrorKind::UnexpectedEof.into());
            }
            Ok(_) => {}
            Err(liblzma::stream::Error::MemLimit) => {
                let limit = XZ_MEMORY_LIMIT_BYTES >> 20;
                let text = format!("unpacking it needs more than {limit} MiB of memory");
                self.state = State::Failed(io::Error::new(io::ErrorKind::OutOfMemory, text));
            }
            Err(error) => self.state = State::Failed(error.into()),
        }
        Ok(out_bytes)
    }
}

impl<R: Read> Read for Xz<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while !buffer.is_empty() {
            match std::mem::replace(&mut self.state, State::Ended) {
                State::Running => self.state = State::Running,
                State::Ended => return Ok(0),
                State::Failed(error) => return Err(error),
            }
            let out_bytes = self.step(buffer)?;
            if out_bytes > 0 {
                return Ok(out_bytes);
            }
        }
        Ok(0)
    }
}
