//! Malformed programs of `torch.export`: each is refused, and says why.

use super::build::{build, item};
use crate::dialects::Registry;
use crate::frontend::archive::{Archive, load, outline};
use crate::ir::PrintOptions;
use serde_json::{Value as Json, json};

fn meta(sizes: &[i64]) -> Json {
    let sizes: Vec<Json> = sizes.iter().map(|size| json!({ "as_int": size })).collect();
    let strides: Vec<Json> = sizes.iter().map(|_| json!({ "as_int": 1 })).collect();
    json!({
        "dtype": 7, "sizes": sizes, "requires_grad": false, "device": { "type": "cpu", "index": null },
        "strides": strides, "storage_offset": { "as_int": 0 }, "layout": 7,
    })
}

/// `forward(x) = (x + w, y)` with a parameter `m.w`, which stands for `Adder` exported with three numbers.
fn program() -> Json {
    let leaf = json!({ "type": null, "context": null, "children_spec": [] });
    let tuple =
        |children: Json| json!({ "type": "builtins.tuple", "context": "null", "children_spec": children });
    let dict = json!({ "type": "builtins.dict", "context": "[]", "children_spec": [] });
    let tensor = |name: &str| json!({ "as_tensor": { "name": name } });
    json!({
        "graph_module": {
            "graph": {
                "inputs": [tensor("p"), tensor("x")],
                "outputs": [tensor("sum"), tensor("x")],
                "nodes": [{
                    "target": "torch.ops.aten.add.Tensor",
                    "inputs": [{ "name": "self", "arg": tensor("x") }, { "name": "other", "arg": tensor("p") }],
                    "outputs": [tensor("sum")],
                    "metadata": { "stack_trace": "File \"m.py\", line 7, in forward", "nn_module_stack": "L,m,Adder" },
                }],
                "tensor_values": { "x": meta(&[3]) },
            },
            "signature": {
                "input_specs": [
                    { "parameter": { "arg": { "name": "p" }, "parameter_name": "m.w" } },
                    { "user_input": { "arg": tensor("x") } },
                ],
                "output_specs": [
                    { "user_output": { "arg": tensor("sum") } },
                    { "user_output": { "arg": tensor("x") } },
                ],
            },
            "module_call_graph": [{ "fqn": "", "signature": {
                "inputs": [], "outputs": [], "forward_arg_names": ["x"],
                "in_spec": json!([1, tuple(json!([tuple(json!([leaf])), dict]))]).to_string(),
                "out_spec": json!([1, tuple(json!([leaf, leaf]))]).to_string(),
            } }],
        },
        "schema_version": { "major": 8, "minor": 20 },
        "range_constraints": {},
    })
}

fn weights() -> Json {
    json!({ "config": { "m.w": {
        "path_name": "weight_0", "is_param": true, "use_pickle": false, "tensor_meta": meta(&[3]),
    } } })
}

fn archive(program: &str, weights: &str) -> Result<Archive, String> {
    let file = build(&[
        item("m/models/model.json", program),
        item("m/data/weights/model_weights_config.json", weights),
        item("m/data/weights/weight_0", vec![0; 12]),
        item("m/version", "6\n"),
    ]);
    Archive::from_bytes(file.bytes).map_err(|error| error.message().to_string())
}

/// The graph of a program, or why there is none.
fn built(program: &str, weights: &str) -> Result<String, String> {
    let model =
        load(&Registry::builtin(), archive(program, weights)?).map_err(|e| e.message().to_string())?;
    let function = model.module.functions.values().next().ok_or("no function")?;
    Ok(function.graph.to_text(&PrintOptions::default()))
}

#[test]
fn a_program_is_a_graph_with_its_places_and_checks() {
    let text = built(&program().to_string(), &weights().to_string()).expect("a program");
    for part in ["prim::GetAttr[name=\"m\"]", "prim::GetAttr[name=\"w\"]", "x.size()[0] == 3", "# m.py:7:0"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let archive = archive(&program().to_string(), &weights().to_string()).expect("an archive");
    let outline = outline(&archive).expect("an outline");
    assert_eq!((outline[0].arguments.as_slice(), outline[0].operators.len()), (&["x".to_string()][..], 1));
    assert_eq!(outline[0].tensors[0].sizes, [3]);
}

/// What a program becomes if the value at a place is another.
fn changed(mut json: Json, place: &str, value: Json) -> String {
    *json.pointer_mut(place).expect("a place of the program") = value;
    json.to_string()
}

const GRAPH: &str = "/graph_module/graph";
const NODE: &str = "/graph_module/graph/nodes/0";
const CALL: &str = "/graph_module/module_call_graph/0/signature";

fn refused(place: &str, value: Json, says: &str) {
    let error = built(&changed(program(), place, value), &weights().to_string()).expect_err(says);
    assert!(error.contains(says), "{place}: {error}");
}

#[test]
fn foreign_programs_are_refused_by_name() {
    let node = |rest: &str| format!("{NODE}{rest}");
    refused("/schema_version/major", json!(9), "version 9.20");
    refused("/schema_version", json!({}), "missing field");
    refused("/graph_module", json!(null), "invalid type");
    refused(&node("/target"), json!("torch.ops.aten.nothing.default"), "aten::nothing");
    refused(&node("/target"), json!("torch.ops.aten.add.Nothing"), "aten::add");
    refused(&node("/target"), json!("torch.ops.aten"), "not an operator");
    refused(&node("/target"), json!("torch.ops.a.b.c.d"), "not an operator");
    refused(&node("/target"), json!("os.system"), "os.system");
    refused(&node("/target"), json!("_operator.add"), "does not take");
    refused(&node("/target"), json!("torch.ops.higher_order.flex_attention"), "higher-order");
    refused(&node("/target"), json!("torch.ops.higher_order.cond"), "higher-order");
    refused(&node("/inputs/0/name"), json!("nothing"), "no argument `nothing`");
    refused(&node("/inputs/0/arg"), json!({ "as_tensor": { "name": "y" } }), "no value `y`");
    refused(&node("/inputs/0/arg"), json!({ "as_new_kind": 1 }), "as_new_kind");
    refused(&node("/inputs/0/arg"), json!({ "as_custom_obj": { "name": "o", "class_fqn": "a.B" } }), "a.B");
    refused(&node("/inputs/0/arg"), json!({ "as_scalar_type": 99 }), "dtype with number 99");
    refused(&node("/inputs/0/arg"), json!({ "as_layout": 1 }), "layout");
    refused(&node("/inputs/0/arg"), json!({ "as_memory_format": 9 }), "memory format");
    refused(&node("/inputs/0/arg"), json!({ "as_device": { "type": "no device" } }), "device");
    refused(&node("/inputs/0/arg"), json!({ "as_float": "much" }), "float");
    refused(&node("/inputs/0/arg"), json!({ "as_string_to_argument": {} }), "dictionary");
    refused(&node("/inputs"), json!([]), "lacks its argument");
    refused(
        &node("/outputs"),
        json!([{ "as_tensor": { "name": "a" } }, { "as_tensor": { "name": "b" } }]),
        "2 results",
    );
    refused(&node("/outputs"), json!([{ "as_int": 3 }]), "tensor");
}

#[test]
fn what_does_not_fit_together_is_refused() {
    let place = |start: &str, rest: &str| format!("{start}{rest}");
    let spec = "/graph_module/signature";
    refused(&place(GRAPH, "/inputs"), json!([]), "0 inputs, and its signature 2");
    refused(&place(spec, "/input_specs/0"), json!({ "new": {} }), "new");
    refused(&place(spec, "/input_specs/0/parameter/parameter_name"), json!("other"), "`other`");
    refused(&place(spec, "/input_specs/0/parameter/parameter_name"), json!(".".repeat(1000)), "parts");
    refused(
        &place(spec, "/input_specs/0"),
        json!({ "custom_obj": { "custom_obj_name": "o" } }),
        "custom object `o`",
    );
    refused(&place(spec, "/output_specs/0"), json!({ "token": {} }), "gradients or tokens");
    refused(&place(spec, "/output_specs/0"), json!({ "loss_output": { "arg": { "name": "sum" } } }), "loss");
    let mutation = json!({ "buffer_mutation": { "arg": { "name": "sum" }, "buffer_name": "none" } });
    refused(&place(spec, "/output_specs/0"), mutation, "no attribute `none`");
    refused(&place(spec, "/output_specs"), json!([]), "too many leaves");
    refused(&place(spec, "/input_specs/1"), json!({ "token": {} }), "too many leaves");
    refused("/graph_module/module_call_graph", json!([]), "how it is called");
    refused(&place(CALL, "/in_spec"), json!("["), "a tree of arguments");
    refused(
        &place(CALL, "/in_spec"),
        json!("[2, {\"type\": null, \"context\": null, \"children_spec\": []}]"),
        "version 2",
    );
    refused(
        &place(CALL, "/in_spec"),
        json!("[1, {\"type\": null, \"context\": null, \"children_spec\": []}]"),
        "not a tuple",
    );
    refused(&place(CALL, "/in_spec"), json!("[1, ".repeat(100_000)), "a tree of arguments");
    refused(&place(CALL, "/forward_arg_names"), json!(["x y"]), "cannot be called `x y`");
    refused(&place(CALL, "/forward_arg_names"), json!(["self"]), "cannot be called `self`");
    let foreign = json!([1, { "type": "a.B", "context": "null", "children_spec": [] }]).to_string();
    refused(&place(CALL, "/out_spec"), json!(foreign), "the class `a.B`");
    let named =
        json!([1, { "type": "collections.namedtuple", "context": "\"P\"", "children_spec": [] }]).to_string();
    refused(&place(CALL, "/out_spec"), json!(named), "fields of `P`");
}

#[test]
fn tensors_must_lie_in_their_entries() {
    let refused = |place: &str, value: Json, says: &str| {
        let place = format!("/config/m.w{place}");
        let error = built(&program().to_string(), &changed(weights(), &place, value)).expect_err(says);
        assert!(error.contains(says), "{place}: {error}");
    };
    refused("/path_name", json!("weight_1"), "weight_1");
    refused("/path_name", json!("../../models/model.json"), "no entry");
    refused("/use_pickle", json!(true), "pickle");
    refused("/tensor_meta", json!(null), "pickle");
    refused("/tensor_meta/dtype", json!(0), "dtype with number 0");
    refused("/tensor_meta/layout", json!(2), "layout");
    refused("/tensor_meta/sizes/0", json!({ "as_int": 4 }), "`m.w`");
    refused("/tensor_meta/sizes/0", json!({ "as_int": i64::MAX }), "`m.w`");
    refused("/tensor_meta/sizes/0", json!({ "as_int": -1 }), "`m.w`");
    refused("/tensor_meta/sizes/0", json!({ "as_expr": { "expr_str": "s0" } }), "`s0`");
    refused("/tensor_meta/sizes", json!([]), "`m.w`");
    refused("/tensor_meta/strides/0", json!({ "as_int": i64::MAX }), "`m.w`");
    refused("/tensor_meta/storage_offset", json!({ "as_int": -1 }), "negative offset");
    refused("/tensor_meta/storage_offset", json!({ "as_int": 1 }), "`m.w`");
    refused("/tensor_meta/dtype", json!(8), "`m.w`");
}

#[test]
fn several_programs_and_big_endian_ones_are_named() {
    let text = program().to_string();
    let entries = |rest: &[(&str, &str)]| {
        let mut items = vec![item("m/version", "6\n")];
        items.extend(rest.iter().map(|(name, data)| item(name, *data)));
        let archive =
            Archive::from_bytes(build(&items).bytes).map_err(|error| error.message().to_string())?;
        load(&Registry::builtin(), archive).map(|_| ()).map_err(|error| error.message().to_string())
    };
    let several = entries(&[("m/models/a.json", &text), ("m/models/b.json", &text)]).expect_err("several");
    assert!(several.contains("2 exported programs: a, b"), "{several}");
    let big = entries(&[("m/models/a.json", &text), ("m/byteorder", "big")]).expect_err("big");
    assert!(big.contains("big-endian"), "{big}");
}
