//! `--update` and `--update-changed`: checks that are rewritten, and first checks.

use super::*;

#[test]
fn checks_are_rewritten() {
    let text = "\
// RUN: show | FileCheck %s
graph
  // CHECK: old
  // CHECK-NEXT: older
end
";
    let folder = Folder::new("update", &[("a.test", text)]);
    let mut config = folder.config();
    config.tools.insert(
        "show".into(),
        tool(|_, _, out, _| {
            out.write_all(b"graph(%x.1 : int):\n  %3 : int = f(%x.1, [[1]], {{%3}})\n\n  return (%3, %b)\n")
                .unwrap();
            0
        }),
    );
    let path = folder.0.join("a.test");
    assert_eq!(run_file(&path, &config).status, Status::Fail);
    config.update = true;
    let outcome = run_file(&path, &config);
    assert_eq!(outcome.status, Status::Pass, "{}", outcome.output);
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        "\
// RUN: show | FileCheck %s
graph
  // CHECK: graph([[X_1:%[-a-zA-Z0-9._]+]] : int):
  // CHECK-NEXT: [[F:%[-a-zA-Z0-9._]+]] : int = f([[X_1]], {{\\[\\[}}1]], {{[{][{]}}[[F]]}})
  // CHECK-EMPTY:
  // CHECK-NEXT: return ([[F]], {{%[-a-zA-Z0-9._]+}})
end
"
    );
}

/// A tool `opt` that reads a file and takes out `mul(x, 1)`, unless `--limit=0` forbids it; `--places` prints the lines of functions.
fn opt(config: &mut Config) {
    config.tools.insert(
        "opt".into(),
        tool(|args, _, out, _| {
            let args: Vec<&str> = args.iter().filter_map(|arg| arg.to_str()).collect();
            let (is_idle, places) = (args.contains(&"--limit=0"), args.contains(&"--places"));
            let text = fs::read_to_string(args[1]).unwrap();
            let (mut new, mut number, mut known) = (String::new(), 0, Vec::new());
            for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.starts_with("//")) {
                if places && line.starts_with("f(") {
                    new.push_str(&format!("at line {}\n", at + 1));
                }
                let line = known.iter().fold(line.to_string(), |line, (old, new): &(String, String)| {
                    line.replace(old.as_str(), new)
                });
                match line.split_once(" = ") {
                    Some((name, op)) if op.starts_with("mul") && op.ends_with(", 1)") && !is_idle => {
                        let argument = op.split(['(', ',']).nth(1).unwrap();
                        known.push((name.trim().to_string(), argument.to_string()));
                    }
                    Some((name, op)) => {
                        number += 1;
                        known.push((name.trim().to_string(), format!("%{number}")));
                        new.push_str(&format!("  %{number} = {op}\n"));
                    }
                    None => new.push_str(&format!("{line}\n")),
                }
            }
            out.write_all(new.as_bytes()).unwrap();
            0
        }),
    );
}

#[test]
fn checks_are_written_where_there_are_none() {
    let functions = "f(%x):\n  %a = mul(%x, %x)\n  %b = mul(%a, 1)\n  %c = mul(%b, %x)\n  return %c\ng(%x):\n  return %x\n";
    let value = "%[-a-zA-Z0-9._]+";
    let of_f = format!(
        "// CHECK: f([[X:{value}]]):\n// CHECK-NEXT: [[MUL:{value}]] = mul([[X]], [[X]])\n\
         // CHECK-NEXT: [[MUL_2:{value}]] = mul([[MUL]], [[X]])\n// CHECK-NEXT: return [[MUL_2]]\n"
    );
    let of_g = "// CHECK-NEXT: g([[X]]):\n// CHECK-NEXT: return [[X]]\n";
    let changed = format!(
        "// CHECK: f([[X:{value}]]):\n// CHECK-NEXT: [[MUL:{value}]] = mul([[X]], [[X]])\n\
         // CHECK-NEXT: {{{{{value}}}}} = mul([[MUL]], [[X]])\n"
    );
    let run = |args: &str| format!("// RUN: opt %s {args} | FileCheck %s\n");
    for (args, before, option, expected) in [
        ("", "", "--update", format!("\n{of_f}{of_g}\n")),
        ("", "\n", "--update", format!("\n{of_f}{of_g}\n")),
        ("", "", "--update-changed=opt:--limit={}", format!("\n{changed}\n")),
        // Line numbers in the output are those after the checks are inserted.
        (
            "--places",
            "",
            "--update",
            format!("\n// CHECK: at line 11\n{}{of_g}\n", of_f.replacen("CHECK:", "CHECK-NEXT:", 1)),
        ),
    ] {
        let folder = Folder::new("first", &[("a.test", &format!("{}{before}{functions}", run(args)))]);
        let mut config = folder.config();
        opt(&mut config);
        let path = folder.0.join("a.test");
        let all = ["lit", option, "-q", path.to_str().unwrap()].map(Into::into);
        let (mut out, mut err) = (Vec::new(), Vec::new());
        assert_eq!(main(&all, config, &mut out, &mut err), 0, "{}", String::from_utf8_lossy(&out));
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text, format!("{}{expected}{functions}", run(args)), "{args} {option}");
        assert_eq!(crate::lint::lint(&text), [], "{text}");
    }
}

#[test]
fn a_tool_that_changes_nothing_gets_no_checks() {
    let text = "// RUN: opt %s | FileCheck %s\ng(%x):\n  return %x\n";
    let folder = Folder::new("nothing", &[("a.test", text)]);
    for (option, reason) in [
        ("--update-changed=opt:--limit={}", "the tool changes nothing"),
        ("--update-changed=other:--limit={}", "no option is known"),
        ("--update", "the tool writes nothing"),
    ] {
        let mut config = folder.config();
        opt(&mut config);
        if option == "--update" {
            config.tools.insert("opt".into(), tool(|_, _, _, _| 0));
        }
        let path = folder.0.join("a.test");
        let all = ["lit", option, "-v", path.to_str().unwrap()].map(Into::into);
        let (mut out, mut err) = (Vec::new(), Vec::new());
        assert_eq!(main(&all, config, &mut out, &mut err), 1);
        let out = String::from_utf8(out).unwrap();
        assert!(out.contains(&format!("the checks could not be rewritten: {reason}")), "{out}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
    let (_, _, err) = folder.main(&["--update-changed"]);
    assert!(err.contains("--update-changed wants TOOL:OPTION"), "{err}");
}
