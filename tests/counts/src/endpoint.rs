//! The endpoint. It answers 204 and allocates nothing while it does, because its allocations would
//! be counted with those of a server in the same process.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::arrivals::Arrivals;
use crate::wire::{Connection, MESSAGE_BYTES_MAX};

/// Connections that are served at once: more than the server opens to one link.
const CONNECTIONS: usize = 80;

const STACK_BYTES: usize = 128 * 1024;

const ANSWER: &[u8] = b"HTTP/1.1 204 No Content\r\n\r\n";

/// An endpoint on a free port of 127.0.0.1. Its threads end with the test process.
#[derive(Debug)]
pub struct Endpoint {
    pub(crate) address: SocketAddr,
    pub(crate) arrivals: Arc<Arrivals>,
}

impl Endpoint {
    /// The one endpoint of this process. One test has it at a time, so a test that takes it before
    /// anything else is not measured together with another.
    pub fn take() -> MutexGuard<'static, Self> {
        static ENDPOINT: LazyLock<Mutex<Endpoint>> =
            LazyLock::new(|| Mutex::new(Endpoint::start()));
        // A test that failed leaves it as good as it was.
        ENDPOINT.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts to listen. A thread waits for each connection there may be, because to start one
    /// would allocate.
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
        let address = listener.local_addr().expect("it is bound");
        let listener = Arc::new(listener);
        let arrivals = Arc::new(Arrivals::default());
        for _ in 0..CONNECTIONS {
            let listener = Arc::clone(&listener);
            let arrivals = Arc::clone(&arrivals);
            let serve = move || {
                let mut buffer = vec![0; MESSAGE_BYTES_MAX];
                while let Ok((stream, _)) = listener.accept() {
                    // The server may close a connection at any time.
                    let _ = answer(stream, &mut buffer, &arrivals);
                }
            };
            thread::Builder::new()
                .stack_size(STACK_BYTES)
                .spawn(serve)
                .expect("there is room for a thread");
        }
        Self { address, arrivals }
    }
}

fn answer(stream: TcpStream, buffer: &mut [u8], arrivals: &Arrivals) -> io::Result<()> {
    let mut connection = Connection::new(stream, buffer)?;
    while connection.read()?.is_some() {
        connection.write(ANSWER)?;
        arrivals.add_one();
    }
    Ok(())
}
