/* A step of an LSTM cell from C: cc -Icapi/include capi/examples/lstm.c -lflambeau */
#include <flambeau.h>

#include <stdio.h>

static flambeau_value *filled(float *memory, int64_t rows, int64_t columns, float value) {
  int64_t sizes[2], n;
  flambeau_array array;
  sizes[0] = rows;
  sizes[1] = columns;
  for (n = 0; n < rows * columns; ++n) memory[n] = value;
  array.data = memory;
  array.dtype = FLAMBEAU_FLOAT32;
  array.rank = 2;
  array.sizes = sizes;
  array.strides = NULL;
  return flambeau_tensor(&array, NULL, NULL);
}

int main(int argc, char **argv) {
  float x[3 * 12], h[3 * 16], c[3 * 16];
  flambeau_module *cell = flambeau_load(argc > 1 ? argv[1] : "examples/lstm_cell.pt");
  const flambeau_value *arguments[3];
  flambeau_value *states = NULL, *hidden;
  flambeau_array array;
  if (cell != NULL) {
    arguments[0] = filled(x, 3, 12, 0.5f);
    arguments[1] = filled(h, 3, 16, 0.0f);
    arguments[2] = filled(c, 3, 16, 0.0f);
    states = flambeau_module_call(cell, "forward", arguments, 3);
  }
  if (states == NULL) {
    fprintf(stderr, "%s\n", flambeau_last_error());
    return 1;
  }
  hidden = flambeau_item(states, 0);
  flambeau_as_array(hidden, &array);
  printf("%d dimensions, the first element is %.4f\n", array.rank, ((float *)array.data)[0]);
  flambeau_value_free(hidden);
  flambeau_value_free(states);
  flambeau_value_free((flambeau_value *)arguments[0]);
  flambeau_value_free((flambeau_value *)arguments[1]);
  flambeau_value_free((flambeau_value *)arguments[2]);
  flambeau_module_free(cell);
  return 0;
}
