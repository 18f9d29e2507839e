// What programs of libtorch do with models. `tour.out` is what libtorch itself prints (-DWITH_LIBTORCH includes it instead).
#ifdef WITH_LIBTORCH
#include <torch/jit.h>
#include <torch/script.h>
#else
#include <flambeau.hpp>
#endif

#include <fstream>
#include <iostream>
#include <sstream>
#include <thread>
#include <vector>

static const char *SOURCE = R"(
def shapes(x: Tensor, sizes: List[int]) -> Tuple[Tensor, int]:
    return x.reshape(sizes), x.dim()
def names(prefix: str, count: int) -> List[str]:
    out: List[str] = []
    for n in range(count):
        out.append(prefix + str(n))
    return out
def table(keys: List[str], x: Tensor) -> Dict[str, Tensor]:
    out: Dict[str, Tensor] = {}
    for n, key in enumerate(keys):
        out[key] = x[n]
    return out
def maybe(x: Optional[Tensor], flag: bool, by: float) -> Tensor:
    if x is not None and flag:
        return x * by
    return torch.zeros([1])
def total(xs: List[Tensor]) -> Tensor:
    return torch.stack(xs).sum(0)
def chunks(x: Tensor) -> List[Tensor]:
    return torch.chunk(x, 2)
def fails(x: Tensor) -> Tensor:
    return x.view([7])
)";

static void values() {
  auto cu = torch::jit::compile(SOURCE);
  auto x = torch::arange(6).to(torch::kFloat32);
  std::vector<int64_t> sizes = {2, 3};
  auto both = cu->run_method("shapes", x, sizes).toTuple();
  std::cout << both->elements()[0].toTensor() << "\n" << both->elements()[1].toInt() << "\n";
  auto names = cu->run_method("names", std::string("n"), 3);
  for (const auto &name : names.toListRef()) std::cout << name.toStringRef() << " ";
  std::cout << "\n";
  auto table = cu->run_method("table", std::vector<std::string>{"a", "b"}, x.view({2, 3})).toGenericDict();
  std::cout << table.size() << table.contains("a") << table.contains("z") << "\n" << table.at("b").toTensor() << "\n";
  for (const auto &entry : table) std::cout << entry.key().toStringRef() << entry.value().toTensor().numel() << " ";
  std::cout << "\n";
  std::cout << cu->run_method("maybe", x, true, 0.5).toTensor() << cu->run_method("maybe", torch::jit::IValue(), true, 1.0).toTensor() << "\n";
  std::cout << cu->run_method("total", std::vector<torch::Tensor>{x, x, x}).toTensor() << "\n";
  auto chunks = cu->run_method("chunks", x).toTensorVector();
  std::cout << chunks.size() << " " << chunks[1].sizes() << chunks[1].strides() << " " << chunks[1].is_contiguous() << "\n";
  try {
    cu->run_method("fails", x);
  } catch (const c10::Error &e) {
    std::cout << (std::string(e.what()).find("shape '[7]' is invalid for input of size 6") != std::string::npos) << "\n";
  }
}

static void tensors() {
  float data[] = {1, 2, 3, 4, 5, 6};
  auto x = torch::from_blob(data, {2, 3});
  x.mul_(2);
  std::cout << data[5] << " " << x.size(1) << x.size(-2) << x.dim() << x.numel() << " " << (x.scalar_type() == torch::kFloat) << "\n";
  auto a = x.accessor<float, 2>();
  std::cout << a[1][0] << " " << a.size(0) << " " << x[1][2].item<float>() << " " << x.sum().item<double>() << " "
            << x.argmax().item<int64_t>() << "\n";
  std::cout << x.t() << "\n" << x.slice(/*dim=*/1, /*start=*/0, /*end=*/2) << "\n";
  std::cout << x.t().is_contiguous() << x.t().contiguous().is_contiguous() << " " << x.t().strides() << "\n";
  std::cout << torch::softmax(x, 1) << "\n";
  auto top = x.flatten().topk(2);
  std::cout << std::get<0>(top) << std::get<1>(top) << "\n";
  std::cout << (x + 1) * x / 4 - x << "\n" << torch::cat({x, x}, 0).sizes() << torch::stack({x, x}).sizes() << "\n";
  std::cout << torch::ones({2}, torch::kInt64) << torch::zeros({2}, torch::dtype(torch::kDouble)) << torch::full({2}, 3.5) << "\n";
  std::cout << torch::tensor({1, 2, 3}) << torch::tensor(std::vector<double>{0.5, 1.5}) << "\n";
  std::cout << x.to(torch::kInt).permute({1, 0}) << torch::equal(x, x.clone()) << torch::allclose(x, x + 1e-9) << "\n";
  std::cout << x.unsqueeze(0).squeeze(0).transpose(0, 1).select(0, 1) << x.exp().relu().sigmoid().mean().item<float>() << "\n";
  torch::manual_seed(7);
  std::cout << torch::rand({3}) << torch::randn({2}) << "\n";
  torch::Tensor nothing;
  std::cout << nothing.defined() << "\n";
  int freed = 0;
  {
    auto *owned = new float[4]{1, 2, 3, 4};
    auto kept = torch::from_blob(owned, {4}, [&freed](void *p) { delete[] static_cast<float *>(p); ++freed; });
    auto view = kept.slice(0, 1, 3);
    kept = torch::Tensor();
    std::cout << view << freed;
  }
  std::cout << freed << "\n";
}

static void modules(const std::string &path) {
  torch::NoGradGuard guard;
  auto module = torch::jit::load(path);
  module.eval();
  std::cout << module.is_training() << module.attr("sub_module").isNone() << module.hasattr("nothing") << "\n";
  std::vector<torch::jit::IValue> inputs;
  inputs.push_back(torch::arange(9).to(torch::kFloat).view({3, 3}));
  inputs.push_back(true);
  at::Tensor output = module.forward(inputs).toTensor();
  std::cout << output << "\n" << module.get_method("forward")(inputs).toTensor().slice(1, 0, 1) << "\n";
  std::ifstream file(path, std::ios::binary);
  auto again = torch::jit::load(file);
  std::vector<std::thread> threads;
  std::vector<int> same(8);
  for (int n = 0; n < 8; ++n) {
    threads.emplace_back([&, n] {
      torch::NoGradGuard guard;
      same[n] = 1;
      for (int k = 0; k < 20; ++k) same[n] &= torch::equal(again.forward(inputs).toTensor(), output);
    });
  }
  for (auto &thread : threads) thread.join();
  for (int ok : same) std::cout << ok;
  std::cout << "\n";
  module.train();
  std::cout << module.is_training() << "\n";
  module.attr("linear").toModule().attr("weight").toTensor().fill_(1);
  std::cout << module.forward(inputs).toTensor() << "\n";
  try {
    torch::jit::load("no/such/file.pt");
  } catch (const c10::Error &e) {
    std::cout << "refused\n";
  }
}

int main(int argc, char **argv) {
  if (argc < 2) return 1;
  values();
  tensors();
  modules(argv[1]);
}
