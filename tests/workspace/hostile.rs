//! Archives and manifests that an agent wrote to get out of its workspace, or to confuse whoever reads them.

use std::{fs, os::unix::fs::PermissionsExt as _, path::PathBuf};

use proptest::{prelude::*, sample::Index, test_runner::TestRunner};
use workspace::{
    BadFrame, Error, Pulled,
    archive::{BLOCK, Reader, Refused, header, trailer},
    blobs::Blobs as _,
    commit::{After, Head},
    entry::{Entry, Kind, Mtime},
    key::{Key, Sort},
    manifest::{BadManifest, Counts, FORMAT, FrameRow, Layer, LongFile, Manifest, Root},
    member::Member,
};

use super::{
    lab::{Host, Lab, name},
    picture::picture,
};

fn member(path: &str) -> Member {
    Member::parse(path).unwrap()
}

fn entry(path: &str, kind: Kind, target: &str) -> Entry {
    Entry {
        path: member(path),
        kind,
        mode: if kind == Kind::Directory { 0o755 } else { 0o644 },
        uid: 0,
        gid: 0,
        mtime: Mtime { seconds: 1_700_000_000, nanos: 0 },
        size: 0,
        target: target.as_bytes().to_vec(),
        xattrs: Vec::new(),
    }
}

/// The header of a file, and its content.
fn file(path: &str, content: &[u8], raw: &mut Vec<u8>) {
    header(&Entry { size: content.len() as u64, ..entry(path, Kind::File, "") }, raw).unwrap();
    raw.extend_from_slice(content);
    raw.resize(raw.len().next_multiple_of(BLOCK), 0);
}

fn other(path: &str, kind: Kind, target: &str, raw: &mut Vec<u8>) {
    header(&entry(path, kind, target), raw).unwrap();
}

fn root(raw: &mut Vec<u8>) {
    other("project", Kind::Directory, "", raw);
}

/// Sums a header up again after it was changed.
fn sum(block: &mut [u8]) {
    block[148..156].fill(b' ');
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
}

/// Writes members.
type Fill = fn(&mut Vec<u8>);

/// A layer that is nobody's push.
struct Forged {
    frames: Vec<Vec<u8>>,
    hot: usize,
    long: Vec<LongFile>,
    counts: Counts,
    change: fn(&mut Manifest),
}

impl Forged {
    /// Of one frame with these members.
    fn of(fill: impl FnOnce(&mut Vec<u8>)) -> Self {
        let mut raw = Vec::new();
        fill(&mut raw);
        trailer(&mut raw);
        Self::raw(vec![raw])
    }

    fn raw(frames: Vec<Vec<u8>>) -> Self {
        Self { frames, hot: 0, long: Vec::new(), counts: Counts::default(), change: |_| {} }
    }

    /// Makes it the head.
    async fn commit(self, lab: &Lab) {
        let (lease, old) = lab.lease("attacker").await;
        let generation = old.as_ref().map_or(0, |head| head.generation) + 1;
        let key = |sort| Key { workspace: name(), sort, generation, token: lease.token, nonce: lab.nonce() };
        let packed: Vec<_> = self.frames.iter().map(|raw| zstd::encode_all(&raw[..], 1).unwrap()).collect();
        let row = |(raw, packed): (&Vec<u8>, &Vec<u8>)| FrameRow {
            packed: u32::try_from(packed.len()).unwrap(),
            raw: u32::try_from(raw.len()).unwrap(),
            digest: blake3::hash(packed).as_bytes()[..16].try_into().unwrap(),
        };
        let object = packed.concat();
        let layer = Layer {
            key: key(Sort::Layer),
            bytes: object.len() as u64,
            blake3: blake3::hash(&object).to_hex().to_string(),
            members: 1,
            hot: self.hot,
            frames: self.frames.iter().zip(&packed).map(row).collect(),
            long: self.long,
            deleted: Vec::new(),
            replaced: Vec::new(),
        };
        lab.blobs.put(&layer.key.to_string(), &object).await.unwrap();
        let mut manifest = Manifest {
            format: FORMAT,
            tool: "an attacker".to_owned(),
            workspace: name(),
            generation,
            token: lease.token,
            parent: None,
            as_of_ms: 0,
            roots: vec![Root { name: member("project"), path: "/project".to_owned() }],
            exclusions: Vec::new(),
            counts: self.counts,
            left_out: Vec::new(),
            torn: Vec::new(),
            layers: vec![layer],
        };
        (self.change)(&mut manifest);
        commit_text(lab, &serde_json::to_vec(&manifest).unwrap(), key(Sort::Manifest), &lease).await;
    }

    async fn pulled(self, lab: &Lab, to: &Host) -> Result<Pulled, Error> {
        self.commit(lab).await;
        lab.try_pull(to).await
    }
}

async fn commit_text(lab: &Lab, text: &[u8], manifest: Key, lease: &workspace::commit::Lease) {
    lab.blobs.put(&manifest.to_string(), text).await.unwrap();
    let replaces = manifest.generation - 1;
    let blake3 = blake3::hash(text).to_hex().to_string();
    let head = Head { blake3, generation: manifest.generation, as_of_ms: 0, bytes: 0, manifest };
    lab.commit.commit(lease, replaces, &head, After::Release).await.unwrap();
}

/// A host beside whose project something stands that must stay as it is.
struct Target {
    host: Host,
    outside: PathBuf,
}

fn target(lab: &Lab, number: usize) -> Target {
    let host = lab.bare_host(&format!("target-{number}"));
    let outside = host.project.with_file_name("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("precious"), "precious").unwrap();
    fs::set_permissions(&outside, fs::Permissions::from_mode(0o711)).unwrap();
    Target { host, outside }
}

/// Refused, with nothing published and nothing outside changed.
async fn refused(lab: &Lab, number: usize, forged: Forged) -> Error {
    let Target { host, outside } = target(lab, number);
    let before = picture(&outside);
    let error = forged.pulled(lab, &host).await.unwrap_err();
    assert_eq!(picture(&outside), before, "{error}");
    assert!(!host.project.exists(), "{error}");
    error
}

#[tokio::test]
async fn nothing_is_written_through_a_link_or_outside() {
    let lab = Lab::new();
    let cases: [Fill; 7] = [
        |raw| {
            other("project/link", Kind::Symlink, "../outside", raw);
            file("project/link/evil", b"evil", raw);
        },
        |raw| {
            other("project/link", Kind::Symlink, "../outside/precious", raw);
            file("project/link", b"evil", raw);
        },
        |raw| {
            other("project/link", Kind::Symlink, "../outside", raw);
            other("project/link", Kind::Directory, "", raw);
        },
        |raw| {
            other("project/link", Kind::Symlink, "../outside/precious", raw);
            other("project/hard", Kind::HardLink, "project/link", raw);
        },
        |raw| {
            other("project/link", Kind::Symlink, "../outside", raw);
            other("project/hard", Kind::HardLink, "project/link/precious", raw);
        },
        |raw| other("elsewhere/file", Kind::Directory, "", raw),
        |raw| file("project", b"a file for a root", raw),
    ];
    for (number, fill) in cases.into_iter().enumerate() {
        let forged = Forged::of(|raw| {
            fill(raw);
            root(raw);
        });
        let error = refused(&lab, number, forged).await;
        assert!(matches!(error, Error::Contradiction { .. } | Error::Local { .. }), "case {number}: {error}");
    }
}

#[tokio::test]
async fn a_links_target_is_kept_and_never_judged() {
    let lab = Lab::new();
    let Target { host, .. } = target(&lab, 0);
    let mut forged = Forged::of(|raw| {
        for (at, to) in ["/etc/passwd", "../../..", "gone"].iter().enumerate() {
            other(&format!("project/{at}"), Kind::Symlink, to, raw);
        }
        root(raw);
    });
    forged.counts = Counts { directories: 1, symlinks: 3, ..Counts::default() };
    assert!(matches!(forged.pulled(&lab, &host).await.unwrap(), Pulled::Whole { .. }));
    assert_eq!(fs::read_link(host.project.join("0")).unwrap(), PathBuf::from("/etc/passwd"));
}

#[tokio::test]
async fn members_that_contradict_one_another_or_the_counts_are_refused() {
    let lab = Lab::new();
    let cases: [(Fill, &str); 5] = [
        (
            |raw| {
                file("project/a", b"1", raw);
                file("project/a", b"2", raw);
            },
            "twice",
        ),
        (|raw| other("project/a", Kind::HardLink, "project/missing", raw), "no file"),
        (|raw| other("project/a", Kind::HardLink, "elsewhere/missing", raw), "no root"),
        (root, "twice"),
        (|raw| file("project/not-counted", b"1", raw), "counts"),
    ];
    for (number, (fill, why)) in cases.into_iter().enumerate() {
        let forged = Forged::of(|raw| {
            fill(raw);
            root(raw);
        });
        let error = refused(&lab, number, forged).await.to_string();
        assert!(error.contains(why), "case {number}: {error}");
    }
}

/// One header, changed, and the archive's end.
fn changed(change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut raw = Vec::new();
    file("project/a", b"1234", &mut raw);
    change(&mut raw);
    trailer(&mut raw);
    raw
}

fn pax(records: &[u8]) -> Vec<u8> {
    let mut raw = Vec::new();
    let mut with = entry("project/a", Kind::File, "");
    with.mtime.nanos = 5;
    header(&with, &mut raw).unwrap();
    raw.truncate(BLOCK);
    raw[124..136].copy_from_slice(format!("{:011o}\0", records.len()).as_bytes());
    sum(&mut raw[..BLOCK]);
    raw.extend_from_slice(records);
    raw.resize(raw.len().next_multiple_of(BLOCK), 0);
    file("project/a", b"1234", &mut raw);
    trailer(&mut raw);
    raw
}

fn with_type(flag: u8) -> Vec<u8> {
    changed(|raw| {
        raw[156] = flag;
        sum(&mut raw[..BLOCK]);
    })
}

fn with_field(at: usize, bytes: &[u8]) -> Vec<u8> {
    changed(|raw| {
        raw[at..at + bytes.len()].copy_from_slice(bytes);
        sum(&mut raw[..BLOCK]);
    })
}

fn read_all(raw: &[u8]) -> Result<Vec<Entry>, Refused> {
    let mut reader = Reader::new(raw);
    let mut members = Vec::new();
    while !reader.is_end() {
        let entry = reader.header()?.ok_or(Refused::End)?;
        reader.content(entry.size)?;
        members.push(entry);
    }
    Ok(members)
}

#[test]
fn what_readers_of_tar_understand_differently_is_refused() {
    let refused = [
        ("a PAX size beside another ustar size", pax(b"10 size=9\n")),
        ("a PAX size that says the same", pax(b"10 size=4\n")),
        ("a record twice", pax(b"12 mtime=1.5\n12 mtime=2.5\n")),
        ("a length with a leading zero", pax(b"013 mtime=1.5\n")),
        ("a size that is no number", pax(b"10 size=x\n")),
        ("a record that is not known", pax(b"11 comm=ab\n")),
        ("a record without an end", pax(b"99 mtime=1.5\n")),
        ("a path of the PAX header", pax(b"15 path=../abcd\n")),
        ("a global header", with_type(b'g')),
        ("GNU's long name", with_type(b'L')),
        ("GNU's long link", with_type(b'K')),
        ("a GNU sparse file", with_type(b'S')),
        ("a character device", with_type(b'3')),
        ("a block device", with_type(b'4')),
        ("a FIFO", with_type(b'6')),
        ("an old regular file", with_type(0)),
        ("a directory with content", with_type(b'5')),
        ("a size in base 256", with_field(124, &[0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4])),
        ("a negative size", with_field(124, b"-0000000004\0")),
        ("a size with spaces", with_field(124, b"          4\0")),
        ("a size past the end", with_field(124, b"00000777777\0")),
        ("an absolute path", with_field(0, b"/etc/cron\0")),
        ("a path with ..", with_field(0, b"project/../\0")),
        ("an empty path", with_field(0, b"\0roject/a")),
        ("something after the path's end", with_field(20, b"x")),
        ("GNU's magic", with_field(257, b"ustar  \0")),
        ("a prefix", with_field(345, b"etc")),
        ("padding that is not zero", changed(|raw| raw[BLOCK + 5] = 1)),
        ("a checksum of something else", changed(|raw| raw[0] = b'q')),
        ("no end", changed(|_| {})[..2 * BLOCK].to_vec()),
        ("something after the end", [changed(|_| {}), vec![0; BLOCK]].concat()),
    ];
    assert_eq!(read_all(&changed(|_| {})).unwrap().len(), 1, "what was not changed is read");
    for (what, raw) in refused {
        assert!(read_all(&raw).is_err(), "{what}");
    }
}

#[test]
fn an_extension_header_that_claims_more_than_its_bound_is_refused_unread() {
    let mut raw = pax(b"12 mtime=1.5\n");
    raw[124..136].copy_from_slice(b"00010000001\0");
    sum(&mut raw[..BLOCK]);
    assert_eq!(read_all(&raw), Err(Refused::LongExtension));
}

#[tokio::test]
async fn a_frame_that_unpacks_to_more_than_it_says_is_stopped() {
    let lab = Lab::new();
    let forged = Forged {
        change: |manifest| manifest.layers[0].frames[0].raw = 1024,
        ..Forged::of(|raw| file("project/zeros", &vec![0; 4 << 20], raw))
    };
    let error = refused(&lab, 0, forged).await;
    assert!(matches!(error, Error::Frame { source: BadFrame::Unpack, .. }), "{error}");
}

#[tokio::test]
async fn manifests_that_lie_are_refused_before_anything_is_fetched() {
    let lab = Lab::new();
    let cases: [fn(&mut Manifest); 10] = [
        |manifest| manifest.format = 2,
        |manifest| manifest.layers[0].frames[0].raw = 9 << 20,
        |manifest| manifest.layers[0].bytes += 1,
        |manifest| manifest.layers[0].hot = 2,
        |manifest| manifest.layers.push(manifest.layers[0].clone()),
        |manifest| manifest.layers.clear(),
        |manifest| manifest.roots.push(manifest.roots[0].clone()),
        |manifest| manifest.counts.files = u64::MAX,
        |manifest| manifest.layers[0].long.push(LongFile { path: member("project/a"), size: 9 << 20, frame: 0 }),
        |manifest| manifest.layers[0].deleted.push(member("project/a")),
    ];
    for (number, change) in cases.into_iter().enumerate() {
        let error = refused(&lab, number, Forged { change, ..Forged::of(root) }).await;
        assert!(matches!(error, Error::Manifest { .. }), "case {number}: {error}");
    }
    let newer = refused(&lab, 99, Forged { change: |manifest| manifest.format = 2, ..Forged::of(root) }).await;
    assert!(matches!(newer, Error::Manifest { source: BadManifest::Format(2), .. }), "{newer}");
}

#[tokio::test]
async fn a_long_file_whose_frames_are_not_its_own_is_refused() {
    let lab = Lab::new();
    let long = |path: &str| LongFile { path: member(path), size: (1 << 20) + 4, frame: 0 };
    let head = |path: &str| {
        let mut raw = Vec::new();
        header(&Entry { size: (1 << 20) + 4, ..entry(path, Kind::File, "") }, &mut raw).unwrap();
        raw.resize(raw.len() + (1 << 20), 7);
        raw
    };
    let last = |bytes: usize| {
        let mut raw = vec![7; 4];
        raw.resize(bytes, 0);
        raw
    };
    let end = || {
        let mut raw = Vec::new();
        root(&mut raw);
        trailer(&mut raw);
        raw
    };
    let cases = [
        (head("project/other"), last(BLOCK)),
        (head("project/a"), last(BLOCK + 1)),
        (head("project/a"), vec![7; BLOCK]),
        (head("project/a")[BLOCK..].to_vec(), last(BLOCK)),
    ];
    for (number, (first, second)) in cases.into_iter().enumerate() {
        let forged = Forged { long: vec![long("project/a")], ..Forged::raw(vec![first, second, end()]) };
        let error = refused(&lab, number, forged).await;
        assert!(matches!(error, Error::Contradiction { .. } | Error::Archive { .. }), "case {number}: {error}");
    }
}

/// Mutations of whole archives: what our reader takes, it takes as the one form that push writes; and a pull of any of them
/// ends in a tree or a refusal, never outside.
#[test]
fn mutated_archives_are_read_in_one_way_or_refused() {
    let mut raw = Vec::new();
    file("project/a", b"1234", &mut raw);
    let mut with = entry("project/b", Kind::File, "");
    with.mtime.nanos = 7;
    header(&with, &mut raw).unwrap();
    other("project/link", Kind::Symlink, "../outside", &mut raw);
    other("project/hard", Kind::HardLink, "project/a", &mut raw);
    other("project/dir", Kind::Directory, "", &mut raw);
    root(&mut raw);
    trailer(&mut raw);
    let mutation = (any::<Index>(), any::<u8>(), any::<bool>());
    let mutations = proptest::collection::vec(mutation, 1..4);
    let mut runner = TestRunner::new(ProptestConfig { cases: 2000, ..ProptestConfig::default() });
    runner
        .run(&mutations, |mutations| {
            let mut mutated = raw.clone();
            for (at, byte, repair) in mutations {
                let at = at.index(mutated.len());
                mutated[at] = byte;
                let block = at / BLOCK * BLOCK;
                if repair {
                    sum(&mut mutated[block..block + BLOCK]);
                }
            }
            if let Ok(members) = read_all(&mutated) {
                for member in members {
                    let mut again = Vec::new();
                    header(&member, &mut again).unwrap();
                    prop_assert!(mutated.windows(again.len()).any(|window| window == again));
                }
            }
            Ok(())
        })
        .unwrap();
}
