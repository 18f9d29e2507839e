//! Compiled kernels, plans and modules on disk, as a user meets them: the program started more than once with a folder of the test's own.

use libtest_mimic::{Failed, Trial};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// One trial a situation. Without LLVM nothing is compiled.
pub fn trials() -> Vec<Trial> {
    let trials: [(&'static str, fn(&Path) -> Result<(), Failed>); 10] = [
        ("a_second_process_compiles_nothing", second_process),
        ("a_second_process_runs_no_passes_of_plans", plans),
        ("a_second_process_compiles_no_source", modules),
        ("a_default_stays_one_object", defaults),
        ("warm_fills_it", warm),
        ("it_can_be_turned_off", off),
        ("damaged_files_are_found_and_removed", damaged),
        ("several_processes_at_once", at_once),
        ("a_folder_that_others_may_write_to_is_refused", refused),
        ("a_folder_that_is_read_only_is_read", read_only),
    ];
    let trial = |(name, test): (&'static str, fn(&Path) -> Result<(), Failed>)| {
        let run = move || {
            let folder = crate::scratch::folder(&format!("cache-{name}"));
            fs::create_dir_all(&folder)?;
            fs::write(folder.join("f.py"), PROGRAM)?;
            let done = test(&folder);
            let _ = fs::remove_dir_all(&folder);
            done
        };
        Trial::test(format!("cache::{name}"), run).with_ignored_flag(!cfg!(all(unix, feature = "llvm")))
    };
    trials.map(trial).into_iter().collect()
}

/// Two groups of different sizes of element.
const PROGRAM: &str = "\
def f(x: Tensor, y: Tensor) -> Tuple[Tensor, Tensor]:
    return torch.tanh(x) * 2.0 + 1.0, torch.exp(y.double()) - torch.sin(y.double())
";

const CALL: [&str; 8] =
    ["f.py", "--entry", "f", "--input", "x=float32[33,65]", "--input", "y=float32[17]", "--seed=3"];

/// The program in a folder, with its cache below it.
fn flambeau(folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flambeau"));
    command.args(words).current_dir(folder).env("FLAMBEAU_CACHE", folder.join("cache"));
    command
}

fn run(folder: &Path, more: &[&str]) -> Result<Output, Failed> {
    let words: Vec<&str> = ["run"].into_iter().chain(CALL).chain(more.iter().copied()).collect();
    Ok(flambeau(folder, &words).output()?)
}

/// Asks for the exit status and for pieces of what was reported, and gives what was printed.
fn expect(output: &Output, status: i32, pieces: &[&str]) -> Result<String, Failed> {
    let reported = String::from_utf8_lossy(&output.stderr).into_owned();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let missing = pieces.iter().find(|piece| !reported.contains(**piece) && !printed.contains(**piece));
    if output.status.code() != Some(status) || missing.is_some() {
        let code = output.status.code();
        return Err(format!("status {code:?}, wanted {status} and {missing:?}\n{printed}\n{reported}").into());
    }
    Ok(printed)
}

fn kernels(folder: &Path) -> Result<Vec<PathBuf>, Failed> {
    files(&folder.join("cache/kernels"))
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, Failed> {
    let files = fs::read_dir(folder)?;
    let mut files: Vec<PathBuf> = files.map(|file| Ok(file?.path())).collect::<std::io::Result<_>>()?;
    files.sort();
    Ok(files)
}

/// Changes a byte in the middle of each file of a folder.
fn damage(folder: &Path) -> Result<(), Failed> {
    for file in files(folder)? {
        let mut bytes = fs::read(&file)?;
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(&file, bytes)?;
    }
    Ok(())
}

fn equal(found: &str, wanted: &str) -> Result<(), Failed> {
    if found == wanted { Ok(()) } else { Err(format!("{found}\nis not\n{wanted}").into()) }
}

fn second_process(folder: &Path) -> Result<(), Failed> {
    let cold = expect(
        &run(folder, &["--time"])?,
        0,
        &["2 kernels compiled", "cache: 0 loaded, 2 not there, 2 written"],
    )?;
    let warm = expect(
        &run(folder, &["--time"])?,
        0,
        &["0 kernels compiled", "  2 kernels from the cache", "cache: 2 loaded, 0 not there, 0 written"],
    )?;
    equal(&warm, &cold)?;
    let words: Vec<&str> = ["bench"].into_iter().chain(CALL.into_iter().take(7)).collect();
    let bench = flambeau(folder, &words).args(["--json", "--seconds=0"]).output()?;
    expect(&bench, 0, &["\"kernels\":0", "\"cached\":2"])?;
    let listed = expect(&flambeau(folder, &["cache", "list"]).output()?, 0, &["2 kernels, "])?;
    for line in ["tanh+mul+add (f32) -> f32", "exp+sin+sub (f64) -> f64"] {
        if !listed.lines().any(|listed| listed.ends_with(line)) {
            return Err(format!("no kernel is {line}:\n{listed}").into());
        }
    }
    Ok(())
}

fn plans(folder: &Path) -> Result<(), Failed> {
    let printed =
        expect(&run(folder, &["--time"])?, 0, &["cache of plans: 0 loaded, 1 not there, 1 written"])?;
    let reported = ["1 of these from the cache", "cache of plans: 1 loaded, 0 not there, 0 written"];
    equal(&expect(&run(folder, &["--time"])?, 0, &reported)?, &printed)?;
    let listed = expect(&flambeau(folder, &["cache", "list"]).output()?, 0, &["2 kernels, ", "1 plan, "])?;
    if !listed.lines().any(|line| line.ends_with("ago  f")) {
        return Err(format!("no plan of f:\n{listed}").into());
    }
    // Another number of threads or another kind of arguments is another plan.
    expect(
        &run(folder, &["--time", "--threads=3"])?,
        0,
        &["cache of plans: 0 loaded, 1 not there, 1 written"],
    )?;
    let other =
        ["run", "f.py", "--entry=f", "--input", "x=float32[3,65]", "--input", "y=float32[17]", "--time"];
    expect(&flambeau(folder, &other).output()?, 0, &["cache of plans: 0 loaded, 1 not there, 1 written"])?;
    // A changed program is another one.
    fs::write(folder.join("f.py"), PROGRAM.replace("+ 1.0", "- 1.0"))?;
    let changed = run(folder, &["--time"])?;
    let changed = expect(&changed, 0, &["cache of plans: 0 loaded, 1 not there, 1 written"])?;
    let without = expect(&run(folder, &["--no-cache"])?, 0, &[])?;
    equal(&changed, &without)?;
    fs::write(folder.join("f.py"), PROGRAM)?;
    damage(&folder.join("cache/plans"))?;
    let reported = ["cache of plans: 0 loaded, 0 not there, 1 written, 1 damaged"];
    equal(&expect(&run(folder, &["--time"])?, 0, &reported)?, &printed)?;
    let reported = ["its checksum does not fit its content; removed", "4 plans checked, 3 not used"];
    expect(&flambeau(folder, &["cache", "verify"]).output()?, 1, &reported)?;
    expect(&flambeau(folder, &["cache", "clear"]).output()?, 0, &["removed 1 plan, "])?;
    Ok(())
}

fn modules(folder: &Path) -> Result<(), Failed> {
    let printed =
        expect(&run(folder, &["--time"])?, 0, &["cache of modules: 0 loaded, 2 not there, 2 written"])?;
    let reported = ["cache of modules: 2 loaded, 0 not there, 0 written", "0 kernels compiled"];
    equal(&expect(&run(folder, &["--time"])?, 0, &reported)?, &printed)?;
    let listed = expect(&flambeau(folder, &["cache", "list"]).output()?, 0, &["2 modules, "])?;
    if !["ago  f.py", "ago  f.py after passes"].iter().all(|name| listed.lines().any(|l| l.ends_with(name))) {
        return Err(format!("no module of f.py:\n{listed}").into());
    }
    // Other passes make something else of the same code, and an error says where it was before.
    let reported = ["cache of modules: 1 loaded, 1 not there, 1 written"];
    expect(&run(folder, &["--time", "--passes=cse"])?, 0, &reported)?;
    let wrong = ["run", "f.py", "--entry=f", "--input=x=float32[2]", "--input=y=int64[3,2]", "--passes=cse"];
    let there = expect(&flambeau(folder, &wrong).output()?, 0, &[])?;
    equal(&there, &expect(&flambeau(folder, &wrong).arg("--no-cache").output()?, 0, &[])?)?;
    // A changed source is another module; one that does not compile is none.
    fs::write(folder.join("f.py"), PROGRAM.replace("torch.tanh", "torch.neg"))?;
    expect(&run(folder, &["--time"])?, 0, &["cache of modules: 0 loaded, 2 not there, 2 written"])?;
    fs::write(folder.join("f.py"), PROGRAM.replace("torch.tanh", "torch.tang"))?;
    for _ in 0..2 {
        expect(&run(folder, &["--time"])?, 1, &["error: object has no attribute tang", "f.py:2:12"])?;
    }
    fs::write(folder.join("f.py"), PROGRAM)?;
    damage(&folder.join("cache/modules"))?;
    let reported = ["cache of modules: 0 loaded, 0 not there, 2 written, 2 damaged"];
    equal(&expect(&run(folder, &["--time"])?, 0, &reported)?, &printed)?;
    let reported = ["its checksum does not fit its content; removed", "5 modules checked, 3 not used"];
    expect(&flambeau(folder, &["cache", "verify", "cache/modules"]).output()?, 1, &reported)?;
    Ok(())
}

/// A default that is a list is one list for all calls, as in PyTorch, and in what a process before compiled and planned.
fn defaults(folder: &Path) -> Result<(), Failed> {
    let program = "def collect(v: int, all: List[int] = [10]) -> List[int]:
    all.append(v)
    return all

def f(x: Tensor) -> Tuple[Tensor, List[int], List[int]]:
    a = collect(1)
    return torch.tanh(x) * 2.0 + 1.0, a, collect(2)
";
    fs::write(folder.join("d.py"), program)?;
    let run = || flambeau(folder, &["run", "d.py", "--entry=f", "--input=x=float32[3]", "--time"]).output();
    let first = expect(&run()?, 0, &["[10, 1, 2], [10, 1, 2]", "cache of modules: 0 loaded"])?;
    equal(&expect(&run()?, 0, &["cache of modules: 2 loaded", "cache of plans: 1 loaded"])?, &first)
}

fn warm(folder: &Path) -> Result<(), Failed> {
    let words: Vec<&str> = ["warm"].into_iter().chain(CALL).collect();
    expect(
        &flambeau(folder, &words).output()?,
        0,
        &["f.py: 2 kernels compiled, 0 were there; 1 plan kept, 0 were there; 2 modules kept, 0 were there;"],
    )?;
    expect(
        &flambeau(folder, &words).output()?,
        0,
        &[
            "f.py: 0 kernels compiled, 2 were there; 0 plans kept, 1 were there; 0 modules kept, 2 were there;",
        ],
    )?;
    expect(&run(folder, &["--time"])?, 0, &["0 kernels compiled"])?;
    // What is not kept says why.
    let dialect = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/quant.dialect");
    let added = flambeau(folder, &words).args(["--dialect", dialect]).output()?;
    expect(
        &added,
        0,
        &["0 plans kept, 0 were there;", "1 plan not kept: ops, rules or lowerings were added"],
    )?;
    let off = flambeau(folder, &words).env("FLAMBEAU_CACHE", "off").output()?;
    expect(&off, 1, &["the cache of compiled kernels is off"])?;
    expect(&flambeau(folder, &["cache", "clear"]).output()?, 0, &["removed 2 kernels, "])?;
    expect(&run(folder, &["--time"])?, 0, &["2 kernels compiled"])?;
    Ok(())
}

fn off(folder: &Path) -> Result<(), Failed> {
    let without = run(folder, &["--time", "--no-cache"])?;
    let printed = expect(&without, 0, &["2 kernels compiled"])?;
    let words: Vec<&str> = ["run"].into_iter().chain(CALL).chain(["--time"]).collect();
    let off = flambeau(folder, &words).env("FLAMBEAU_CACHE", "off").output()?;
    equal(&expect(&off, 0, &["2 kernels compiled"])?, &printed)?;
    for output in [&without, &off] {
        if String::from_utf8_lossy(&output.stderr).contains("cache:") {
            return Err("a cache that is off is reported of".into());
        }
    }
    if folder.join("cache").exists() {
        return Err("a cache that is off was written".into());
    }
    // Where nothing else is said, below the user's folder for caches.
    let home = folder.join("home");
    for (variable, below) in [("HOME", ".cache/flambeau/kernels"), ("XDG_CACHE_HOME", "flambeau/kernels")] {
        let mut command = flambeau(folder, &words);
        command.env_remove("FLAMBEAU_CACHE").env_remove("XDG_CACHE_HOME").env(variable, &home);
        expect(&command.output()?, 0, &["2 kernels compiled", "2 written"])?;
        if fs::read_dir(home.join(below))?.count() != 2 {
            return Err(format!("no kernels by {variable}").into());
        }
    }
    Ok(())
}

fn damaged(folder: &Path) -> Result<(), Failed> {
    let printed = expect(&run(folder, &[])?, 0, &[])?;
    expect(&flambeau(folder, &["cache", "verify"]).output()?, 0, &["2 kernels checked, 0 not used"])?;
    damage(&folder.join("cache/kernels"))?;
    let reported = ["2 kernels compiled", "0 loaded, 0 not there, 2 written, 2 damaged"];
    equal(&expect(&run(folder, &["--time"])?, 0, &reported)?, &printed)?;
    let reported = ["0 kernels compiled", "2 loaded"];
    equal(&expect(&run(folder, &["--time"])?, 0, &reported)?, &printed)?;
    let file = kernels(folder)?.swap_remove(0);
    fs::write(&file, "")?;
    let reported = ["not as long as it says; removed", "2 kernels checked, 1 not used"];
    expect(&flambeau(folder, &["cache", "verify"]).output()?, 1, &reported)?;
    expect(&flambeau(folder, &["cache", "verify"]).output()?, 0, &["1 kernel checked, 0 not used"])?;
    Ok(())
}

fn at_once(folder: &Path) -> Result<(), Failed> {
    let words: Vec<&str> = ["run"].into_iter().chain(CALL).collect();
    let start = || {
        let mut command = flambeau(folder, &words);
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn()
    };
    let children: Vec<_> = (0..4).map(|_| start()).collect::<std::io::Result<_>>()?;
    let mut answers = Vec::new();
    for child in children {
        answers.push(expect(&child.wait_with_output()?, 0, &[])?);
    }
    answers.iter().try_for_each(|answer| equal(answer, &answers[0]))?;
    expect(&flambeau(folder, &["cache", "verify"]).output()?, 0, &["2 kernels checked, 0 not used"])?;
    if kernels(folder)?.len() != 2 {
        return Err("something half written was left".into());
    }
    Ok(())
}

#[cfg(unix)]
fn refused(folder: &Path) -> Result<(), Failed> {
    use std::os::unix::fs::PermissionsExt;
    let printed = expect(&run(folder, &[])?, 0, &[])?;
    fs::set_permissions(folder.join("cache/kernels"), fs::Permissions::from_mode(0o777))?;
    let reported = ["2 kernels compiled", "is not used: others may write to it"];
    equal(&expect(&run(folder, &["--time"])?, 0, &reported)?, &printed)?;
    let reported = ["this folder is not used: others may write to it"];
    for what in ["list", "verify", "clear"] {
        expect(&flambeau(folder, &["cache", what]).output()?, 1, &reported)?;
    }
    let words: Vec<&str> = ["warm"].into_iter().chain(CALL).collect();
    expect(&flambeau(folder, &words).output()?, 1, &["2 kernels compiled", "others may write to it"])?;
    Ok(())
}

#[cfg(unix)]
fn read_only(folder: &Path) -> Result<(), Failed> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
    use std::os::unix::process::CommandExt;
    let printed = expect(&run(folder, &[])?, 0, &[])?;
    fs::remove_file(kernels(folder)?.swap_remove(0))?;
    // The superuser may write everywhere, so that another user has to try.
    const OTHER: u32 = 65534;
    let superuser = fs::metadata(folder)?.uid() == 0;
    let cache = folder.join("cache/kernels");
    if superuser {
        for path in kernels(folder)?.iter().chain([&cache]) {
            chown(path, Some(OTHER), None)?;
        }
    }
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755))?;
    fs::set_permissions(folder.join("cache"), fs::Permissions::from_mode(0o755))?;
    fs::set_permissions(&cache, fs::Permissions::from_mode(0o500))?;
    let words: Vec<&str> = ["run"].into_iter().chain(CALL).chain(["--time"]).collect();
    let mut command = flambeau(folder, &words);
    if superuser {
        command.uid(OTHER);
    }
    let output = match command.output() {
        Err(error) if superuser && error.kind() == std::io::ErrorKind::PermissionDenied => {
            eprintln!("skipped: another user cannot start the program here");
            return Ok(());
        }
        output => output?,
    };
    let reported = ["1 kernel compiled", "1 loaded, 1 not there, 0 written, 1 not written"];
    equal(&expect(&output, 0, &reported)?, &printed)
}

#[cfg(not(unix))]
fn refused(_: &Path) -> Result<(), Failed> {
    Ok(())
}

#[cfg(not(unix))]
fn read_only(_: &Path) -> Result<(), Failed> {
    Ok(())
}
