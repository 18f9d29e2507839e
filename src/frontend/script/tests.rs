//! What parses to what, what is refused with which messages, and that nothing panics or hangs.

use super::ast::{Item, Module, StmtKind};
use super::{parse_expr, parse_library, parse_module, parse_type};
use crate::diag::torch::render;
use crate::diag::{Diagnostic, ErrorKind, Source};
use proptest::prelude::*;
use std::time::{Duration, Instant};

fn expr(text: &str) -> String {
    parse_expr(&Source::new("<string>", text)).map_or_else(|e| e.to_string(), |e| e.to_string())
}

fn module(text: &str) -> Result<Module, Diagnostic> {
    parse_module(&Source::new("<string>", text))
}

/// The statements of a function body, as text.
fn body(stmts: &str) -> String {
    let text = format!("def f():\n  {}\n", stmts.replace('\n', "\n  "));
    match module(&text) {
        Ok(module) => {
            let Some(Item::Def(def)) = module.items.first() else { return String::new() };
            def.body.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
        }
        Err(error) => error.message().to_string(),
    }
}

/// Recorded from PyTorch's own tree dump; `v` stands for `variable (ident v)`.
#[test]
fn expressions() {
    let cases = [
        ("a or b and c", "(and (or a b) c)"),
        ("~a + b", "(~ (+ a b))"),
        ("-a ** b", "(unary minus (pow operator a b))"),
        ("-a * b", "(* (unary minus a) b)"),
        ("a ** b ** c", "(pow operator a (pow operator b c))"),
        ("a - b - c", "(- (- a b) c)"),
        ("a < b < c", "(< (< a b) c)"),
        ("not a == b", "(not (eq a b))"),
        ("a * not b + c", "(* a (not (+ b c)))"),
        ("a not in b", "(not (in a b))"),
        ("a is not b", "(is not a b)"),
        ("a if b else c if d else e", "(if b a (if d c e))"),
        ("a if c else b for x in y", "(if c a (list comprehension b x y))"),
        ("- -1", "(const 1)"),
        ("-(2.5)", "(const -2.5)"),
        ("3j", "(const 3.0j)"),
        ("'a' \"b\"", "(string_literal ab)"),
        ("()", "(tuple-literal (list))"),
        ("(a)", "a"),
        ("(a,)", "(tuple-literal (list a))"),
        ("[a, b,]", "(list-literal (list a b))"),
        ("[[a for b in c]]", "(list comprehension a b c)"),
        ("{}", "(dict-literal (list) (list))"),
        ("{a: b, c: d}", "(dict-literal (list a c) (list b d))"),
        ("{a: b for c in d}", "(dict comprehension a b c d)"),
        ("a.b.c", "(. (. a (ident b)) (ident c))"),
        ("f(a, b=c, *d,)", "(apply f (list a (starred d)) (list (attribute (ident b) c)))"),
        ("f(a for b in c)", "(apply f (list (list comprehension a b c)) (list))"),
        ("a[b]", "(subscript a (list b))"),
        (
            "a[b:, :c, ::d, ...]",
            "(subscript a (list (slice expr (option b) (option) (option)) (slice expr (option) (option c) (option)) (slice expr (option) (option) (option d)) (dots)))",
        ),
        ("a[()]", "(subscript a (list (tuple-literal (list))))"),
        ("a[]", "(subscript a (list))"),
        ("NoneType", "(NoneType)"),
    ];
    for (text, expected) in cases {
        let mut got = expr(text);
        for name in ["a", "b", "c", "d", "e", "f", "x", "y"] {
            got = got.replace(&format!("(variable (ident {name}))"), name);
        }
        assert_eq!(got, expected, "{text}");
    }
}

#[test]
fn statements() {
    let cases = [
        ("return", "(return (None))"),
        ("return 1,", "(return (tuple-literal (list (const 1))))"),
        ("1", "(expression statement (const 1))"),
        ("1: 2", "(assign (list (const 1)) (option) (option (const 2)))"),
        ("1: 2 = 3", "(assign (list (const 1)) (option (const 3)) (option (const 2)))"),
        (
            "1 = 2, = 3",
            "(assign (list (const 1) (tuple-literal (list (const 2)))) (option (const 3)) (option))",
        ),
        ("1 <<= 2", "(aug_assign (const 1) (<<) (const 2))"),
        ("1: 2 **= 3", "(aug_assign (const 1) (pow operator) (const 3))"),
        (
            "if 1:\n  pass\nelif 2:\n  break\nelse:\n  continue",
            "(if (const 1) (list (pass)) (list (if (const 2) (list (break)) (list (continue)))))",
        ),
        ("while 1:\n  pass", "(while (const 1) (list (pass)))"),
        ("for 1, 2, in 3:\n  pass", "(for (list (const 1) (const 2)) (list (const 3)) (list (pass)))"),
        ("for in 3:\n  pass", "(for (list) (list (const 3)) (list (pass)))"),
        (
            "with 1 as x, 2:\n  pass",
            "(with (list (withitem (const 1) (option (variable (ident x)))) (withitem (const 2) (option))) (list (pass)))",
        ),
        ("raise 1", "(raise (const 1))"),
        ("assert 1, 2", "(assert (const 1) (option (const 2)))"),
        ("del 1, 2", "(del (list (const 1) (const 2)))"),
        ("global a, b", "(global (list (ident a) (ident b)))"),
        ("def g(): pass", "(def (ident g) (decl (list) (option)) (list (pass)))"),
    ];
    for (text, expected) in cases {
        assert_eq!(body(text), expected, "{text}");
    }
}

#[test]
fn functions() {
    let text =
        "def f(a, b: int = 3, *, c=4) -> int: pass\ndef g(x, y):\n  # type: (int, str) -> bool\n  pass\n";
    assert_eq!(
        module(text).unwrap().to_string(),
        "(def (ident f) (decl (list (param (ident a) (option) (option) (False)) (param (ident b) (option (variable (ident int))) (option (const 3)) (False)) (param (ident c) (option) (option (const 4)) (True))) (option (variable (ident int)))) (list (pass)))\n\
         (def (ident g) (decl (list (param (ident x) (option (variable (ident int))) (option) (False)) (param (ident y) (option (variable (ident str))) (option) (False))) (option (variable (ident bool)))) (list (pass)))"
    );
    assert!(module("").unwrap().items.is_empty());
}

#[test]
fn code_of_archives() {
    let text = "op_version_set = 1\nimport __torch__.a\nclass M(Module):\n  __parameters__ = [\"w\", ]\n  __annotations__[\"0\"] = Tensor\n  scale : Final[int] = 2\n  def forward(self: __torch__.M,\n    x: Tensor) -> Tensor:\n    # type: (int) -> int\n    return (self.w).forward(x, )\ndef helper(n: int) -> int:\n  return n\nclass P(NamedTuple):\n  a : int\n";
    let library = parse_library(&Source::new("code/__torch__.py", text)).unwrap();
    let [Item::Class(class), Item::Def(_), Item::Class(pair)] = &library.items[..] else {
        panic!("{library}")
    };
    assert_eq!(class.base.as_ref().unwrap().to_string(), "(variable (ident Module))");
    assert_eq!(class.body.len(), 4);
    let StmtKind::Def(method) = &class.body[3].kind else { panic!("{class}") };
    assert_eq!(method.decl.params[1].annotation.as_ref().unwrap().to_string(), "(variable (ident int))");
    assert!(matches!(pair.body[0].kind, StmtKind::Assign { value: None, .. }));
    let error = parse_library(&Source::new("code/__torch__.py", "x = 3\n")).unwrap_err();
    assert_eq!(error.message(), "Unexpected token in code import: ident");
}

#[test]
fn types_are_expressions() {
    let read = |text| parse_type(&Source::new("<string>", text)).unwrap().span.text().to_string();
    assert_eq!(read("Dict[str, Optional[Tensor]]"), "Dict[str, Optional[Tensor]]");
    assert_eq!(read("int | None\n"), "int | None");
    assert!(parse_type(&Source::new("<string>", "int int")).is_err());
}

/// The places that PyTorch marks (or names in graphs) for each kind of node.
#[test]
fn places() {
    for (text, place) in [
        ("(a + b)", "a + b"),
        ("(a, b,)", "a, b"),
        ("[a, b]", "[a, b"),
        ("{a: b}", "a: b"),
        ("f(a, b=c)", "f(a, b=c"),
        ("f()", "f("),
        ("a[b]", "a[b]"),
        ("a[b , ]", "a[b "),
        ("-a", "-a"),
        ("-1", "1"),
        ("'a' 'b'", "'a'"),
        ("a if b else c", "a if b else c"),
        ("[a for b in c]", "a for b in c"),
        ("a.b", "a.b"),
    ] {
        let expr = parse_expr(&Source::new("<string>", text)).unwrap();
        assert_eq!(expr.span.text(), place, "{text}");
    }
    let text = "def f(a, b):\n  if a:\n    pass\n  return b\n";
    let Item::Def(def) = module(text).unwrap().items.remove(0) else { panic!() };
    assert_eq!(def.span.text(), "f(a, b):\n  if a:\n    pass\n  return b");
    assert_eq!(def.decl.span.text(), "(a, b):");
    assert_eq!(def.body[0].span.text(), "if a:\n    pass\n  return");
}

/// First lines of PyTorch's messages.
#[test]
fn refusals() {
    for (text, message) in [
        ("x y", "expected newline but found 'ident' here"),
        ("x = = 3", "expected ident but found '=' here"),
        ("x: int y", "expected newline but found 'ident' here"),
        ("if x: pass", "expected indent but found 'pass' here"),
        ("if x", "expected : but found 'newline' here"),
        ("(x = 3", "expected ) but found '=' here"),
        ("(a, = 3)", "expected ) but found '=' here"),
        ("[y z]", "expected ] but found 'ident' here"),
        ("{y}", "expected : but found '}' here"),
        ("{y: z w}", "expected } but found 'ident' here"),
        ("{y: z,}", "expected ident but found '}' here"),
        ("y[a b]", "expected ] but found 'ident' here"),
        ("y[a:b:c:d]", "expected ] but found ':' here"),
        ("f(a=)", "expected ident but found ')' here"),
        ("y if z", "expected else but found 'newline' here"),
        ("[y for z w]", "expected in but found 'ident' here"),
        ("[y for z in w if v]", "expected else but found ']' here"),
        ("for x y", "expected in but found 'ident' here"),
        ("y..z", "expected ident but found '.' here"),
        ("+y", "expected ident but found '+' here"),
        ("f'a'", "expected newline but found 'string_literal' here"),
        ("1_000", "expected newline but found 'ident' here"),
        ("x = 3 # type: int", "expected newline but found 'type comment' here"),
        ("y $ z", "expected a valid token but found ' ' here"),
        ("import y", "expected ident but found 'import' here"),
        ("class A: pass", "expected ident but found 'class' here"),
        ("def g(x y): pass", "expected ) but found 'ident' here"),
        ("def g(**x): pass", "expected ident but found 'pow operator' here"),
        ("def g(*, *): pass", "expected ident but found '*' here"),
        ("def g: pass", "expected ( but found ':' here"),
        ("a = b: int = 3", "expected newline but found ':' here"),
        ("a: int = 3 = 4", "Annotated multiple assignment is not supported in python"),
        ("a, b += 1", " augmented assignment can only have one LHS expression"),
        ("[x for y in z, 3]", " expected a single list comprehension within '[' , ']'"),
        ("x = '\\q'", " ill formed octal specifier"),
        ("x = '\\x41'", "unsupported hex specifier"),
        ("x = '\\q'\ny y", " ill formed octal specifier"),
        ("a, b += 1\ny y", " augmented assignment can only have one LHS expression"),
        ("y y\na, b += 1", "expected newline but found 'ident' here"),
        ("x = '\\377'", "string that is not valid UTF-8"),
    ] {
        assert_eq!(body(text), message, "{text}");
    }
    for (text, message) in [
        ("x", "expected def but found 'ident' here:\nx"),
        ("def", "expected ident but found 'eof' here:\n  File \"<string>\", line 1\ndef"),
        (
            "def f():\n  pass",
            "expected newline but found 'eof' here:\n  File \"<string>\", line 2\ndef f():\n  pass",
        ),
        (
            "def f(x):\n  # type: (int, int) -> int\n  return x\n",
            "\nNumber of type annotations (2) did not match the number of function parameters (1):\n  File \"<string>\", line 1\ndef f(x):\n     ~~~~ <--- HERE\n  # type: (int, int) -> int\n  return x\n",
        ),
    ] {
        assert_eq!(render(&module(text).unwrap_err()), message, "{text}");
    }
}

/// Where PyTorch takes `not int(x)` for `not in` and `t(x)`, and `- -3` for a broken number.
#[test]
fn accidents_are_not_copied() {
    assert!(body("return not int(1)").starts_with("(return (not (apply"));
    assert_eq!(body("return - -3"), "(return (const 3))");
}

/// Every bracket 200 levels deep, whole, cut off and with nonsense inside: a grammar that tries
/// alternatives over again would not come back.
#[test]
fn depth_takes_linear_time() {
    let pairs = [
        ("(", ")"),
        ("[", "]"),
        ("{1: ", "}"),
        ("{", ": 1}"),
        ("f(", ")"),
        ("f(a=", ")"),
        ("x[", "]"),
        ("x[1:", "]"),
        ("(1, ", ")"),
        ("[a for b in ", "]"),
        ("a if ", " else c"),
        ("-", ""),
        ("not ", ""),
        ("(lambda ", ")"),
    ];
    let begin = Instant::now();
    for (open, close) in pairs {
        for depth in [200, 5000] {
            let whole = format!("{}y{}", open.repeat(depth), close.repeat(depth));
            let result = parse_expr(&Source::new("<string>", whole));
            match depth {
                200 if !open.contains("lambda") => {
                    assert_eq!(result.err().map(|e| e.message().to_string()), None, "{open}")
                }
                5000 if !open.contains("lambda") => {
                    assert_eq!(result.unwrap_err().kind(), ErrorKind::Unsupported, "{open}");
                }
                _ => {}
            }
            for inside in ["", "y z", "$"] {
                let broken = format!("{}{inside}", open.repeat(depth));
                assert!(parse_expr(&Source::new("<string>", broken)).is_err());
            }
        }
    }
    assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
}

#[test]
fn height_is_bounded_and_length_is_not() {
    assert!(expr(&vec!["a"; 400].join(" + ")).starts_with("(+"));
    assert!(expr(&vec!["a"; 600].join(" + ")).contains("nested more than 500 levels"));
    assert!(expr(&format!("a{}", ".b".repeat(10_000))).contains("nested more than 500 levels"));
    assert!(expr(&vec!["a"; 10_000].join(" ** ")).contains("nested more than 500 levels"));
    assert!(expr(&format!("[{}]", "a, ".repeat(10_000))).starts_with("(list-literal"));
    let chain = format!("if 1:\n  pass\n{}", "elif 2:\n  pass\n".repeat(600));
    assert!(body(&chain).contains("nested more than 500 levels"));
    let deep: String = (0..2000).map(|i| format!("{}if 1:\n", " ".repeat(i + 1))).collect();
    let error = module(&format!("def f():\n{deep}")).unwrap_err();
    assert!(error.message().contains("nested more than 100 levels"), "{error}");
}

/// Pieces that make programs that are nearly right.
fn soup() -> impl Strategy<Value = String> {
    let words = [
        "def f(x):\n",
        "def ",
        "if ",
        "x",
        "else",
        ":\n  ",
        "\n",
        "    ",
        "  ",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ",",
        ":",
        "=",
        "+=",
        "*",
        "**",
        "-",
        "->",
        "1",
        "0x",
        "1.5e",
        "'",
        "\"",
        "'''",
        "\\",
        "\\\n",
        "#",
        "# type: ",
        "for ",
        " in ",
        " not in ",
        " is not ",
        "not ",
        "lambda",
        "class ",
        "import ",
        "return ",
        "é",
        "\0",
        "\t",
        "\r\n",
        "...",
        ";",
        "$",
        "with ",
        " as ",
        "x.y",
        "f(",
        "del ",
        "assert ",
        "\u{2028}",
        "→",
        "←",
        "↵",
        "`",
    ];
    prop::collection::vec(prop::sample::select(words.to_vec()), 0..60).prop_map(|words| words.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_text_panics(text in soup(), bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        for text in [text.clone(), format!("def f(x):\n  {text}"), String::from_utf8_lossy(&bytes).into_owned()] {
            let source = Source::new("<string>", text);
            for result in [parse_module(&source), parse_library(&source)] {
                match result {
                    Ok(module) => prop_assert!(module.to_string().len() < 1 << 20),
                    Err(error) => prop_assert!(!render(&error).is_empty()),
                }
            }
            let _ = parse_expr(&source).map_err(|error| render(&error));
        }
    }
}
