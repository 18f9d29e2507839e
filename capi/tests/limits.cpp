// Limits from C++: typed errors, scopes that nest, a scope that another thread cancels.
#include "flambeau.hpp"

#include <chrono>
#include <iostream>
#include <thread>

static const char *PROGRAM =
    "def endless(n: int) -> int:\n"
    "    while n > 0:\n"
    "        n += 1\n"
    "    return n\n";

// The limit that a call reaches.
static std::string reached(flambeau::Module &module) {
  try {
    module.run_method("endless", 1);
  } catch (const flambeau::LimitError &error) {
    return error.limit();
  }
  return "none";
}

int main() {
  auto compiled = flambeau::compile(PROGRAM);
  flambeau::Module &module = *compiled;
  // Compiled before the time begins.
  module.run_method("endless", 0);
  flambeau::Limits limits{};
  limits.seconds = 1;
  {
    flambeau::LimitScope outer(limits);
    limits = {};
    limits.steps = 1000;
    {
      flambeau::LimitScope inner(limits);
      std::cout << reached(module) << "\n";
    }
    std::cout << reached(module) << "\n";
  }
  {
    flambeau::LimitScope scope{flambeau::Limits{}};
    std::thread other([&scope] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      scope.cancel();
    });
    std::cout << reached(module) << "\n";
    other.join();
  }
  limits = {};
  limits.seconds = -1;
  try {
    flambeau::LimitScope odd(limits);
  } catch (const flambeau::LimitError &) {
    return 1;
  } catch (const flambeau::Error &) {
    std::cout << module.run_method("endless", 0).toInt() << "\n";
  }
}
