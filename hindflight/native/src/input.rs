//! Inputs: files, named pipes and standard input, as a `Read` that the user can interrupt.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use sha2::{Digest, Sha256};

/// The path that means standard input.
const STANDARD_INPUT: &str = "-";

/// Time between two checks for signals.
const SIGNAL_PERIOD: Duration = Duration::from_millis(100);

/// Octets that a pipe delivers at once, and how many of these deliveries may wait.
const CHUNK_BYTES: usize = 256 << 10;
const CHUNKS: usize = 8;

/// What has been read of one or more inputs, shared with the thread that reads.
#[derive(Clone, Default)]
pub struct Progress {
    bytes_read: Arc<AtomicU64>,
    sha256: Arc<Mutex<Option<String>>>,
    interrupt: Arc<Mutex<Option<PyErr>>>,
}

impl Progress {
    /// That of another pass over the same inputs, which is not counted; an interrupt ends both.
    pub fn aside(&self) -> Self {
        Self {
            interrupt: Arc::clone(&self.interrupt),
            ..Self::default()
        }
    }

    /// Octets read so far.
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read.load(Ordering::Relaxed)
    }

    /// SHA-256 of a pipe that has been read to its end, in hexadecimal.
    pub fn sha256(&self) -> Option<String> {
        locked(&self.sha256).clone()
    }

    /// Ends reading with an exception.
    pub fn interrupt(&self, error: PyErr) {
        *locked(&self.interrupt) = Some(error);
    }

    /// Whether an exception ended reading.
    fn is_interrupted(&self) -> bool {
        locked(&self.interrupt).is_some()
    }

    /// The exception that ended reading; returns it once.
    pub fn interrupted(&self) -> PyResult<()> {
        locked(&self.interrupt).take().map_or(Ok(()), Err)
    }
}

/// Locks; after a panic of the thread that had the lock, too.
pub fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[allow(
    clippy::disallowed_methods,
    reason = "when signals are checked; no result depends on it"
)]
fn clock() -> Instant {
    Instant::now()
}

/// An open input.
pub struct Input {
    source: Source,
    progress: Progress,
    checked: Instant,
}

enum Source {
    File(File),
    /// Octets that a thread reads from a pipe: a thread that waits for a pipe cannot be interrupted.
    Pipe {
        chunks: Receiver<io::Result<Vec<u8>>>,
        chunk: Vec<u8>,
        at: usize,
    },
}

/// Whether `path` is a file that can be read more than once.
pub fn reopens(path: &Path) -> bool {
    path.as_os_str() != STANDARD_INPUT && path.metadata().map_or(true, |found| !is_stream(&found))
}

/// Length of the file at `path`; 0 for a pipe.
pub fn length(path: &Path) -> u64 {
    if reopens(path) {
        path.metadata().map_or(0, |found| found.len())
    } else {
        0
    }
}

fn is_stream(found: &std::fs::Metadata) -> bool {
    !found.is_file() && !found.is_dir()
}

impl Input {
    /// Opens `path`, or standard input for `-`.
    pub fn open(path: &Path, progress: &Progress) -> io::Result<Self> {
        let source = if path.as_os_str() == STANDARD_INPUT {
            let file = File::from(io::stdin().as_fd().try_clone_to_owned()?);
            if is_stream(&file.metadata()?) {
                Source::pipe(move || Ok(file), progress.clone())
            } else {
                Source::File(file)
            }
        } else if reopens(path) {
            Source::File(File::open(path)?)
        } else {
            // Opening a named pipe waits for its writer.
            let path: PathBuf = path.to_path_buf();
            Source::pipe(move || File::open(path), progress.clone())
        };
        Ok(Self {
            source,
            progress: progress.clone(),
            checked: clock(),
        })
    }

    #[allow(
        clippy::redundant_closure_for_method_calls,
        reason = "the method is not general enough in its lifetime"
    )]
    /// Runs the handlers of pending signals. An exception of theirs, and the end of the interpreter, end reading.
    fn check_signals(&mut self) -> io::Result<()> {
        self.checked = clock();
        if self.progress.is_interrupted() {
            return Err(io::Error::other("interrupted"));
        }
        match Python::try_attach(|py| py.check_signals()) {
            Some(Ok(())) => Ok(()),
            Some(Err(error)) => {
                self.progress.interrupt(error);
                Err(io::Error::other("interrupted"))
            }
            None => Err(io::Error::other("interrupted")),
        }
    }
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.checked.elapsed() >= SIGNAL_PERIOD {
            self.check_signals()?;
        }
        loop {
            match self.source.read(buffer) {
                Ok(Some(count)) => {
                    let total = &self.progress.bytes_read;
                    total.fetch_add(count as u64, Ordering::Relaxed);
                    return Ok(count);
                }
                Ok(None) => self.check_signals()?,
                Err(error) => return Err(error),
            }
        }
    }
}

impl Source {
    /// Starts the thread that reads a pipe.
    fn pipe(open: impl FnOnce() -> io::Result<File> + Send + 'static, progress: Progress) -> Self {
        let (sender, chunks) = mpsc::sync_channel(CHUNKS);
        thread::spawn(move || {
            let failed = open().and_then(|file| pump(file, &sender, &progress));
            if let Err(error) = failed {
                // Nobody waits for it if the reader has gone.
                let _ = sender.send(Err(error));
            }
        });
        Self::Pipe {
            chunks,
            chunk: Vec::new(),
            at: 0,
        }
    }

    /// Reads at least one octet; `Some(0)` at the end, `None` if nothing has come for a while.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match self {
            Self::File(file) => file.read(buffer).map(Some),
            Self::Pipe { chunks, chunk, at } => {
                if *at == chunk.len() {
                    match chunks.recv_timeout(SIGNAL_PERIOD) {
                        Ok(next) => (*chunk, *at) = (next?, 0),
                        Err(RecvTimeoutError::Timeout) => return Ok(None),
                        Err(RecvTimeoutError::Disconnected) => return Ok(Some(0)),
                    }
                }
                let count = buffer.len().min(chunk.len() - *at);
                buffer[..count].copy_from_slice(&chunk[*at..*at + count]);
                *at += count;
                Ok(Some(count))
            }
        }
    }
}

/// Sends the octets of `file` and, at its end, stores their SHA-256.
fn pump(
    mut file: File,
    sender: &SyncSender<io::Result<Vec<u8>>>,
    progress: &Progress,
) -> io::Result<()> {
    let mut hash = Sha256::new();
    loop {
        let mut chunk = vec![0; CHUNK_BYTES];
        let count = match file.read(&mut chunk) {
            Ok(0) => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        chunk.truncate(count);
        hash.update(&chunk);
        if sender.send(Ok(chunk)).is_err() {
            return Ok(());
        }
    }
    let digest = hash.finalize();
    let text = format!("{digest:x}");
    *locked(&progress.sha256) = Some(text);
    Ok(())
}
