// The same from C++, under libtorch's names: c++ -std=c++17 -Icapi/include capi/examples/lstm.cpp -lflambeau
#include <flambeau.hpp>

#include <iostream>

int main(int argc, char **argv) {
  try {
    auto cell = torch::jit::load(argc > 1 ? argv[1] : "examples/lstm_cell.pt");
    auto states = cell.forward({torch::full({3, 12}, 0.5), torch::zeros({3, 16}), torch::zeros({3, 16})}).toTuple();
    auto hidden = states->elements()[0].toTensor();
    std::cout << hidden.dim() << " dimensions, the first element is " << hidden[0][0].item<float>() << "\n";
  } catch (const c10::Error &error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
