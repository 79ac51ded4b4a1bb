//! The check that an emulator answers.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

/// Longest time for one request, so that an emulator that hangs while it starts is asked again.
const QUESTION_MAX: Duration = Duration::from_secs(5);

/// True if a GET of the path is answered with 200.
pub(super) fn answers(port: u16, path: &str) -> bool {
    ask(port, path).is_ok_and(|status| status.contains(" 200"))
}

/// The first bytes of the answer, which hold its status.
fn ask(port: u16, path: &str) -> std::io::Result<String> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut stream = TcpStream::connect_timeout(&address, QUESTION_MAX)?;
    stream.set_read_timeout(Some(QUESTION_MAX))?;
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nconnection: close\r\n\r\n"
    )?;
    let mut status = [0; "HTTP/1.1 200".len()];
    stream.read_exact(&mut status)?;
    Ok(String::from_utf8_lossy(&status).into_owned())
}
