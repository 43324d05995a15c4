// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/device/memory/allocator.h"
#include "torch_openreg/chapters/device/memory/tests/held.h"
#include "torch_openreg/chapters/device/tests/words_of.h"
#include "torch_openreg/chapters/hooks/generator.h"
#include "torch_openreg/chapters/hooks/host_memory.h"
#include "torch_openreg/chapters/hooks/storage/storage.h"
#include "torch_openreg/common/openreg/interface/openreg_graphs.h"

#include <ATen/Context.h>
#include <ATen/core/Tensor.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/StorageImpl.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>

namespace {

const auto& hooks = at::detail::getPrivateUse1Hooks();

// Must be the first test: it asks whether asking starts the device.
TEST(Hooks, asking_starts_nothing) {
  EXPECT_TRUE(hooks.isBuilt());
  EXPECT_TRUE(hooks.isAvailable());
  EXPECT_EQ(hooks.deviceCount(), 2);
  hooks.getDefaultGenerator(1);
  for (int index : {0, 1}) EXPECT_FALSE(hooks.hasPrimaryContext(index));
  openreg::allocator().allocate(1);
  // They start together.
  for (int index : {0, 1}) EXPECT_TRUE(hooks.hasPrimaryContext(index));
  EXPECT_FALSE(hooks.hasPrimaryContext(2));
}

TEST(Hooks, a_pointer_knows_its_device) {
  openreg::DeviceScope scope(1);
  c10::DataPtr data = openreg::allocator().allocate(100);
  EXPECT_EQ(hooks.getDeviceFromPtr(static_cast<char*>(data.get()) + 50).index(),
            1);
  int host;
  expectError<c10::ValueError>("was not allocated on an openreg device",
                               [&] { hooks.getDeviceFromPtr(&host); });
}

TEST(Hooks, the_current_device_is_the_guards) {
  EXPECT_EQ(hooks.exchangeDevice(1), 0);
  EXPECT_EQ(hooks.getCurrentDevice(), openreg::currentDevice());
  EXPECT_EQ(hooks.maybeExchangeDevice(-1), 1);
  hooks.setCurrentDevice(0);
  EXPECT_EQ(openreg::currentDevice(), 0);
}

TEST(Generator, offsets_are_given_to_one_thread_each) {
  openreg::Generator generator(0);
  std::vector<uint64_t> offsets(4000);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 1000; ++i)
        offsets[t * 1000 + i] = generator.reserve(4).state.offset;
    });
  }
  for (auto& thread : threads) thread.join();
  std::sort(offsets.begin(), offsets.end());
  for (size_t i = 0; i < offsets.size(); ++i) EXPECT_EQ(offsets[i], i * 4);
}

TEST(Generator, a_kernel_from_outside_reserves_numbers_of_32_bits) {
  openreg::Generator generator(0);
  generator.set_current_seed(7);
  at::Tensor seed, offset, within;
  for (int64_t expected : {0, 8, 12}) {
    generator.philox_state(expected ? 4 : 5, seed, offset, within);
    EXPECT_EQ(*seed.const_data_ptr<int64_t>(), 7);
    EXPECT_EQ(*offset.const_data_ptr<int64_t>(), expected);
    EXPECT_EQ(*within.const_data_ptr<int64_t>(), 0);
  }
  EXPECT_EQ(generator.get_offset(), 4u);
}

/// Expects that `action` is not implemented, and says so.
template <class Action>
void expectRefusal(Action action, const std::string& sentence) {
  EXPECT_EQ(wordsOf<c10::NotImplementedError>(action), sentence);
}

/// Captures a stream while it lives, and makes it current.
struct Capturing {
  Capturing() {
    openreg::setCapturedRandom(nullptr);
    orStreamBeginCapture(openreg::nativeStream(stream),
                         orStreamCaptureModeGlobal);
  }
  ~Capturing() {
    openreg::setCapturedRandom(nullptr);
    orGraph_t graph;
    EXPECT_EQ(orStreamEndCapture(openreg::nativeStream(stream), &graph),
              orSuccess);
    orGraphDestroy(graph);
    openreg::exchangeStream(before);
  }
  const c10::Stream stream = openreg::poolStream(0, 0);
  const c10::Stream before = openreg::exchangeStream(stream);
};

TEST(Generator, a_captured_stream_uses_none_unless_somebody_records_it) {
  openreg::Generator generator(0);
  const auto state = generator.get_state();
  {
    Capturing capturing;
    const std::string sentence =
        "A generator cannot be used on stream " +
        std::to_string(capturing.stream.id()) + " of " +
        capturing.stream.device().str() +
        " while it is captured; every run would draw the same numbers.";
    expectRefusal([&] { generator.reserve(1); }, sentence);
    expectRefusal([&] { generator.set_current_seed(1); }, sentence);
    expectRefusal([&] { generator.set_state(*state); }, sentence);
  }
  EXPECT_EQ(generator.reserve(1).state.offset, 0u);
}

TEST(Generator,
     a_capture_records_what_replays_can_repeat_and_refuses_the_rest) {
  openreg::Generator generator(0);
  static const openreg::RandomState base{};
  static openreg::RandomRange recorded;
  recorded = {{0, 2}, 5, &base};
  static const openreg::CapturedRandom functions{
      [](const std::shared_ptr<openreg::Counter>&, const c10::Stream&,
         openreg::RandomMove move) {
        const openreg::RandomRange before = recorded;
        move(recorded);
        return before;
      },
      [](const openreg::RandomRange& range) {
        return openreg::RandomState{range.number, range.state.offset};
      }};
  c10::intrusive_ptr<c10::TensorImpl> state;
  at::Tensor seed, offset, within;
  {
    Capturing capturing;
    openreg::setCapturedRandom(&functions);
    EXPECT_EQ(generator.reserve(3).state.offset, 2u);
    EXPECT_EQ(recorded.state.offset, 5u);
    state = generator.get_state();
    EXPECT_EQ(state->numel(), 24);
    expectRefusal([&] { generator.seed(); },
                  "An unpredictable seed cannot be captured, because every "
                  "replay would use the same one; call manual_seed, or seed "
                  "before the replay.");
    const auto unknown = [](const std::string& what) {
      return "The " + what +
             " of a generator is another one at each replay, so a capture "
             "cannot use it; call manual_seed in the capture first, or use "
             "get_state and set_state.";
    };
    expectRefusal([&] { generator.current_seed(); }, unknown("seed"));
    expectRefusal([&] { generator.set_offset(1); }, unknown("seed"));
    expectRefusal([&] { generator.get_offset(); }, unknown("offset"));
    expectRefusal(
        [&] { generator.philox_state(4, seed, offset, within); },
        "philox_state has no numbers for a graph that is captured on " +
            capturing.stream.device().str() +
            "; its kernels must draw from the generator.");
    generator.set_current_seed(9);
    generator.set_offset(3);
    EXPECT_EQ(generator.current_seed(), 9u);
    EXPECT_EQ(generator.reserve(1).state.offset, 3u);
    generator.set_state(*state);
    EXPECT_EQ(recorded.number, 5u);
    EXPECT_EQ(recorded.state.offset, 5u);
  }
  EXPECT_EQ(
      wordsOf<c10::ValueError>([&] { generator.set_state(*state); }),
      "This state is of capture base 5, and this process has no such base.");
  openreg::setCapturedRandom(&functions);
  generator.set_state(*state);
  openreg::setCapturedRandom(nullptr);
  EXPECT_EQ(generator.current_seed(), 5u);
  EXPECT_EQ(generator.get_offset(), 5u);
}

TEST(Pinned, a_block_that_a_stream_uses_is_not_handed_out_again) {
  const c10::Stream stream = openreg::poolStream(0, 0);
  Gate held(stream);
  c10::DataPtr data = openreg::hostAllocator().allocate(1000);
  void* first = data.get();
  openreg::hostAllocator().record_event(first, data.get_context(), stream);
  data.clear();
  EXPECT_NE(openreg::hostAllocator().allocate(1000).get(), first);
  held.open();
  c10::DataPtr second = openreg::hostAllocator().allocate(1000),
               third = openreg::hostAllocator().allocate(1000);
  EXPECT_TRUE(second.get() == first || third.get() == first);
  EXPECT_TRUE(openreg::isPinned(static_cast<char*>(second.get()) + 999));
  EXPECT_FALSE(openreg::isPinned(&held));
}

TEST(Storage, growing_and_shrinking_keep_what_fits) {
  c10::Storage storage(c10::Storage::use_byte_size_t(), 8,
                       &openreg::allocator(), true);
  orMemcpy(storage.mutable_data(), "12345678", 8, orMemcpyHostToDevice);
  openreg::resizeStorage(storage, 100000);
  EXPECT_EQ(storage.nbytes(), 100000u);
  openreg::resizeStorage(storage, 4);
  char kept[5] = {};
  orMemcpy(kept, storage.data(), 4, orMemcpyDeviceToHost);
  EXPECT_STREQ(kept, "1234");
}

TEST(Storage, one_that_grows_keeps_its_old_memory_until_the_copy_has_read_it) {
  c10::Storage storage(c10::Storage::use_byte_size_t(), 1000,
                       &openreg::allocator(), true);
  const void* old = storage.data();
  const c10::Stream stream = openreg::poolStream(0, 0);
  Gate held(stream);
  const c10::Stream before = openreg::exchangeStream(stream);
  openreg::resizeStorage(storage, 2000);
  openreg::exchangeStream(before);
  EXPECT_NE(openreg::allocator().allocate(1000).get(), old);
}

}  // namespace
