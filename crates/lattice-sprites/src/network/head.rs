//! The head of a request in HTTP: read, understood as far as needed, and written for its next station.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt as _};

/// A request without its body, of which the first bytes may have come along.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) method: String,
    pub(super) target: String,
    headers: Vec<(String, Vec<u8>)>,
    /// What followed the head.
    pub(super) rest: Vec<u8>,
}

/// More than this is no head of a request.
const MOST_BYTES: usize = 64 << 10;
const MOST_HEADERS: usize = 128;

/// Headers that are about one connection and not about the request.
const OF_ONE_CONNECTION: [&str; 5] =
    ["connection", "proxy-connection", "keep-alive", "proxy-authorization", "proxy-authenticate"];

/// Headers that carry keys.
const OF_KEYS: [&str; 3] = ["authorization", "x-api-key", "x-goog-api-key"];

impl Head {
    /// Reads until the head is there.
    pub(super) async fn read(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Self> {
        let mut bytes = Vec::new();
        loop {
            if let Some(head) = Self::parse(&bytes)? {
                return Ok(head);
            }
            if bytes.len() > MOST_BYTES {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "the head of the request is too long"));
            }
            if stream.read_buf(&mut bytes).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    fn parse(bytes: &[u8]) -> io::Result<Option<Self>> {
        let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
        let mut request = httparse::Request::new(&mut headers);
        let length = match request.parse(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))? {
            httparse::Status::Complete(length) => length,
            httparse::Status::Partial => return Ok(None),
        };
        Ok(Some(Self {
            method: request.method.unwrap_or_default().to_owned(),
            target: request.path.unwrap_or_default().to_owned(),
            headers: request.headers.iter().map(|header| (header.name.to_owned(), header.value.to_owned())).collect(),
            rest: bytes[length..].to_owned(),
        }))
    }

    /// The request for the host itself. The connection ends with the answer, so that no second request follows whose
    /// head nobody has looked at.
    pub(super) fn for_host(self, host: &str, path: &str, key: Option<&(String, String)>) -> Vec<u8> {
        let dropped = |name: &str| {
            let of_key = key.is_some_and(|(own, _)| own.eq_ignore_ascii_case(name) || is_in(&OF_KEYS, name));
            of_key || is_in(&OF_ONE_CONNECTION, name) || name.eq_ignore_ascii_case("host")
        };
        let mut written =
            format!("{} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n", self.method).into_bytes();
        for (name, value) in self.headers.iter().filter(|(name, _)| !dropped(name)) {
            written.extend([name.as_bytes(), b": ", value, b"\r\n"].concat());
        }
        if let Some((name, value)) = key {
            written.extend(format!("{name}: {value}\r\n").into_bytes());
        }
        written.extend(b"\r\n");
        written.extend(self.rest);
        written
    }
}

fn is_in(names: &[&str], name: &str) -> bool {
    names.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// A place in a URL or as CONNECT names it: name and port.
pub(super) fn host_and_port(text: &str, port: u16) -> Option<(String, u16)> {
    let (name, given) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((name, rest)) => (name, rest.strip_prefix(':')),
        None => text.split_once(':').map_or((text, None), |(name, given)| (name, Some(given))),
    };
    let port = given.map_or(Some(port), |given| given.parse().ok())?;
    let plain = |byte: u8| byte.is_ascii_graphic() && !b"/@\\".contains(&byte);
    (!name.is_empty() && name.bytes().all(plain)).then(|| (name.to_owned(), port))
}

/// A URL cut into whether it is encrypted, the host as written, and the path with what follows.
pub(super) fn parts_of_url(url: &str) -> Option<(bool, &str, &str)> {
    let (encrypted, rest) = match url.split_at_checked("https://".len()) {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https://") => (true, rest),
        Some(_) | None => match url.split_at_checked("http://".len()) {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http://") => (false, rest),
            Some(_) | None => return None,
        },
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (host, path) = rest.split_at(end);
    Some((encrypted, host, path))
}

#[cfg(test)]
mod tests {
    use super::{Head, host_and_port, parts_of_url};

    #[test]
    fn a_request_goes_on_with_the_key_of_the_host_and_none_of_the_agents() {
        let asked =
            b"POST /v1/messages HTTP/1.1\r\nHost: 127.0.0.1:3129\r\nX-Api-Key: mine\r\nAuthorization: Bearer mine\r\n\
            Connection: keep-alive\r\nAccept: */*\r\nContent-Length: 2\r\n\r\nhi";
        let head = Head::parse(asked).expect("a request").expect("all of it");
        let key = ("x-api-key".to_owned(), "real".to_owned());
        let sent = String::from_utf8(head.for_host("api.example.com", "/v1/messages", Some(&key))).expect("text");
        let wanted = "POST /v1/messages HTTP/1.1\r\nHost: api.example.com\r\nConnection: close\r\nAccept: */*\r\n\
            Content-Length: 2\r\nx-api-key: real\r\n\r\nhi";
        assert_eq!(sent, wanted);
        let cut = Head::parse(&asked[..40]).expect("the beginning of a request");
        assert_eq!(cut, None);
        assert!(Head::parse(b"\x16\x03\x01 no request\r\n\r\n").is_err());
    }

    #[test]
    fn places_are_read_as_they_are_written() {
        assert_eq!(host_and_port("example.com:8443", 443), Some(("example.com".to_owned(), 8443)));
        assert_eq!(host_and_port("[::1]", 443), Some(("::1".to_owned(), 443)));
        for wrong in ["", ":80", "a:x", "user@a", "a/b", "a b"] {
            assert_eq!(host_and_port(wrong, 443), None, "{wrong}");
        }
        assert_eq!(parts_of_url("HTTP://a:1/x?y"), Some((false, "a:1", "/x?y")));
        assert_eq!(parts_of_url("https://a?y"), Some((true, "a", "?y")));
        assert_eq!(parts_of_url("ftp://a/"), None);
    }
}
