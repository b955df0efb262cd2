//! A program that waits and does nothing else, as an image that nothing has to be downloaded for.

use std::io;

use tar::{Builder, Header};

/// Where a static program is loaded, as linkers do by default.
const BASE: u64 = 0x40_0000;
/// The two headers before the code: of the file and of its one segment.
const HEADERS: u64 = 64 + 56;

/// x86-64: `l: mov eax, 34 (pause); syscall; jmp l`.
const X86_64: (u16, &[u8]) = (62, &[0xb8, 34, 0, 0, 0, 0x0f, 0x05, 0xeb, 0xf7]);
/// AArch64: `l: x0..x3 = 0; x8 = 73 (ppoll); svc 0; b l`.
const AARCH64: (u16, &[u8]) = (
    183,
    &[
        0x00, 0x00, 0x80, 0xd2, 0x01, 0x00, 0x80, 0xd2, 0x02, 0x00, 0x80, 0xd2, 0x03, 0x00, 0x80, 0xd2, 0x28, 0x09,
        0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4, 0xfa, 0xff, 0xff, 0x17,
    ],
);

/// The waiting program as a Linux executable for this machine's processor; `None` for other processors.
fn program() -> Option<Vec<u8>> {
    let (machine, code) = match std::env::consts::ARCH {
        "x86_64" => X86_64,
        "aarch64" => AARCH64,
        _ => return None,
    };
    let size = HEADERS + code.len() as u64;
    let mut elf = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    // An executable of this machine, version 1, beginning after the headers; one segment, no sections.
    elf.extend([2_u16, machine].into_iter().flat_map(u16::to_le_bytes));
    elf.extend(1_u32.to_le_bytes());
    elf.extend([BASE + HEADERS, 64, 0].into_iter().flat_map(u64::to_le_bytes));
    elf.extend(0_u32.to_le_bytes());
    elf.extend([64_u16, 56, 1, 0, 0, 0].into_iter().flat_map(u16::to_le_bytes));
    // The segment: loaded whole, to be read and executed.
    elf.extend([1_u32, 5].into_iter().flat_map(u32::to_le_bytes));
    elf.extend([0, BASE, BASE, size, size, 0x1000].into_iter().flat_map(u64::to_le_bytes));
    elf.extend(code);
    Some(elf)
}

/// A root filesystem with `/wait` in it and nothing else, as a tar.
pub(crate) fn image() -> io::Result<Option<Vec<u8>>> {
    let Some(program) = program() else { return Ok(None) };
    let mut header = Header::new_ustar();
    header.set_size(program.len() as u64);
    header.set_mode(0o755);
    header.set_cksum();
    let mut tar = Builder::new(Vec::new());
    tar.append_data(&mut header, "wait", &program[..])?;
    tar.into_inner().map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_whole() {
        for (_, code) in [X86_64, AARCH64] {
            assert!(code.len() < 64);
        }
        let elf = program().expect("tests run on a processor that the demo knows");
        assert_eq!(u64::try_from(elf.len()).unwrap(), HEADERS + u64::try_from(elf[120..].len()).unwrap());
        assert_eq!(&elf[96..104], (elf.len() as u64).to_le_bytes(), "the segment holds the whole file");
        assert_eq!(&elf[24..32], (BASE + HEADERS).to_le_bytes(), "it begins at its code");
    }
}
