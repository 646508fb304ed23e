//! Listeners of a sandbox's own network, handed to its supervisor.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::{TcpListener, UdpSocket};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
};

use super::spec::{Door, Transport};

/// The kernel hands over so many descriptors at once.
const MOST: usize = 250;
const SPACE: usize = rustix::cmsg_space!(ScmRights(MOST));

/// What comes with the descriptors; no report begins so.
const MARK: u8 = b'\n';

/// Listens at every door. This is done inside of the sandbox's network.
pub(super) fn open(doors: &[Door]) -> io::Result<Vec<OwnedFd>> {
    let open = |door: &Door| {
        let opened = match door.transport {
            Transport::Stream => TcpListener::bind(door.address).map(OwnedFd::from),
            Transport::Packets => UdpSocket::bind(door.address).map(OwnedFd::from),
        };
        opened.map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", door.address)))
    };
    doors.iter().map(open).collect()
}

/// Hands listeners over; the copies here are closed with them.
pub(super) fn send(control: &UnixStream, listeners: &[OwnedFd]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); SPACE];
    let mut message = SendAncillaryBuffer::new(&mut space);
    let borrowed: Vec<_> = listeners.iter().map(|listener| listener.as_fd()).collect();
    if !borrowed.is_empty() && !message.push(SendAncillaryMessage::ScmRights(&borrowed)) {
        return Err(io::Error::other("there are too many doors"));
    }
    rustix::net::sendmsg(control, &[IoSlice::new(&[MARK])], &mut message, SendFlags::empty())?;
    Ok(())
}

/// Takes listeners over. If something else comes first, that is given back: the beginning of a report.
pub(super) fn receive(control: &UnixStream) -> io::Result<(Vec<OwnedFd>, Vec<u8>)> {
    let mut space = [MaybeUninit::uninit(); SPACE];
    let mut message = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let received =
        rustix::net::recvmsg(control, &mut [IoSliceMut::new(&mut byte)], &mut message, RecvFlags::CMSG_CLOEXEC)?;
    let mut listeners = Vec::new();
    for part in message.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = part {
            listeners.extend(descriptors);
        }
    }
    let began = byte[..received.bytes].iter().copied().filter(|byte| *byte != MARK).collect();
    Ok((listeners, began))
}
