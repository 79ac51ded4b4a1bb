//! The same requests with hyper and nothing around it, one task per connection.

use bytes::Bytes;
use http::{HeaderValue, Method, Request, StatusCode, header};
use http_body_util::Full;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::rt::{Read, Write};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::sink::Sink;
use crate::{CONCURRENT, PAYLOAD_BYTES, REQUESTS_PER_ROUND, headers, in_task};

/// Workers with a connection each, open before the measuring begins.
pub(crate) async fn workers(sink: &Sink) -> Vec<impl Future<Output = ()> + use<>> {
    let payload = Bytes::from(vec![b'x'; PAYLOAD_BYTES]);
    let host = HeaderValue::from_str(&sink.address.to_string()).unwrap();
    let mut workers = Vec::new();
    for _ in 0..CONCURRENT {
        let stream = TcpStream::connect(sink.address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let sender = match sink.connector() {
            Some(connector) => open_tls(&connector, sink, stream).await,
            None => open(TokioIo::new(stream)).await,
        };
        workers.push(in_task(work(sender, host.clone(), payload.clone())));
    }
    workers
}

async fn open_tls(
    connector: &TlsConnector,
    sink: &Sink,
    stream: TcpStream,
) -> SendRequest<Full<Bytes>> {
    let stream = connector
        .connect(sink.address.ip().into(), stream)
        .await
        .unwrap();
    open(TokioIo::new(stream)).await
}

async fn open(io: impl Read + Write + Unpin + Send + 'static) -> SendRequest<Full<Bytes>> {
    let (sender, connection) = handshake(io).await.unwrap();
    tokio::spawn(connection);
    sender
}

async fn work(mut sender: SendRequest<Full<Bytes>>, host: HeaderValue, payload: Bytes) {
    for _ in 0..REQUESTS_PER_ROUND / CONCURRENT {
        let mut request = Request::new(Full::new(payload.clone()));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = http::Uri::from_static("/hooks/billing?tenant=a");
        *request.headers_mut() = headers();
        request.headers_mut().insert(header::HOST, host.clone());
        sender.ready().await.unwrap();
        let response = sender.send_request(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::NO_CONTENT);
    }
}
