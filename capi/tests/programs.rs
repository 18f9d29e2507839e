//! Programs of C, C++, Fortran and Go over the library: compiled with every warning an error, run, compared. A language whose
//! compiler is not installed is a test that is ignored, with the compiler's name.

use libtest_mimic::{Arguments, Failed, Trial};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::OnceLock;

/// What a program prints that runs `examples/lstm_cell.pt` on halves.
const CELL: &str = "2 dimensions, the first element is ";

/// The limits that `tests/limits.cpp` reaches, and an answer below them.
const LIMITS: &str = "steps\nseconds\ncancel\n0\n";

fn main() -> ExitCode {
    let strict = "-Wall -Wextra -Werror -pedantic";
    let c99 = format!("-std=c99 {strict}");
    let cpp17 = format!("-std=c++17 {strict}");
    let sanitized = "-g -fsanitize=address,undefined";
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let module = here.join("tests/my_module.pt").display().to_string();
    let cell = here.join("../examples/lstm_cell.pt").display().to_string();
    let saved = scratch("again.pt").display().to_string();
    let tour = std::fs::read_to_string(here.join("tests/tour.out")).unwrap_or_default();
    let seed = " 0.2568  0.5872 -0.1455\n 0.2568  0.5872 -0.1455\n[ CPUFloatType{2,3} ]";
    let rows = [
        ("api_c", "cc", c99.clone(), "tests/api.c", vec![module.as_str(), &saved], "ok"),
        (
            "api_c_sanitized",
            "cc",
            format!("{c99} {sanitized}"),
            "tests/api.c",
            vec![module.as_str(), &saved],
            "ok",
        ),
        ("tour_cpp", "c++", cpp17.clone(), "tests/tour.cpp", vec![module.as_str()], tour.as_str()),
        (
            "tour_cpp_sanitized",
            "c++",
            format!("{cpp17} {sanitized}"),
            "tests/tour.cpp",
            vec![module.as_str()],
            tour.as_str(),
        ),
        (
            "tour_cpp20",
            "c++",
            cpp17.replace("17", "20"),
            "tests/tour.cpp",
            vec![module.as_str()],
            tour.as_str(),
        ),
        ("limits_cpp", "c++", format!("{cpp17} -pthread"), "tests/limits.cpp", Vec::new(), LIMITS),
        ("seed_cpp", "c++", cpp17.clone(), "tests/seed.cpp", Vec::new(), seed),
        ("example_c", "cc", c99, "examples/lstm.c", vec![cell.as_str()], CELL),
        ("example_cpp", "c++", cpp17, "examples/lstm.cpp", vec![cell.as_str()], CELL),
        ("example_fortran", "gfortran", "-Wall".to_string(), "examples/lstm.f90", vec![cell.as_str()], CELL),
    ];
    let mut trials = vec![Trial::test("exports_are_the_header", exports)];
    for (name, compiler, flags, source, arguments, expected) in rows {
        let arguments: Vec<String> = arguments.into_iter().map(str::to_string).collect();
        let (expected, source) = (expected.to_string(), here.join(source));
        let test = move || {
            let program = compiled(name, compiler, &flags, &source)?;
            let mut command = Command::new(program);
            // The founding documents' program opens a file beside it.
            command.args(&arguments).current_dir(source.parent().unwrap_or(Path::new(".")));
            printed(&mut command, &expected)
        };
        trials.push(Trial::test(name, test).with_ignored_flag(!installed(compiler)).with_kind(compiler));
    }
    let go = move || {
        let source = here.join("examples/lstm.go");
        let mut command = Command::new("go");
        command.arg("run").arg(&source).arg(&cell).current_dir(scratch(""));
        command.env("CGO_CFLAGS", format!("-I{}", here.join("include").display()));
        command
            .env("CGO_LDFLAGS", linking()?.join(" "))
            .env("GOCACHE", scratch("go"))
            .env("GOFLAGS", "-mod=mod");
        printed(&mut command, CELL)
    };
    trials.push(Trial::test("example_go", go).with_ignored_flag(!installed("go")).with_kind("go"));
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// A place for what is built here.
fn scratch(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

fn installed(program: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).any(|folder| folder.join(program).is_file())
}

/// The folder of the library of this build.
fn library() -> Result<PathBuf, Failed> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let built = BUILT.get_or_init(|| {
        let test = std::env::current_exe().map_err(|e| e.to_string())?;
        let folder = test.ancestors().nth(2).ok_or("the test is in no target folder")?;
        let profile = match folder.file_name().and_then(|name| name.to_str()) {
            Some("debug") | None => "dev",
            Some(name) => name,
        };
        // Cargo builds no library of C for the tests of its package. The whole workspace, as `make test` does, which has built
        // nearly all of it.
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command.args(["build", "--quiet", "--workspace", "--lib", "--profile", profile]);
        command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
        let status = command.status().map_err(|e| e.to_string())?;
        let file = folder.join("libflambeau.so");
        match status.success() && file.is_file() {
            true => Ok(folder.to_path_buf()),
            false => Err(format!("{} was not built", file.display())),
        }
    });
    built.clone().map_err(Failed::from)
}

fn linking() -> Result<[String; 3], Failed> {
    let folder = library()?;
    let folder = folder.display();
    Ok([format!("-L{folder}"), "-lflambeau".to_string(), format!("-Wl,-rpath,{folder}")])
}

fn compiled(name: &str, compiler: &str, flags: &str, source: &Path) -> Result<PathBuf, Failed> {
    let program = scratch(name);
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    let mut command = Command::new(compiler);
    command.args(flags.split_whitespace()).arg(source).args(linking()?).arg("-o").arg(&program);
    if compiler == "gfortran" {
        command.arg(format!("-J{}", scratch("").display()));
    } else {
        command.arg(format!("-I{}", include.display()));
    }
    let output = command.output()?;
    match output.status.success() {
        true => Ok(program),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned().into()),
    }
}

/// Runs a program that must print what is expected, or only begin so where the expected text has no end of its own.
fn printed(command: &mut Command, expected: &str) -> Result<(), Failed> {
    let output = command.output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    if output.status.success() && !expected.is_empty() && text.starts_with(expected) {
        return Ok(());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    Err(format!("{}\nprinted:\n{text}\nexpected:\n{expected}\nerrors:\n{errors}", output.status).into())
}

/// The library exports the functions of the header and nothing else.
fn exports() -> Result<(), Failed> {
    let library = library()?.join("libflambeau.so");
    let output = Command::new("nm").args(["-D", "--defined-only"]).arg(library).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut exported: Vec<&str> = text.lines().filter_map(|line| line.split_whitespace().nth(2)).collect();
    exported.sort_unstable();
    let header = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("include/flambeau.h"))?;
    let mut declared = Vec::new();
    for (at, _) in header.match_indices("flambeau_") {
        let name: String =
            header[at..].chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
        let is_declaration = header[at + name.len()..].starts_with('(');
        if is_declaration && !declared.contains(&name) {
            declared.push(name);
        }
    }
    declared.sort_unstable();
    if declared.len() < 20 || exported != declared {
        return Err(format!("exported: {exported:?}\ndeclared: {declared:?}").into());
    }
    Ok(())
}
