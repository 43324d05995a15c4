// SPDX-License-Identifier: BSD-3-Clause
// What the caching allocator costs, and what a program would cost without it.
#include "torch_openreg/chapters/device/memory/allocator.h"
#include "torch_openreg/chapters/device/streams/stream.h"
#include "torch_openreg/common/openreg/interface/openreg_kernels.h"

#include "measure.h"

#include <cstdlib>
#include <random>

namespace {

std::string named(size_t bytes) {
  return bytes >= 1 << 20 ? std::to_string(bytes >> 20) + " MiB"
                          : std::to_string(bytes) + " bytes";
}

void pairs() {
  for (const size_t bytes : {16, 4096, 1 << 20, 64 << 20}) {
    const auto host = [=] {
      void* data = nullptr;
      if (posix_memalign(&data, 64, bytes)) std::abort();
      // The compiler would leave out a pair that nobody sees.
      asm volatile("" : : "g"(data) : "memory");
      std::free(data);
    };
    const auto cached = [=] { openreg::allocator().allocate(bytes); };
    const auto driver = [=] {
      void* data;
      orMalloc(&data, bytes);
      orFree(data);
    };
    compare("allocate and free", named(bytes), 9,
            {{"the host's malloc", [=] { return perCall(20000, host); }},
             {"cached", [=] { return perCall(20000, cached); }},
             {"orMalloc", [=] { return perCall(500, driver); }}});
  }
}

/// A chain of ten operators: each writes a tensor of its own, and the one
/// before it is dropped. Each kernel takes 20 us. The time is that of the
/// chain.
void chain() {
  const auto kernel = [] {
    const double end = now() + 20;
    while (now() < end) {
    }
  };
  const auto cached = [=] {
    c10::DataPtr x = openreg::allocator().allocate(4096);
    for (int i = 0; i < 10; ++i) {
      c10::DataPtr y = openreg::allocator().allocate(4096);
      openreg::launch(nullptr, "kernel", kernel);
      x = std::move(y);
    }
  };
  const auto driver = [=] {
    void *x, *y;
    orMalloc(&x, 4096);
    for (int i = 0; i < 10; ++i) {
      orMalloc(&y, 4096);
      openreg::launch(nullptr, "kernel", kernel);
      orFree(x);
      x = y;
    }
    orFree(x);
  };
  const auto host = [](const std::function<void()>& call) {
    return [call] {
      const double us = perCall(100, call);
      orDeviceSynchronize();
      return us;
    };
  };
  compare("ten kernels, each with a tensor of its own", "on the host", 5,
          {{"cached", host(cached)}, {"orMalloc", host(driver)}});
}

/// `count` blocks of 16 to 8,192 bytes live. One after the other is freed, and
/// another one is allocated: the time of such an exchange.
void liveBlocks() {
  for (const int count : {1000, 10000, 100000, 1000000}) {
    std::mt19937 random(1);
    const auto size = [&] { return size_t{16} << random() % 10; };
    std::vector<c10::DataPtr> blocks;
    for (int i = 0; i < count; ++i)
      blocks.push_back(openreg::allocator().allocate(size()));
    const auto exchange = [&] {
      return perCall(20000, [&] {
        c10::DataPtr& block = blocks[random() % count];
        block = openreg::allocator().allocate(size());
      });
    };
    std::vector<void*> pointers;
    for (int i = 0; i < count; ++i) pointers.push_back(std::malloc(size()));
    const auto onHost = [&] {
      return perCall(20000, [&] {
        void*& pointer = pointers[random() % count];
        std::free(pointer);
        pointer = std::malloc(size());
      });
    };
    compare("blocks that live", std::to_string(count), 5,
            {{"the host's malloc", onHost}, {"cached", exchange}},
            "\"at\": " + std::to_string(count) + ", ");
    for (void* pointer : pointers) std::free(pointer);
    blocks.clear();
    openreg::allocator().emptyCache({0, 0});
  }
}

}  // namespace

int main() {
  pairs();
  chain();
  liveBlocks();
}
