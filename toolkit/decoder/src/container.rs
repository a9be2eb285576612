//! What a capture may be wrapped in: nothing, xz, gzip or zstd, told by its first octets and never by a name.
//! Knows nothing of what is inside. The result is again a `Read`.

use std::io::{self, BufReader, Chain, Cursor, Read};

use flate2::bufread::MultiGzDecoder;
use liblzma::stream::{Action, CONCATENATED, Status, Stream};

/// How the input is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// The xz format.
    Xz,
    /// The gzip format (RFC 1952).
    Gzip,
    /// The Zstandard format (RFC 8878).
    Zstd,
}

impl Compression {
    /// Its name; `none` for a plain file.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Xz => "xz",
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        }
    }

    fn of(start: &[u8]) -> Self {
        match start {
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Self::Xz,
            [0x1f, 0x8b, ..] => Self::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Self::Zstd,
            _ => Self::None,
        }
    }
}

const MAGIC_BYTES: usize = 6;

/// The most that a decompressor may ask for: beyond it the header is damaged or hostile. `xz -9` needs 65 MiB.
const MEMORY_LIMIT_BYTES: u64 = 1 << 30;

/// Largest read handed to a decompressor that throws away the whole of it when it meets damage.
const CAREFUL_READ_BYTES: usize = 8 << 10;

type Whole<R> = BufReader<Chain<Cursor<Vec<u8>>, R>>;

/// An input with its compression taken off.
pub(crate) enum Input<R: Read> {
    Plain(Chain<Cursor<Vec<u8>>, R>),
    Xz(Box<Xz<Chain<Cursor<Vec<u8>>, R>>>),
    Gzip(Box<MultiGzDecoder<Whole<R>>>),
    Zstd(Box<zstd::stream::read::Decoder<'static, Whole<R>>>),
}

impl<R: Read> Input<R> {
    /// Looks at the first octets of `source` and wraps it.
    pub fn new(mut source: R) -> io::Result<Self> {
        let mut start = Vec::with_capacity(MAGIC_BYTES);
        source
            .by_ref()
            .take(MAGIC_BYTES as u64)
            .read_to_end(&mut start)?;
        let compression = Compression::of(&start);
        let whole = Cursor::new(start).chain(source);
        Ok(match compression {
            Compression::None => Self::Plain(whole),
            Compression::Xz => Self::Xz(Box::new(Xz::new(whole)?)),
            Compression::Gzip => Self::Gzip(Box::new(MultiGzDecoder::new(BufReader::new(whole)))),
            Compression::Zstd => Self::Zstd(Box::new(zstd::stream::read::Decoder::with_buffer(
                BufReader::new(whole),
            )?)),
        })
    }

    pub fn compression(&self) -> Compression {
        match self {
            Self::Plain(_) => Compression::None,
            Self::Xz(_) => Compression::Xz,
            Self::Gzip(_) => Compression::Gzip,
            Self::Zstd(_) => Compression::Zstd,
        }
    }
}

impl<R: Read> Read for Input<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let careful = buffer.len().min(CAREFUL_READ_BYTES);
        match self {
            Self::Plain(source) => source.read(buffer),
            Self::Xz(source) => source.read(buffer),
            Self::Gzip(source) => source.read(&mut buffer[..careful]),
            Self::Zstd(source) => source.read(&mut buffer[..careful]),
        }
    }
}

/// Reads xz. Unlike the crate's own reader it gives what came out before a fault, and the fault only then.
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
    Faulty(io::Error),
}

const XZ_INPUT_BYTES: usize = 64 << 10;

impl<R: Read> Xz<R> {
    fn new(source: R) -> io::Result<Self> {
        Ok(Self {
            source,
            stream: Stream::new_stream_decoder(MEMORY_LIMIT_BYTES, CONCATENATED)?,
            input: vec![0; XZ_INPUT_BYTES].into_boxed_slice(),
            start: 0,
            end: 0,
            state: State::Running,
        })
    }

    /// One step of the decoder: how much came out. What ends the stream is kept for the next call.
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
                self.state = State::Faulty(io::ErrorKind::UnexpectedEof.into());
            }
            Ok(_) => {}
            Err(error) => self.state = State::Faulty(error.into()),
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
                State::Faulty(error) => return Err(error),
            }
            let out_bytes = self.step(buffer)?;
            if out_bytes > 0 {
                return Ok(out_bytes);
            }
        }
        Ok(0)
    }
}
