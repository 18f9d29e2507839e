/* Every function of flambeau.h from C99: answers, refusals, memory. */
#include "flambeau.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                    \
  do {                                                                                      \
    if (!(condition)) {                                                                     \
      fprintf(stderr, "line %d: %s (%s)\n", __LINE__, #condition, flambeau_last_error());   \
      exit(1);                                                                              \
    }                                                                                       \
  } while (0)

static int released = 0;

static void release(void *context) {
  released += 1;
  free(context);
}

static int says(const char *part) { return strstr(flambeau_last_error(), part) != NULL; }

static const char *PROGRAM =
    "def scale(x: Tensor, by: float) -> Tensor:\n"
    "    return torch.relu(x) * by\n"
    "def grow(x: Tensor) -> int:\n"
    "    x.add_(1)\n"
    "    return x.numel()\n"
    "def twice(x: Dict[str, int], names: List[str]) -> Dict[str, int]:\n"
    "    for name in names:\n"
    "        x[name] = 2 * x.get(name, 1)\n"
    "    return x\n"
    "def all(b: bool, s: str, t: Tuple[int, float], n: Optional[int]) -> Tuple[bool, str, float, Optional[int]]:\n"
    "    return not b, s + '!', t[0] + t[1], n\n"
    "def fails(x: Tensor) -> Tensor:\n"
    "    return x.view([7])\n"
    "def same(x: Tensor) -> Tensor:\n"
    "    return x\n"
    "def endless(n: int) -> int:\n"
    "    while n > 0:\n"
    "        n += 1\n"
    "    return n\n"
    "def wide(n: int) -> Tensor:\n"
    "    return torch.zeros(n)\n";

static flambeau_value *call(flambeau_module *m, const char *name, flambeau_value *a, flambeau_value *b) {
  const flambeau_value *arguments[2];
  flambeau_value *out;
  arguments[0] = a;
  arguments[1] = b;
  out = flambeau_module_call(m, name, arguments, b ? 2 : 1);
  flambeau_value_free(a);
  flambeau_value_free(b);
  return out;
}

static flambeau_value *floats(size_t count, float start, float **where) {
  float *memory = malloc(count * sizeof(float));
  int64_t size = (int64_t)count;
  flambeau_array array;
  size_t n;
  for (n = 0; n < count; ++n) memory[n] = start + (float)n;
  array.data = memory;
  array.dtype = FLAMBEAU_FLOAT32;
  array.rank = 1;
  array.sizes = &size;
  array.strides = NULL;
  if (where) *where = memory;
  return flambeau_tensor(&array, release, memory);
}

static void tensors(flambeau_module *m) {
  float *memory = NULL;
  flambeau_value *x = floats(4, -1.0f, &memory), *y, *by;
  flambeau_array seen;
  const flambeau_value *arguments[1];
  double number = 0;
  int64_t whole = 0;
  int before;
  CHECK(x && flambeau_value_kind(x) == FLAMBEAU_TENSOR && flambeau_length(x) == 4);
  CHECK(flambeau_as_array(x, &seen) == 0 && seen.data == memory);
  arguments[0] = x;
  y = flambeau_module_call(m, "grow", arguments, 1);
  CHECK(y && flambeau_as_int(y, &whole) == 0 && whole == 4 && memory[0] == 0.0f && memory[3] == 3.0f);
  flambeau_value_free(y);
  y = flambeau_module_call(m, "same", arguments, 1);
  CHECK(y && flambeau_as_array(y, &seen) == 0 && seen.data == memory);
  before = released;
  flambeau_value_free(x);
  CHECK(released == before);
  flambeau_value_free(y);
  CHECK(released == before + 1);

  by = flambeau_double(2.0);
  y = call(m, "scale", floats(3, -1.0f, NULL), by);
  CHECK(y && flambeau_as_array(y, &seen) == 0 && seen.rank == 1 && seen.sizes[0] == 3 && seen.strides[0] == 1);
  CHECK(((float *)seen.data)[0] == 0.0f && ((float *)seen.data)[2] == 2.0f && seen.dtype == FLAMBEAU_FLOAT32);
  CHECK(strstr(flambeau_as_string(y, NULL), "CPUFloatType{3}") != NULL);
  CHECK(flambeau_as_double(y, &number) == -1 && says("cannot be converted"));
  flambeau_value_free(y);
  CHECK(call(m, "fails", floats(3, 0.0f, NULL), NULL) == NULL && says("shape '[7]' is invalid") && says("fails"));
}

static void refusals(void) {
  int64_t size = 4, negative = -4;
  char room[17];
  int before = released;
  flambeau_array array;
  flambeau_value *items[2];
  memset(room, 0, sizeof room);
  array.data = room;
  array.dtype = FLAMBEAU_FLOAT32;
  array.rank = 1;
  array.sizes = &size;
  array.strides = NULL;
  CHECK(flambeau_tensor(NULL, NULL, NULL) == NULL && says("NULL"));
  array.dtype = 77;
  CHECK(flambeau_tensor(&array, release, malloc(1)) == NULL && says("77") && released == before + 1);
  array.dtype = FLAMBEAU_FLOAT32;
  array.sizes = &negative;
  CHECK(flambeau_tensor(&array, release, malloc(1)) == NULL && released == before + 2);
  array.sizes = &size;
  array.data = NULL;
  CHECK(flambeau_tensor(&array, NULL, NULL) == NULL && says("NULL"));
  array.data = room;
  array.rank = -1;
  CHECK(flambeau_tensor(&array, NULL, NULL) == NULL && says("-1"));
  CHECK(flambeau_load("no/such/file.pt") == NULL && says("no/such/file.pt"));
  CHECK(flambeau_load(NULL) == NULL && flambeau_load_bytes(NULL, 3, "x") == NULL);
  CHECK(flambeau_load_bytes("PK\003\004 and nothing", 15, "damaged.pt") == NULL);
  CHECK(flambeau_load_bytes("def f(:\n", 8, "f.py") == NULL && says("f.py"));
  CHECK(flambeau_module_call(NULL, "softmax", NULL, 0) == NULL && says("not the name of an operator"));
  CHECK(flambeau_module_call(NULL, "aten::nothing_of_that_name", NULL, 0) == NULL);
  CHECK(flambeau_module_call(NULL, NULL, NULL, 0) == NULL && flambeau_module_save(NULL, "x") == -1);
  CHECK(flambeau_module_train(NULL, 1) == -1 && flambeau_module_attribute(NULL, "x") == NULL);
  CHECK(flambeau_value_kind(NULL) == FLAMBEAU_NONE && flambeau_length(NULL) == -1);
  CHECK(flambeau_item(NULL, 0) == NULL && flambeau_as_string(NULL, NULL) == NULL);
  CHECK(flambeau_string("\xff", 1) == NULL && says("UTF-8"));
  CHECK(flambeau_from_dlpack(NULL) == NULL && flambeau_to_dlpack(NULL) == NULL);
  items[0] = flambeau_int(1);
  items[1] = flambeau_double(2.5);
  CHECK(flambeau_collect(FLAMBEAU_LIST, (const flambeau_value *const *)items, 2) == NULL && says("int and float"));
  CHECK(flambeau_collect(FLAMBEAU_DICT, (const flambeau_value *const *)items, 1) == NULL && says("alternating"));
  CHECK(flambeau_collect(FLAMBEAU_TENSOR, NULL, 0) == NULL);
  CHECK(flambeau_as_int(items[1], NULL) == -1 && flambeau_as_int(items[0], NULL) == -1);
  flambeau_value_free(items[0]);
  flambeau_value_free(items[1]);
  flambeau_value_free(NULL);
  flambeau_module_free(NULL);
}

static void containers(flambeau_module *m) {
  flambeau_value *pair[4], *out, *item;
  const flambeau_value *arguments[4];
  int64_t whole = 0;
  double number = 0;
  size_t size = 0;
  int n;
  pair[0] = flambeau_string("a\0b", 3);
  pair[1] = flambeau_int(5);
  arguments[0] = flambeau_collect(FLAMBEAU_DICT, (const flambeau_value *const *)pair, 2);
  pair[2] = flambeau_string("new", 3);
  pair[3] = NULL;
  arguments[1] = flambeau_collect(FLAMBEAU_LIST, (const flambeau_value *const *)(pair + 2), 1);
  out = flambeau_module_call(m, "twice", arguments, 2);
  CHECK(out && flambeau_value_kind(out) == FLAMBEAU_DICT && flambeau_length(out) == 2);
  item = flambeau_item(out, 0);
  CHECK(memcmp(flambeau_as_string(item, &size), "a\0b", 4) == 0 && size == 3);
  flambeau_value_free(item);
  item = flambeau_item(out, 3);
  CHECK(item && flambeau_as_int(item, &whole) == 0 && whole == 2);
  flambeau_value_free(item);
  CHECK(flambeau_item(out, 4) == NULL && says("no item 4"));
  flambeau_value_free(out);
  for (n = 0; n < 2; ++n) flambeau_value_free((flambeau_value *)arguments[n]);
  for (n = 0; n < 3; ++n) flambeau_value_free(pair[n]);

  pair[0] = flambeau_int(2);
  pair[1] = flambeau_double(0.5);
  arguments[0] = flambeau_bool(0);
  arguments[1] = flambeau_string("s", 1);
  arguments[2] = flambeau_collect(FLAMBEAU_TUPLE, (const flambeau_value *const *)pair, 2);
  arguments[3] = flambeau_collect(FLAMBEAU_NONE, NULL, 0);
  out = flambeau_module_call(m, "all", arguments, 4);
  CHECK(out && flambeau_value_kind(out) == FLAMBEAU_TUPLE && flambeau_length(out) == 4);
  CHECK(strcmp(flambeau_as_string(out, NULL), "(True, s!, 2.5, None)") == 0);
  item = flambeau_item(out, 0);
  CHECK(flambeau_value_kind(item) == FLAMBEAU_BOOL && flambeau_as_int(item, &whole) == 0 && whole == 1);
  flambeau_value_free(item);
  item = flambeau_item(out, 2);
  CHECK(flambeau_value_kind(item) == FLAMBEAU_DOUBLE && flambeau_as_double(item, &number) == 0 && number == 2.5);
  CHECK(flambeau_as_int(item, &whole) == -1 && says("int"));
  flambeau_value_free(item);
  flambeau_value_free(out);
  for (n = 0; n < 4; ++n) flambeau_value_free((flambeau_value *)arguments[n]);
  for (n = 0; n < 2; ++n) flambeau_value_free(pair[n]);
}

static void operators_and_dlpack(void) {
  const flambeau_value *arguments[3];
  flambeau_value *x = floats(3, 1.0f, NULL), *y, *back;
  flambeau_array first, second;
  int before = released;
  arguments[0] = x;
  arguments[1] = flambeau_int(0);
  arguments[2] = flambeau_collect(FLAMBEAU_NONE, NULL, 0);
  y = flambeau_module_call(NULL, "aten::softmax", arguments, 3);
  CHECK(y && flambeau_as_array(y, &first) == 0 && ((float *)first.data)[2] > 0.66f);
  flambeau_value_free(y);
  CHECK(flambeau_as_array(x, &first) == 0);
  back = flambeau_from_dlpack(flambeau_to_dlpack(x));
  CHECK(back && flambeau_as_array(back, &second) == 0 && first.data == second.data);
  flambeau_value_free(x);
  flambeau_value_free((flambeau_value *)arguments[1]);
  flambeau_value_free((flambeau_value *)arguments[2]);
  CHECK(released == before);
  flambeau_value_free(back);
  CHECK(released == before + 1);
}

static int reached(const char *limit) {
  return flambeau_last_limit() != NULL && strcmp(flambeau_last_limit(), limit) == 0;
}

static void limits(flambeau_module *m) {
  flambeau_limits outer, inner;
  flambeau_scope *a, *b;
  flambeau_value *y;
  int64_t whole = 0;
  memset(&outer, 0, sizeof outer);
  memset(&inner, 0, sizeof inner);
  outer.memory = 1 << 20;
  outer.seconds = 100;
  inner.steps = 1000000;
  CHECK(flambeau_limits_begin(NULL) == NULL && says("NULL") && flambeau_last_limit() == NULL);
  a = flambeau_limits_begin(&outer);
  b = flambeau_limits_begin(&inner);
  CHECK(a && b);
  CHECK(call(m, "endless", flambeau_int(1), NULL) == NULL && reached("steps"));
  CHECK(says("the limit of 1000000 steps was reached") && says("program.py:1"));
  flambeau_scope_free(b);
  /* The outer one holds still; below it answers are the same. */
  CHECK(call(m, "wide", flambeau_int(1 << 20), NULL) == NULL && reached("memory") && says("1.0 MiB"));
  y = call(m, "wide", flambeau_int(1 << 10), NULL);
  CHECK(y && flambeau_length(y) == 1 << 10);
  flambeau_value_free(y);
  CHECK(flambeau_load("no/such/file.pt") == NULL && flambeau_last_limit() == NULL);
  flambeau_scope_cancel(a);
  CHECK(call(m, "wide", flambeau_int(1), NULL) == NULL && reached("cancel"));
  flambeau_scope_free(a);
  y = call(m, "wide", flambeau_int(1 << 20), NULL);
  CHECK(y && flambeau_length(y) == 1 << 20);
  flambeau_value_free(y);
  y = call(m, "endless", flambeau_int(0), NULL);
  CHECK(y && flambeau_as_int(y, &whole) == 0 && whole == 0);
  flambeau_value_free(y);
  inner.seconds = -1;
  CHECK(flambeau_limits_begin(&inner) == NULL && says("-1"));
  flambeau_scope_cancel(NULL);
  flambeau_scope_free(NULL);
}

static void modules(const char *archive, const char *out) {
  flambeau_module *m = flambeau_load(archive), *again;
  flambeau_value *training, *weight;
  int64_t on = -1;
  CHECK(m);
  CHECK(flambeau_module_train(m, 1) == 0);
  training = flambeau_module_attribute(m, "sub_module.training");
  CHECK(training && flambeau_as_int(training, &on) == 0 && on == 1);
  flambeau_value_free(training);
  CHECK(flambeau_module_train(m, 0) == 0);
  CHECK(flambeau_module_attribute(m, "linear.nothing") == NULL && says("nothing"));
  CHECK(flambeau_module_save(m, out) == 0);
  weight = flambeau_module_attribute(m, "linear.weight");
  flambeau_module_free(m);
  CHECK(weight && flambeau_length(weight) == 6);
  flambeau_value_free(weight);
  again = flambeau_load(out);
  CHECK(again);
  flambeau_module_free(again);
  CHECK(flambeau_module_save(NULL, out) == -1);
}

int main(int argc, char **argv) {
  flambeau_module *m = flambeau_load_bytes(PROGRAM, strlen(PROGRAM), "program.py");
  CHECK(argc == 3 && m);
  CHECK(flambeau_module_call(m, "nothing", NULL, 0) == NULL && says("nothing"));
  CHECK(flambeau_module_attribute(m, "x") == NULL && says("no attributes"));
  tensors(m);
  containers(m);
  refusals();
  operators_and_dlpack();
  limits(m);
  flambeau_module_free(m);
  modules(argv[1], argv[2]);
  puts("ok");
  return 0;
}
