/* Flambeau for C: saved TorchScript and torch.export programs, run without libtorch.
 *
 * Handles are pointers that a function of this file gave and that its `_free` takes back. A function that fails returns NULL
 * or -1 and leaves a message for `flambeau_last_error` of the same thread; no function ends the process. Any thread may
 * use any handle. Names end in the kind of thing that they work on; docs/c.md has programs.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef FLAMBEAU_H
#define FLAMBEAU_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FLAMBEAU_VERSION "0.1.0"

/* A loaded program: a module with its parameters, or functions. */
typedef struct flambeau_module flambeau_module;
/* A value of a program: a tensor, a number, a list. */
typedef struct flambeau_value flambeau_value;
/* Limits that hold for what a thread does. */
typedef struct flambeau_scope flambeau_scope;
/* DLPack's array, of its header `dlpack.h`. */
struct DLManagedTensorVersioned;

/* What a value is. */
typedef enum {
  FLAMBEAU_NONE = 0,
  FLAMBEAU_TENSOR = 1,
  FLAMBEAU_BOOL = 2,
  FLAMBEAU_INT = 3,
  FLAMBEAU_DOUBLE = 4,
  FLAMBEAU_STRING = 5,
  FLAMBEAU_LIST = 6,
  FLAMBEAU_TUPLE = 7,
  FLAMBEAU_DICT = 8,
  FLAMBEAU_OTHER = 9 /* objects, devices, complex numbers: only to be passed on and printed */
} flambeau_kind;

/* What the elements of a tensor are; the numbers are those of c10::ScalarType. */
typedef enum {
  FLAMBEAU_UINT8 = 0,
  FLAMBEAU_INT8 = 1,
  FLAMBEAU_INT16 = 2,
  FLAMBEAU_INT32 = 3,
  FLAMBEAU_INT64 = 4,
  FLAMBEAU_FLOAT16 = 5,
  FLAMBEAU_FLOAT32 = 6,
  FLAMBEAU_FLOAT64 = 7,
  FLAMBEAU_COMPLEX64 = 9,
  FLAMBEAU_COMPLEX128 = 10,
  FLAMBEAU_BOOLEAN = 11,
  FLAMBEAU_BFLOAT16 = 15
} flambeau_dtype;

/* Where the elements of a tensor are. */
typedef struct {
  void *data;             /* the element with all indices 0 */
  int dtype;              /* a flambeau_dtype, or another number of c10::ScalarType */
  int rank;
  const int64_t *sizes;   /* `rank` of them */
  const int64_t *strides; /* in elements; NULL, where arrays are given, for row-major order */
} flambeau_array;

/* What programs may use; 0 means no limit (of `depth` 4,000, of `forks` 100,000). */
typedef struct {
  uint64_t memory;   /* bytes of tensors, lists, dicts and text that live at one time */
  uint64_t steps;    /* instructions of the interpreter */
  double seconds;    /* from when the limits begin */
  uint64_t depth;    /* calls nested in each other */
  uint64_t output;   /* bytes printed */
  uint64_t warnings; /* warnings given */
  uint64_t forks;    /* forked tasks that have not ended */
} flambeau_limits;

/* Why the last call of this thread that failed did; with the place in the program and hints. Never NULL; good until the
 * next call. */
const char *flambeau_last_error(void);

/* ---- limits ---- */

/* Bounds all that this thread does from now on until the scope is freed, together: loading, calls, values that are made. At a
 * limit a call fails, with the limit and the place in the program as its message. Scopes nest, and all of them hold. Below
 * its limits a program answers as it does without. */
flambeau_scope *flambeau_limits_begin(const flambeau_limits *limits);

/* Ends the work that goes on under a scope, and lets none begin; any thread may call it. */
void flambeau_scope_cancel(const flambeau_scope *scope);

/* The limits hold no more. NULL is not an error. */
void flambeau_scope_free(flambeau_scope *scope);

/* The limit that the last call of this thread that failed had reached: "memory", "steps", "seconds", "depth", "output",
 * "warnings", "forks", or "cancel" where its scope was cancelled. NULL where it failed for another reason; good until the next call. */
const char *flambeau_last_limit(void);

/* ---- modules ---- */

/* Loads a file by what is in it: an archive of torch.jit.save, mobile bytecode, a .pt2 of torch.export, TorchScript source,
 * graph text. */
flambeau_module *flambeau_load(const char *path);

/* The same of `size` bytes in memory, which are copied; errors call them `name`. */
flambeau_module *flambeau_load_bytes(const void *bytes, size_t size, const char *name);

/* Writes an archive that torch.jit.load reads. 0, or -1. */
int flambeau_module_save(const flambeau_module *module, const char *path);

/* Calls a method of a module, of a submodule by its path ("encoder.forward"), or a function of a program. With NULL for the
 * module, calls an operator by its name: "aten::softmax", or "aten::ones(dtype=)" where the last arguments are given by
 * keyword. Arguments are converted as TorchScript converts them; they stay the caller's. */
flambeau_value *flambeau_module_call(const flambeau_module *module, const char *method,
                                     const flambeau_value *const *arguments, size_t count);

/* An attribute by its path: "training", "encoder.layer.weight". A tensor shares its elements with the module. */
flambeau_value *flambeau_module_attribute(const flambeau_module *module, const char *path);

/* Sets training mode, of submodules as well. 0, or -1. */
int flambeau_module_train(flambeau_module *module, int training);

/* NULL is not an error. */
void flambeau_module_free(flambeau_module *module);

/* ---- values from C ---- */

flambeau_value *flambeau_bool(int truth);
flambeau_value *flambeau_int(int64_t number);
flambeau_value *flambeau_double(double number);

/* A string of `size` bytes of UTF-8, which are copied. */
flambeau_value *flambeau_string(const char *text, size_t size);

/* A tensor over the caller's memory, without a copy. In-place operators of programs write to it. `release(context)` is
 * called once when neither the value nor anything that shares its elements needs the memory any more, perhaps by another
 * thread, and at once where the call fails; with NULL for `release` the caller keeps the memory for so long. */
flambeau_value *flambeau_tensor(const flambeau_array *array, void (*release)(void *), void *context);

/* The same of DLPack's array, which is taken over, whatever the answer. */
flambeau_value *flambeau_from_dlpack(struct DLManagedTensorVersioned *array);

/* A list or tuple of values, a dict of alternating keys and values, or None of nothing. Items stay the caller's. Items of a
 * list and values of a dict are of one type. */
flambeau_value *flambeau_collect(flambeau_kind kind, const flambeau_value *const *items, size_t count);

/* ---- values to C ---- */

flambeau_kind flambeau_value_kind(const flambeau_value *value);

/* An int, a bool, or a tensor of one element. 0, or -1. */
int flambeau_as_int(const flambeau_value *value, int64_t *out);

/* A number, a bool, or a tensor of one element. 0, or -1. */
int flambeau_as_double(const flambeau_value *value, double *out);

/* A string, or what print() writes of any other value; ends in a zero byte that `size` (NULL where it does not matter) does
 * not count. Good as long as the value. */
const char *flambeau_as_string(const flambeau_value *value, size_t *size);

/* Items of a list or tuple, entries of a dict, characters of a string, elements of a tensor; -1 of other values. */
int64_t flambeau_length(const flambeau_value *value);

/* An item of a list or tuple; of a dict, alternating keys and values. */
flambeau_value *flambeau_item(const flambeau_value *value, size_t index);

/* Where the elements of a tensor are; good as long as the value, and writing to them is seen by all who share them.
 * 0, or -1. */
int flambeau_as_array(const flambeau_value *value, flambeau_array *out);

/* A tensor as DLPack's array, without a copy; its deleter is the taker's to call. */
struct DLManagedTensorVersioned *flambeau_to_dlpack(const flambeau_value *value);

/* NULL is not an error. */
void flambeau_value_free(flambeau_value *value);

#ifdef __cplusplus
}
#endif
#endif
