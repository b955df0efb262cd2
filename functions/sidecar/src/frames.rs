//! What a websocket's client says: whether it speaks, or only answers pings (RFC 6455, section 5.2).
//!
//! **Invariants.** Nothing but headers is kept, whatever their frames have. What is no websocket's stream is read all
//! the same, and never ends the connection.

/// The longest header of a frame, in bytes.
const MAX_HEADER: usize = 14;

/// Where in a client's stream of frames.
#[derive(Debug, Default)]
pub struct Frames {
    header: Vec<u8>,
    /// How much of a frame's payload is still to come.
    rest: u64,
}

impl Frames {
    /// Takes what came. Whether a message, or a part of one, began in it; a ping, a pong and a close are none.
    pub fn speak(&mut self, mut bytes: &[u8]) -> bool {
        let mut speaks = false;
        while let Some((&byte, after)) = bytes.split_first() {
            if self.rest > 0 {
                let passed = bytes.len().min(usize::try_from(self.rest).unwrap_or(usize::MAX));
                self.rest -= passed as u64;
                bytes = &bytes[passed..];
                continue;
            }
            self.header.push(byte);
            bytes = after;
            if let Some((is_message, length)) = header(&self.header) {
                speaks |= is_message;
                self.rest = length;
                self.header.clear();
            }
        }
        speaks
    }
}

/// Whether a whole header is a message's, and how long what follows is.
fn header(bytes: &[u8]) -> Option<(bool, u64)> {
    let (&[first, second], after) = bytes.split_first_chunk::<2>()?;
    let extended = match second & 0x7f {
        126 => 2,
        127 => 8,
        _ => 0,
    };
    let mask = if second & 0x80 == 0 { 0 } else { 4 };
    if after.len() < extended + mask {
        return None;
    }
    debug_assert!(bytes.len() <= MAX_HEADER);
    let length = after[..extended].iter().fold(0, |length, byte| length << 8 | u64::from(*byte));
    let length = if extended == 0 { u64::from(second & 0x7f) } else { length };
    Some((first & 0x0f <= 2, length))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A client's frame: masked, with a payload of so many bytes.
    fn frame(opcode: u8, length: usize) -> Vec<u8> {
        let mut bytes = vec![0x80 | opcode];
        match length {
            0..126 => bytes.push(0x80 | u8::try_from(length).unwrap()),
            126..65_536 => {
                bytes.push(0xfe);
                bytes.extend(u16::try_from(length).unwrap().to_be_bytes());
            }
            _ => {
                bytes.push(0xff);
                bytes.extend((length as u64).to_be_bytes());
            }
        }
        // What is in it looks like a text frame.
        bytes.extend(std::iter::repeat_n(0x81, 4 + length));
        bytes
    }

    #[test]
    fn a_client_that_only_answers_pings_does_not_speak() {
        let mut frames = Frames::default();
        for (opcode, speaks) in [(0xA, false), (0x9, false), (0x1, true), (0xA, false), (0x2, true), (0x8, false)] {
            assert_eq!(frames.speak(&frame(opcode, 100)), speaks, "{opcode:x}");
        }
    }

    proptest! {
        #[test]
        fn however_a_stream_is_cut_it_says_the_same(
            frames in proptest::collection::vec((0_u8..16, prop_oneof![0_usize..300, Just(70_000)]), 0..6),
            cut in 1_usize..500,
        ) {
            let stream: Vec<u8> = frames.iter().flat_map(|(opcode, length)| frame(*opcode, *length)).collect();
            let mut read = Frames::default();
            let spoken = stream.chunks(cut).filter(|chunk| read.speak(chunk)).count();
            prop_assert_eq!(spoken > 0, frames.iter().any(|(opcode, _)| *opcode <= 2));
            prop_assert_eq!((read.header.len(), read.rest), (0, 0));
        }

        #[test]
        fn any_bytes_are_read(chunks in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 0..8)) {
            let mut frames = Frames::default();
            for chunk in chunks {
                frames.speak(&chunk);
                prop_assert!(frames.header.len() < MAX_HEADER);
            }
        }
    }
}
