//! One connection of an endpoint.

use std::io::{self, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;

use super::received::Received;
use super::script::{Answer, Reply, Shared};

/// One piece of a body that never ends.
const PIECE: [u8; 8192] = [b'x'; 8192];

/// Answers requests until one of both sides closes the connection.
pub(super) fn serve(mut stream: TcpStream, shared: &Arc<Shared>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut is_first = true;
    while let Some(request) = Received::read(&mut reader)? {
        match shared.receive(&request) {
            Answer::Status(status) => write(&mut stream, status, "")?,
            Answer::With(status, name, value) => {
                write(&mut stream, status, &format!("{name}: {value}\r\n"))?;
            }
            Answer::Judge(judge) => write(&mut stream, judge(&request), "")?,
            Answer::Reply(reply) => write_reply(&mut stream, &reply(&request))?,
            Answer::Held(status) => {
                shared
                    .opened
                    .wait_for("the end of the hold", |opened| opened.first().copied());
                write(&mut stream, status, "")?;
            }
            Answer::Endless(status) => return write_for_ever(&mut stream, status),
            Answer::InterimForEver => return write_interim_for_ever(&mut stream),
            Answer::Close => return stream.shutdown(Shutdown::Both),
            Answer::CloseInHead => {
                stream.write_all(b"HTTP/1.1 500 Oops\r\ncontent-le")?;
                return stream.shutdown(Shutdown::Both);
            }
            Answer::Raw(bytes) => stream.write_all(bytes.as_bytes())?,
            Answer::Garbage => stream.write_all(b"220 mail.example ESMTP ready\r\n\r\n")?,
            Answer::OncePerConnection(status) if is_first => write(&mut stream, status, "")?,
            // Until the client gives up.
            Answer::OncePerConnection(_) | Answer::Never => {
                return io::copy(&mut reader.by_ref(), &mut io::sink()).map(drop);
            }
        }
        is_first = false;
    }
    Ok(())
}

fn write(stream: &mut TcpStream, status: u16, header: &str) -> io::Result<()> {
    let length = if status == 204 {
        ""
    } else {
        "content-length: 0\r\n"
    };
    stream.write_all(format!("HTTP/1.1 {status} Scripted\r\n{length}{header}\r\n").as_bytes())
}

fn write_reply(stream: &mut TcpStream, reply: &Reply) -> io::Result<()> {
    write!(
        stream,
        "HTTP/1.1 {} Scripted\r\ncontent-length: {}\r\n",
        reply.status,
        reply.body.len()
    )?;
    for (name, value) in &reply.headers {
        write!(stream, "{name}: {value}\r\n")?;
    }
    write!(stream, "\r\n{}", reply.body)
}

fn write_interim_for_ever(stream: &mut TcpStream) -> io::Result<()> {
    let many = "HTTP/1.1 102 Processing\r\n\r\n".repeat(1000);
    loop {
        stream.write_all(many.as_bytes())?;
    }
}

fn write_for_ever(stream: &mut TcpStream, status: u16) -> io::Result<()> {
    stream.write_all(format!("HTTP/1.1 {status} Scripted\r\n\r\n").as_bytes())?;
    loop {
        stream.write_all(&PIECE)?;
    }
}
