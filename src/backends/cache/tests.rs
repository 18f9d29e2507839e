//! Keys, entries and folders of the cache, damaged in every way that a disk or a stranger may damage them.

use super::entry::{Fault, decode, decode_for, encode};
use super::*;
use crate::dialects::loops::{Elem, Kernel, Param, Prim, Reg, Stmt, Ty};
use crate::tensor::Scalar;
use flambeau_files::Temporary;
use proptest::prelude::*;
use std::fs;

const TARGET: Target<'static> =
    Target { triple: "x86_64", cpu: "znver4", features: "+avx2", stream: false, version: (22, 1, 0) };

/// `out[0] = number`
fn constant(number: f64) -> Kernel {
    let (out, zero, value) = (Reg(0), Reg(1), Reg(2));
    let ty = Ty::Buffer(Elem::F32);
    Kernel {
        params: vec![Param { reg: out, ty, written: true }],
        types: vec![ty, Ty::Scalar(Elem::I64), Ty::Scalar(Elem::F32)],
        body: vec![
            Stmt::Let(zero, Prim::Const(Scalar::Int(0))),
            Stmt::Let(value, Prim::Const(Scalar::Float(number))),
            Stmt::Store { buffer: out, index: zero, value },
        ],
        ..Kernel::default()
    }
}

fn key(n: u8) -> Key {
    Key::from_bytes([n; KEY_BYTES])
}

fn cache(folder: &Temporary) -> DiskCache {
    DiskCache::new(Kind::Kernels, folder.path().join("kernels"), LIMIT)
}

/// One that is nowhere, to be named.
fn named() -> DiskCache {
    DiskCache::new(Kind::Kernels, "/c".into(), LIMIT)
}

fn file(cache: &DiskCache, key: &Key) -> PathBuf {
    folder::place(Kind::Kernels, cache.folder(), key)
}

#[test]
fn a_key_changes_with_all_that_changes_code() {
    let kernel = constant(1.0);
    let of = |target: &Target<'_>| Key::of(&kernel, target);
    let changed = [
        Key::of(&constant(2.0), &TARGET),
        of(&Target { triple: "aarch64", ..TARGET }),
        of(&Target { cpu: "generic", ..TARGET }),
        of(&Target { features: "-avx2", ..TARGET }),
        of(&Target { stream: true, ..TARGET }),
        of(&Target { version: (22, 1, 1), ..TARGET }),
        Key::of_build(&kernel, &TARGET, "another build"),
        // A border that moves between two texts.
        of(&Target { cpu: "znver4+", features: "avx2", ..TARGET }),
    ];
    for (n, key) in changed.iter().enumerate() {
        assert_ne!(*key, of(&TARGET), "change {n}");
        assert!(!changed[..n].contains(key), "change {n}");
    }
    assert_eq!(of(&TARGET), Key::of(&constant(1.0), &TARGET));
}

#[test]
fn kernels_are_distinguished_by_bits() {
    assert_eq!(constant(0.0), constant(-0.0), "which is why `==` is not asked");
    assert_ne!(kernel_bytes(&constant(0.0)), kernel_bytes(&constant(-0.0)));
    assert_eq!(kernel_bytes(&constant(f64::NAN)), kernel_bytes(&constant(f64::NAN)));
}

#[test]
fn keys_are_written_as_digits() {
    let key = Key::of(&constant(1.0), &TARGET);
    assert_eq!(Key::from_hex(&key.hex()), Some(key));
    for wrong in ["", "00", &key.hex().to_uppercase(), &format!("{}+1", &key.hex()[2..]), "é"] {
        assert_eq!(Key::from_hex(wrong), None, "{wrong}");
    }
}

#[test]
fn what_was_written_is_read_by_another() {
    let folder = Temporary::new("cache").expect("a folder");
    let first = cache(&folder);
    assert_eq!(first.get(&key(1)), None);
    first.put(&key(1), "tanh", b"code");
    let second = cache(&folder);
    assert_eq!(second.get(&key(1)).as_deref(), Some(&b"code"[..]));
    assert_eq!(second.get(&key(2)), None);
    let report = CacheReport { missed: 1, written: 1, ..CacheReport::default() };
    assert_eq!(first.report(), report);
    assert_eq!(second.report(), CacheReport { loaded: 1, missed: 1, ..CacheReport::default() });
    let text = second.report().to_text(&named());
    assert_eq!(text, "cache: 1 loaded, 1 not there, 0 written (/c)\n");
    let listed = second.list().expect("a folder of ours");
    assert_eq!((listed.len(), listed[0].name.as_deref()), (1, Ok("tanh")));
}

#[cfg(unix)]
#[test]
fn folder_and_files_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Temporary::new("cache").expect("a folder");
    let cache = cache(&folder);
    cache.put(&key(1), "", b"code");
    let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
    assert_eq!((mode(cache.folder()), mode(&file(&cache, &key(1)))), (0o700, 0o600));
}

/// Every byte of a file, changed in each of its bits, and every length: a miss, and counted.
#[test]
fn no_damaged_byte_goes_unseen() {
    let bytes = encode(Kind::Kernels, &Entry { key: key(1), name: "a name", content: b"some code" });
    assert_eq!(decode(Kind::Kernels, &bytes).expect("whole").content, b"some code");
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << bit;
            let fault = decode(Kind::Kernels, &damaged).expect_err("damaged");
            let expected = match at {
                0..8 => [Fault::Magic; 2],
                8..12 => [Fault::Version(u32::from_le_bytes(damaged[8..12].try_into().expect("four"))); 2],
                12..44 => [Fault::Checksum; 2],
                44..54 => [Fault::Length, Fault::Checksum],
                _ => [Fault::Checksum; 2],
            };
            assert!(expected.contains(&fault), "byte {at}: {fault:?}");
        }
        assert!(decode(Kind::Kernels, &bytes[..at]).is_err(), "cut to {at}");
    }
    assert_eq!(decode(Kind::Kernels, &[&bytes[..], b"x"].concat()), Err(Fault::Length));
    assert_eq!(decode_for(Kind::Kernels, &bytes, &key(2)), Err(Fault::Key));
}

#[test]
fn names_are_lines_of_text_and_short() {
    let long = format!("{}\n{}", "ü".repeat(200), "x");
    let bytes = encode(Kind::Kernels, &Entry { key: key(1), name: &long, content: b"" });
    assert_eq!(decode(Kind::Kernels, &bytes).expect("whole").name, "ü".repeat(100));
}

#[test]
fn damaged_files_are_misses_and_are_replaced() {
    let folder = Temporary::new("cache").expect("a folder");
    let cache = cache(&folder);
    cache.put(&key(1), "", b"code");
    let path = file(&cache, &key(1));
    let whole = fs::read(&path).expect("written");
    let mut changed = whole.clone();
    changed[60] ^= 1;
    let other = encode(Kind::Kernels, &Entry { key: key(2), name: "", content: b"other" });
    for (n, damaged) in [&changed[..], &whole[..40], b"", &other].into_iter().enumerate() {
        fs::write(&path, damaged).expect("ours");
        assert_eq!(cache.get(&key(1)), None);
        assert_eq!(cache.report().damaged, n as u64 + 1);
        cache.put(&key(1), "", b"code");
        assert_eq!(cache.get(&key(1)).as_deref(), Some(&b"code"[..]));
    }
}

#[cfg(unix)]
#[test]
fn what_is_no_file_of_ours_is_a_miss() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = Temporary::new("cache").expect("a folder");
    let cache = cache(&folder);
    cache.put(&key(1), "", b"code");
    let path = file(&cache, &key(1));
    let elsewhere = folder.path().join("elsewhere");
    fs::rename(&path, &elsewhere).expect("ours");
    // A link, even to what was written.
    symlink(&elsewhere, &path).expect("ours");
    assert_eq!((cache.get(&key(1)), cache.report().foreign), (None, 1));
    fs::remove_file(&path).expect("ours");
    // A folder in the file's place: nothing can be written there either.
    fs::create_dir(&path).expect("ours");
    assert_eq!((cache.get(&key(1)), cache.report().foreign), (None, 2));
    cache.put(&key(1), "", b"code");
    assert_eq!((cache.get(&key(1)), cache.report().unwritten), (None, 1));
    let drafts = folder::all(Kind::Kernels, cache.folder())
        .expect("ours")
        .into_iter()
        .filter(|file| file.key.is_none());
    assert_eq!(drafts.count(), 0, "nothing half written stays");
    fs::remove_dir(&path).expect("ours");
    // A file that others may write to.
    fs::rename(&elsewhere, &path).expect("ours");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).expect("ours");
    assert_eq!((cache.get(&key(1)), cache.report().foreign), (None, 4));
}

#[cfg(unix)]
#[test]
fn a_folder_that_others_may_write_to_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Temporary::new("cache").expect("a folder");
    cache(&folder).put(&key(1), "", b"code");
    let path = folder.path().join("kernels");
    for mode in [0o770, 0o707, 0o777] {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("ours");
        let cache = cache(&folder);
        assert_eq!(cache.get(&key(1)), None);
        cache.put(&key(2), "", b"code");
        let report = cache.report();
        assert_eq!((report.unwritten, report.refused.as_deref()), (1, Some("others may write to it")));
        assert_eq!(report.to_text(&named()), "cache: /c is not used: others may write to it\n");
        for error in [cache.list().map(drop), cache.clear().map(drop)] {
            assert!(error.expect_err("refused").message().contains("others may write to it"));
        }
    }
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("ours");
    assert!(cache(&folder).get(&key(1)).is_some(), "others may read it");
}

#[cfg(unix)]
#[test]
fn a_folder_of_another_user_is_refused() {
    // The system's own folders belong to root; root meets one of another user where it may make one.
    let (folder, temporary) = match rustix::process::geteuid().is_root() {
        false => (PathBuf::from("/"), None),
        true => {
            let temporary = Temporary::new("cache").expect("a folder");
            let path = temporary.path().join("kernels");
            fs::create_dir(&path).expect("ours");
            std::os::unix::fs::chown(&path, Some(12345), None).expect("root may");
            (path, Some(temporary))
        }
    };
    let cache = DiskCache::new(Kind::Kernels, folder, LIMIT);
    assert_eq!(cache.get(&key(1)), None);
    assert_eq!(cache.report().refused.as_deref(), Some("it belongs to another user"));
    drop(temporary);
}

#[test]
fn a_folder_that_cannot_be_made_is_no_error() {
    let folder = Temporary::new("cache").expect("a folder");
    let blocked = folder.path().join("file");
    fs::write(&blocked, b"").expect("ours");
    for path in [blocked.clone(), blocked.join("kernels")] {
        let cache = DiskCache::new(Kind::Kernels, path, LIMIT);
        assert_eq!(cache.get(&key(1)), None);
        cache.put(&key(1), "", b"code");
        assert_eq!(cache.report().unwritten, 1);
        assert!(cache.report().refused.is_some());
    }
}

#[test]
fn the_kernels_that_were_used_longest_ago_make_room() {
    let folder = Temporary::new("cache").expect("a folder");
    let code = [7; 1000];
    let size = encode(Kind::Kernels, &Entry { key: key(0), name: "", content: &code }).len() as u64;
    let cache = DiskCache::new(Kind::Kernels, folder.path().join("kernels"), 8 * size);
    let now = SystemTime::now();
    for n in 0..8u8 {
        cache.put(&key(n), "", &code);
        // 3 and 4 were used at the same time, 5 before all others.
        let age = match n {
            5 => 9000,
            3 | 4 => 8000,
            n => 7000 - u64::from(n),
        };
        let file = fs::File::open(file(&cache, &key(n))).expect("written");
        file.set_modified(now - std::time::Duration::from_secs(age)).expect("ours");
    }
    // Reading counts as use.
    assert!(cache.get(&key(5)).is_some());
    assert_eq!(cache.report().evicted, 0);
    cache.put(&key(8), "", &code);
    let left = |n: &u8| cache.list().expect("ours").iter().any(|listed| listed.key == key(*n));
    assert_eq!((0..9u8).filter(|n| !left(n)).collect::<Vec<_>>(), [3, 4]);
    assert_eq!(cache.report().evicted, 2);
    // What does not fit at all is not written.
    cache.put(&key(9), "", &[0; 10_000]);
    assert_eq!((cache.report().unwritten, left(&9)), (1, false));
}

#[test]
fn drafts_of_dead_processes_go() {
    let folder = Temporary::new("cache").expect("a folder");
    let cache = cache(&folder);
    cache.put(&key(1), "", b"code");
    let draft = |n: u8| cache.folder().join(format!("{}-1-{n}.draft", key(2).hex()));
    let other = cache.folder().join("notes.txt");
    for path in [&draft(0), &draft(1), &other] {
        fs::write(path, b"half").expect("ours");
    }
    let old = fs::File::options().write(true).open(draft(0)).expect("ours");
    old.set_modified(SystemTime::now() - std::time::Duration::from_secs(7200)).expect("ours");
    folder::trim(Kind::Kernels, cache.folder(), LIMIT, &key(1)).expect("ours");
    assert_eq!([draft(0).exists(), draft(1).exists(), other.exists()], [false, true, true]);
    let removed = cache.clear().expect("ours");
    assert_eq!((removed.entries, draft(1).exists(), other.exists()), (1, false, true));
}

#[test]
fn two_writers_at_once_leave_whole_files() {
    let folder = Temporary::new("cache").expect("a folder");
    let (one, two) = (cache(&folder), cache(&folder));
    std::thread::scope(|scope| {
        for cache in [&one, &two] {
            scope.spawn(move || {
                for n in 0..200u32 {
                    let k = key((n % 4) as u8);
                    cache.put(&k, "", &[k.bytes()[0]; 3000]);
                    let code = cache.get(&k).expect("there is always one");
                    assert_eq!(code, [k.bytes()[0]; 3000]);
                }
            });
        }
    });
    for cache in [&one, &two] {
        let report = cache.report();
        assert_eq!((report.damaged, report.foreign, report.written, report.loaded), (0, 0, 200, 200));
    }
    assert_eq!(folder::all(Kind::Kernels, one.folder()).expect("ours").len(), 4);
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..300), cut in 0usize..300) {
        let _ = decode(Kind::Kernels, &bytes);
        // The same after a good beginning.
        let good = encode(Kind::Kernels, &Entry { key: key(1), name: "n", content: b"code" });
        let mut mixed = good[..cut.min(good.len())].to_vec();
        mixed.extend_from_slice(&bytes);
        if let Ok(entry) = decode(Kind::Kernels, &mixed) {
            prop_assert_eq!(encode(Kind::Kernels, &entry), mixed);
        }
    }
}
