// The same from Go: CGO_CFLAGS=-Icapi/include CGO_LDFLAGS=-lflambeau go run capi/examples/lstm.go
package main

// #include <flambeau.h>
// #include <stdlib.h>
import "C"

import (
	"fmt"
	"os"
	"unsafe"
)

func must[T any](handle *T) *T {
	if handle == nil {
		fmt.Fprintln(os.Stderr, C.GoString(C.flambeau_last_error()))
		os.Exit(1)
	}
	return handle
}

// full asks the library for its tensors, whose memory Go need not pin.
func full(rows, columns int64, value float64) *C.flambeau_value {
	size := [2]*C.flambeau_value{C.flambeau_int(C.int64_t(rows)), C.flambeau_int(C.int64_t(columns))}
	sizes := C.flambeau_collect(C.FLAMBEAU_LIST, (**C.flambeau_value)(unsafe.Pointer(&size[0])), 2)
	return call(nil, "aten::full", sizes, C.flambeau_double(C.double(value)))
}

// call frees its arguments.
func call(module *C.flambeau_module, name string, arguments ...*C.flambeau_value) *C.flambeau_value {
	text := C.CString(name)
	defer C.free(unsafe.Pointer(text))
	result := C.flambeau_module_call(module, text, (**C.flambeau_value)(unsafe.Pointer(&arguments[0])), C.size_t(len(arguments)))
	for _, argument := range arguments {
		C.flambeau_value_free(argument)
	}
	return must(result)
}

func main() {
	path := C.CString(os.Args[1])
	defer C.free(unsafe.Pointer(path))
	cell := must(C.flambeau_load(path))
	defer C.flambeau_module_free(cell)
	states := call(cell, "forward", full(3, 12, 0.5), full(3, 16, 0), full(3, 16, 0))
	defer C.flambeau_value_free(states)
	hidden := must(C.flambeau_item(states, 0))
	defer C.flambeau_value_free(hidden)
	var array C.flambeau_array
	if C.flambeau_as_array(hidden, &array) != 0 {
		os.Exit(1)
	}
	fmt.Printf("%d dimensions, the first element is %.4f\n", array.rank, float32(*(*C.float)(array.data)))
}
