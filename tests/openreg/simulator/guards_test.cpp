// SPDX-License-Identifier: BSD-3-Clause
// Guarded memory: which touches outside of a block are found, and what is said
// of them.
#include "torch_openreg/common/openreg/interface/openreg_graphs.h"
#include "torch_openreg/common/openreg/interface/openreg_kernels.h"
#include "torch_openreg/common/openreg/interface/openreg_tools.h"
#include "torch_openreg/tests/openreg/captures.h"
#include "torch_openreg/tests/openreg/shorthands.h"
#include "torch_openreg/tests/openreg/streams.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace guards_test {

// Each claim runs in a process whose memory is guarded, and ends with code 0.
int guarded(const std::string& claim, std::vector<std::string> more = {}) {
  more.push_back("OPENREG_SANITIZE=memory");
  return again("Guarded.DISABLED_" + claim, std::move(more));
}

struct Found {
  std::string name, sentence;
  int device;
  bool is_write, was_freed;
  ptrdiff_t offset;
  size_t block_bytes;
};

std::vector<Found> found() {
  std::vector<Found> all;
  orVisitViolations(
      [](const orViolation* each, void* data) {
        static_cast<std::vector<Found>*>(data)->push_back(
            {each->name, each->sentence, each->device, each->is_write != 0,
             each->was_freed != 0,
             static_cast<const char*>(each->pointer) -
                 static_cast<const char*>(each->block),
             each->block_bytes});
      },
      &all);
  return all;
}

template <class Body>
void launch(const char* name, Body body, orStream_t stream = nullptr) {
  EXPECT_EQ(openreg::launch(stream, name, body), orSuccess) << detail();
}

void write(const char* name, char* address, orStream_t stream = nullptr) {
  launch(
      name, [address] { *(volatile char*)openreg::onDevice(address) = 1; },
      stream);
}

void read(const char* name, char* address, orStream_t stream = nullptr) {
  launch(
      name,
      [address] {
        static_cast<void>(*(volatile char*)openreg::onDevice(address));
      },
      stream);
}

std::string addressOf(const void* pointer) {
  std::ostringstream text;
  text << pointer;
  return text.str();
}

/// The next wait fails with this sentence; then the device is reset.
void expectStopped(const std::string& sentence) {
  EXPECT_EQ(orStreamSynchronize(nullptr), orErrorLaunchFailure);
  EXPECT_EQ(detail(), sentence);
  EXPECT_EQ(orDeviceReset(), orSuccess);
}

/// The same, and there is one violation.
Found expectOne(const std::string& sentence) {
  expectStopped(sentence);
  const std::vector<Found> all = found();
  EXPECT_EQ(all.size(), 1u);
  if (all.size() != 1) return {};
  EXPECT_EQ(sentence,
            "openreg:0 stopped in " + all[0].name + ": " + all[0].sentence);
  EXPECT_EQ(orClearViolations(), orSuccess);
  return all[0];
}

const std::string kHere = "on the default stream of openreg:0 ";

TEST(Guarded, DISABLED_past) {
  char* block = allocate(400);
  write("one past", block + 400);
  const Found past = expectOne("openreg:0 stopped in one past: " + kHere +
                               "it wrote 0 bytes past the end of the block of "
                               "400 bytes at " +
                               addressOf(block) + ".");
  EXPECT_EQ(past.offset, 400);
  EXPECT_EQ(past.block_bytes, 400u);
  EXPECT_TRUE(past.is_write);
  EXPECT_FALSE(past.was_freed);
  read("far past", block + 404);
  expectOne("openreg:0 stopped in far past: " + kHere +
            "it read 4 bytes past the end of the block of 400 bytes at " +
            addressOf(block) + ".");
  EXPECT_EQ(orFree(block), orSuccess);
}

TEST(Guards, find_what_is_past_the_end) { EXPECT_EQ(guarded("past"), 0); }

TEST(Guarded, DISABLED_before) {
  char* block = allocate(8192);
  write("before", block - 1);
  expectOne("openreg:0 stopped in before: " + kHere +
            "it wrote 1 byte before the beginning of the block of 8192 bytes "
            "at " +
            addressOf(block) + ".");
  // A block that does not fill its first page has canaries before it.
  char* small = allocate(64);
  write("canary", small - 3);
  const Found found = expectOne(
      "openreg:0 stopped in canary: " + kHere +
      "it wrote 3 bytes before the beginning of the block of 64 bytes at " +
      addressOf(small) + ".");
  EXPECT_EQ(found.offset, -3);
  orFree(block);
  orFree(small);
}

TEST(Guards, find_what_is_before_the_beginning) {
  EXPECT_EQ(guarded("before"), 0);
}

TEST(Guarded, DISABLED_padding) {
  char* block = allocate(405);
  write("padding", block + 407);
  expectOne("openreg:0 stopped in padding: " + kHere +
            "it wrote 2 bytes past the end of the block of 405 bytes at " +
            addressOf(block) + ".");
  // The first byte counts, and not the one at which the page ends.
  launch("loop", [block] {
    for (int i = 405; i < 420; ++i) {
      ((volatile char*)openreg::onDevice(block))[i] = 1;
    }
  });
  expectOne("openreg:0 stopped in loop: " + kHere +
            "it wrote 0 bytes past the end of the block of 405 bytes at " +
            addressOf(block) + ".");
  // The canaries are there again, so the next command is not accused.
  launch("innocent", [] {});
  EXPECT_EQ(orStreamSynchronize(nullptr), orSuccess) << detail();
  orFree(block);
  EXPECT_EQ(found().size(), 0u);
}

TEST(Guards, find_what_is_in_the_padding) { EXPECT_EQ(guarded("padding"), 0); }

TEST(Guarded, DISABLED_announced) {
  char* block = allocate(405);
  char* other = allocate(405);
  // A command that lies about what it touches is found when the block is freed.
  const orAccess access{other, 405, 0, nullptr, nullptr, 1};
  orAnnounceAccess(&access);
  write("liar", block + 405);
  EXPECT_EQ(orStreamSynchronize(nullptr), orSuccess);
  EXPECT_EQ(orFree(block), orSuccess);
  expectOne(
      "openreg:0 stopped in free: something wrote 0 bytes past the end "
      "of the block of 405 bytes at " +
      addressOf(block) + ". It was no command that announced the block.");
  orAnnounceAccess(&access);
  write("honest", other + 405);
  expectOne("openreg:0 stopped in honest: " + kHere +
            "it wrote 0 bytes past the end of the block of 405 bytes at " +
            addressOf(other) + ".");
  orFree(other);
}

TEST(Guards, check_padding_when_a_block_is_freed) {
  EXPECT_EQ(guarded("announced"), 0);
}

TEST(Guarded, DISABLED_freed) {
  char* block = allocate(400);
  EXPECT_EQ(orFree(block), orSuccess);
  read("late", block + 16);
  const Found late = expectOne("openreg:0 stopped in late: " + kHere +
                               "it read byte 16 of the freed block of 400 "
                               "bytes at " +
                               addressOf(block) + ".");
  EXPECT_TRUE(late.was_freed);
  write("late", block);
  expectOne("openreg:0 stopped in late: " + kHere +
            "it wrote byte 0 of the freed block of 400 bytes at " +
            addressOf(block) + ".");
}

TEST(Guards, find_what_was_freed) { EXPECT_EQ(guarded("freed"), 0); }

TEST(Guarded, DISABLED_retired) {
  char* block = allocate(400);
  Stream stream;
  launch(
      "slow", [] { usleep(20000); }, stream.handle);
  write("in time", block + 8, stream.handle);
  EXPECT_EQ(orRetireBlock(block, stream.handle), orSuccess);
  EXPECT_EQ(orMemset(block, 0, 1), orErrorInvalidValue);
  EXPECT_EQ(orStreamSynchronize(stream.handle), orSuccess) << detail();
  EXPECT_EQ(orRetireBlock(block, stream.handle), orErrorInvalidValue);
  read("late", block + 8, stream.handle);
  EXPECT_EQ(orStreamSynchronize(stream.handle), orErrorLaunchFailure);
  EXPECT_NE(detail().find("it read byte 8 of the freed block"),
            std::string::npos);
  orDeviceReset();
  // A failed device closes blocks, too.
  block = allocate(400);
  launch(
      "thrower", [] { throw std::runtime_error("no"); }, stream.handle);
  EXPECT_EQ(orStreamSynchronize(stream.handle), orErrorLaunchFailure);
  EXPECT_EQ(orRetireBlock(block, stream.handle), orSuccess) << detail();
  orDeviceReset();
  read("late", block + 8, stream.handle);
  EXPECT_EQ(orStreamSynchronize(stream.handle), orErrorLaunchFailure);
  EXPECT_NE(detail().find("it read byte 8 of the freed block"),
            std::string::npos)
      << detail();
  orDeviceReset();
  orClearViolations();
}

TEST(Guards, close_a_block_in_the_order_of_a_stream) {
  EXPECT_EQ(guarded("retired"), 0);
}

TEST(Guarded, DISABLED_captured) {
  char* block = allocate(64);
  Stream stream;
  orGraph_t graph;
  orStreamBeginCapture(stream.handle, orStreamCaptureModeRelaxed);
  EXPECT_EQ(orRetireBlock(block, stream.handle),
            orErrorStreamCaptureUnsupported);
  EXPECT_EQ(orStreamEndCapture(stream.handle, &graph),
            orErrorStreamCaptureInvalidated);
  write("right", block);
  EXPECT_EQ(orStreamSynchronize(nullptr), orSuccess) << detail();
  char* kept = allocate(64);
  const orGraphExec_t exec =
      executable(captured(stream, [&] { write("node", kept, stream.handle); }));
  EXPECT_EQ(orGraphLaunch(exec, stream.handle), orSuccess);
  EXPECT_EQ(orFree(kept), orSuccess);
  EXPECT_EQ(orGraphLaunch(exec, stream.handle), orSuccess);
  EXPECT_EQ(orStreamSynchronize(stream.handle), orErrorLaunchFailure);
  EXPECT_NE(detail().find("stopped in node: "), std::string::npos) << detail();
  EXPECT_NE(detail().find("it wrote byte 0 of the freed block"),
            std::string::npos);
  orDeviceReset();
  orClearViolations();
}

TEST(Guards, watch_the_nodes_of_a_graph) { EXPECT_EQ(guarded("captured"), 0); }

TEST(Guarded, DISABLED_far) {
  char* block = allocate(64);
  read("wild", block + (16 << 20));
  expectOne("openreg:0 stopped in wild: " + kHere + "it read " +
            addressOf(block + (16 << 20)) + ", which is in no block.");
  // A kernel that runs through all memory comes to its end.
  char* large = allocate(64 << 20);
  orFree(large);
  launch("runner", [large] {
    volatile char* bytes = openreg::onDevice(large);
    for (size_t i = 0; i < size_t{64} << 20; i += 512) bytes[i] = 1;
  });
  expectStopped("openreg:0 stopped in runner: " + kHere +
                "it wrote byte 0 of the freed block of 67108864 bytes at " +
                addressOf(large) + ".");
  // What the commands opened is closed again.
  orClearViolations();
  read("again", large + 4096);
  expectOne("openreg:0 stopped in again: " + kHere +
            "it read byte 4096 of the freed block of 67108864 bytes at " +
            addressOf(large) + ".");
  // And what is in use has not been closed.
  write("right", block + 63);
  EXPECT_EQ(orStreamSynchronize(nullptr), orSuccess) << detail();
  orFree(block);
}

// From the last page to the first, each touch is a fault, and none opens the
// page before it. After 31 faults everything is open.
TEST(Guarded, DISABLED_down) {
  constexpr size_t kPage = 4096, kPages = 100;
  char* freed = allocate(kPages * kPage);
  char* block = allocate(64);
  orFree(freed);
  launch("down", [freed] {
    volatile char* bytes = openreg::onDevice(freed);
    for (size_t i = kPages; i-- > 0;) bytes[i * kPage] = 1;
  });
  EXPECT_EQ(orStreamSynchronize(nullptr), orErrorLaunchFailure);
  EXPECT_NE(detail().find("of the freed block of 409600 bytes"),
            std::string::npos)
      << detail();
  orDeviceReset();
  orClearViolations();
  read("again", freed + kPage);
  EXPECT_EQ(orStreamSynchronize(nullptr), orErrorLaunchFailure);
  orDeviceReset();
  orClearViolations();
  write("right", block + 63);
  EXPECT_EQ(orStreamSynchronize(nullptr), orSuccess) << detail();
}

// The second fault opens two pages, and the second one is of a block in use.
TEST(Guarded, DISABLED_neighbor) {
  constexpr size_t kPage = 4096;
  char* wild = allocate(kPage);
  char* before = allocate(kPage);
  char* block = allocate(kPage);
  EXPECT_EQ(orMemset(block, 7, kPage), orSuccess);
  orFree(wild);
  orFree(before);
  launch("two faults", [wild, block] {
    *(volatile char*)openreg::onDevice(wild) = 1;
    *(volatile char*)openreg::onDevice(block - 1) = 1;
  });
  EXPECT_EQ(orStreamSynchronize(nullptr), orErrorLaunchFailure);
  orDeviceReset();
  orClearViolations();
  read("before", block - 1);
  EXPECT_EQ(orStreamSynchronize(nullptr), orErrorLaunchFailure);
  orDeviceReset();
  orClearViolations();
  char byte = 0;
  EXPECT_EQ(orMemcpy(&byte, block + kPage - 1, 1, orMemcpyDeviceToHost),
            orSuccess);
  EXPECT_EQ(byte, 7);
  write("right", block);
  EXPECT_EQ(orStreamSynchronize(nullptr), orSuccess) << detail();
}

TEST(Guards, find_what_is_in_no_block) {
  EXPECT_EQ(guarded("far"), 0);
  EXPECT_EQ(guarded("down"), 0);
  EXPECT_EQ(guarded("neighbor"), 0);
}

// A program that goes on after a fault of its own has its guards no more, and
// its devices work.
TEST(Guarded, DISABLED_recovers) {
  static sigjmp_buf back;
  signal(SIGSEGV, [](int) { siglongjmp(back, 1); });
  char* block = allocate(64);
  write("right", block);
  EXPECT_EQ(orStreamSynchronize(nullptr), orSuccess);
  volatile int* volatile nowhere = nullptr;
  if (sigsetjmp(back, 1) == 0) *nowhere = 1;
  write("right again", block);
  EXPECT_EQ(orStreamSynchronize(nullptr), orSuccess) << detail();
}

TEST(Guards, let_a_program_handle_its_own_faults) {
  EXPECT_EQ(guarded("recovers"), 0);
}

TEST(Guarded, DISABLED_thousands) {
  constexpr int kMostRetired = 1 << 16;
  char* first = allocate(16);
  orFree(first);
  for (int i = 0; i < kMostRetired; ++i) orFree(allocate(16));
  read("late", first);
  EXPECT_EQ(orStreamSynchronize(nullptr), orErrorLaunchFailure);
  EXPECT_NE(detail().find("which is in no block"), std::string::npos)
      << detail();
  orDeviceReset();
  orClearViolations();
}

TEST(Guards, forget_the_oldest_of_too_many_blocks) {
  EXPECT_EQ(guarded("thousands", {"OPENREG_DEVICE_MEMORY=16G"}), 0);
}

TEST(Guarded, DISABLED_large) {
  constexpr size_t kBytes = 8 << 20;
  char* block = allocate(kBytes);
  const std::vector<char> in(kBytes, 7);
  std::vector<char> out(kBytes);
  EXPECT_EQ(orMemcpy(block, in.data(), kBytes, orMemcpyHostToDevice),
            orSuccess);
  EXPECT_EQ(orMemcpy(out.data(), block, kBytes, orMemcpyDeviceToHost),
            orSuccess);
  EXPECT_EQ(in, out);
}

TEST(Guards, let_large_copies_pass) { EXPECT_EQ(guarded("large"), 0); }

TEST(Guarded, DISABLED_refused) {
  char* block = allocate(64);
  orStream_t gone;
  EXPECT_EQ(orStreamCreate(&gone), orSuccess);
  EXPECT_EQ(orStreamDestroy(gone), orSuccess);
  EXPECT_EQ(orRetireBlock(block + 16, nullptr), orErrorInvalidValue);
  EXPECT_EQ(orRetireBlock(block, gone), orErrorInvalidResourceHandle);
}

TEST(Guards, retire_only_blocks_and_only_on_streams) {
  EXPECT_EQ(guarded("refused"), 0);
}

TEST(Guarded, DISABLED_announced_freed) {
  char* freed = allocate(64);
  EXPECT_EQ(orFree(freed), orSuccess);
  const orAccess access{freed, 64, 0, nullptr, nullptr, 1};
  EXPECT_EQ(orAnnounceAccess(&access), orSuccess);
  launch("announces", [] {});
  EXPECT_EQ(orStreamSynchronize(nullptr), orSuccess) << detail();
}

TEST(Guards, do_not_judge_what_was_announced_and_not_touched) {
  EXPECT_EQ(guarded("announced_freed"), 0);
}

TEST(Guarded, DISABLED_half_placed) {
  char* freed = allocate(64);
  orSetPlaces([] { return int64_t{1}; },
              [](int64_t, char* text, size_t bytes) {
                std::snprintf(text, bytes, "a line");
              });
  EXPECT_EQ(orFree(freed), orSuccess);
  read("late", freed);
  expectOne("openreg:0 stopped in late: " + kHere +
            "at a line it read byte 0 of the freed block of 64 bytes at " +
            addressOf(freed) + ", which was freed at a line.");
  orSetPlaces(nullptr, nullptr);
}

TEST(Guards, name_the_free_if_only_that_has_a_place) {
  EXPECT_EQ(guarded("half_placed"), 0);
}

TEST(Guarded, DISABLED_threads) {
  char* block = allocate(64);
  launch("parallel", [block] {
    std::thread([block] {
      *(volatile char*)openreg::onDevice(block + 64) = 1;
    }).join();
  });
  const std::string sentence =
      "openreg:0 stopped in parallel: " + kHere +
      "it wrote 0 bytes past the end of the block of 64 bytes at " +
      addressOf(block) + ".";
  expectOne(sentence);
  // A thread with a name of its own is one of some command that runs.
  launch("parallel", [block] {
    std::thread([block] {
      pthread_setname_np(pthread_self(), "helper");
      *(volatile char*)openreg::onDevice(block + 64) = 1;
    }).join();
  });
  expectOne(sentence);
  orFree(block);
}

TEST(Guards, know_the_threads_that_a_kernel_starts) {
  EXPECT_EQ(guarded("threads"), 0);
  EXPECT_EQ(guarded("threads", {"OPENREG_SCHEDULE=seed:1"}), 0);
}

TEST(Guarded, DISABLED_uncertain) {
  char* block = allocate(405);
  Stream stream;
  std::atomic<bool> is_over{false};
  ASSERT_EQ(enqueue(stream.handle,
                    [&] {
                      while (!is_over) usleep(100);
                    }),
            orSuccess);
  usleep(20000);
  write("guess", block + 405);
  const std::string sentence =
      "openreg:0 stopped in guess: " + kHere +
      "it wrote 0 bytes past the end of the block of 405 bytes at " +
      addressOf(block) +
      ". Other commands ran at the same time, and one of them may have done "
      "it.";
  EXPECT_EQ(orStreamSynchronize(nullptr), orErrorLaunchFailure);
  EXPECT_EQ(detail(), sentence);
  is_over = true;
  orDeviceReset();
  orClearViolations();
  orFree(block);
}

// A block is closed while another command has damaged a block and still runs.
TEST(Guarded, DISABLED_uncertain_free) {
  char *block = allocate(405), *other = allocate(64);
  Stream stream;
  std::atomic<bool> has_written{false}, is_over{false};
  launch(
      "culprit",
      [&, block] {
        *(volatile char*)openreg::onDevice(block + 405) = 1;
        has_written = true;
        while (!is_over) usleep(100);
      },
      stream.handle);
  while (!has_written) usleep(100);
  EXPECT_EQ(orRetireBlock(other, nullptr), orSuccess);
  EXPECT_EQ(orStreamSynchronize(nullptr), orErrorLaunchFailure);
  EXPECT_EQ(detail(), "openreg:0 stopped in free: " + kHere +
                          "it wrote 0 bytes past the end of the block of 405 "
                          "bytes at " +
                          addressOf(block) +
                          ". Other commands ran at the same time, and one of "
                          "them may have done it.");
  is_over = true;
  orDeviceReset();
  orClearViolations();
}

TEST(Guards, say_when_another_command_may_have_done_it) {
  EXPECT_EQ(guarded("uncertain"), 0);
  EXPECT_EQ(guarded("uncertain_free"), 0);
}

TEST(Guarded, DISABLED_bystander) {
  char* block = allocate(64);
  Stream other;
  std::atomic<bool> runs{false}, is_over{false};
  launch(
      "bystander",
      [&] {
        runs = true;
        while (!is_over) usleep(100);
      },
      other.handle);
  while (!runs) usleep(100);
  write("culprit", block + 64);
  EXPECT_EQ(orStreamSynchronize(nullptr), orErrorLaunchFailure);
  EXPECT_NE(detail().find("stopped in culprit: "), std::string::npos)
      << detail();
  is_over = true;
  orDeviceReset();
  orClearViolations();
  orFree(block);
}

TEST(Guards, name_the_kernel_whose_thread_faulted) {
  EXPECT_EQ(guarded("bystander"), 0);
}

TEST(Guarded, DISABLED_place) {
  static int64_t place = 0;
  orSetPlaces([] { return ++place; },
              [](int64_t number, char* text, size_t bytes) {
                std::snprintf(text, bytes, "line %d", static_cast<int>(number));
              });
  char* block = allocate(64);   // line 1
  write("placed", block + 64);  // line 2
  expectOne("openreg:0 stopped in placed: " + kHere +
            "at line 2 it wrote 0 "
            "bytes past the end of the block of 64 bytes at " +
            addressOf(block) + ", which was allocated at line 1.");
  orFree(block);  // line 3
  read("placed", block);
  expectOne("openreg:0 stopped in placed: " + kHere +
            "at line 4 it read byte 0 of the freed block of 64 bytes at " +
            addressOf(block) +
            ", which was allocated at line 1 and freed at "
            "line 3.");
  block = allocate(64);                                 // line 5
  EXPECT_EQ(orRetireBlock(block, nullptr), orSuccess);  // line 6
  EXPECT_EQ(orDeviceSynchronize(), orSuccess);
  read("placed", block);
  expectOne("openreg:0 stopped in placed: " + kHere +
            "at line 7 it read byte 0 of the freed block of 64 bytes at " +
            addressOf(block) +
            ", which was allocated at line 5 and freed at "
            "line 6.");
  orSetPlaces(nullptr, nullptr);
}

TEST(Guards, name_the_lines_of_the_program) { EXPECT_EQ(guarded("place"), 0); }

TEST(Guarded, DISABLED_throws) {
  char* block = allocate(64);
  launch("thrower", [block] {
    *(volatile char*)openreg::onDevice(block + 64) = 1;
    throw openreg::Refusal("it follows from what was read");
  });
  expectOne("openreg:0 stopped in thrower: " + kHere +
            "it wrote 0 bytes past the end of the block of 64 bytes at " +
            addressOf(block) + ".");
  launch("refuser", [] { throw openreg::Refusal("no"); });
  EXPECT_EQ(orStreamSynchronize(nullptr), orErrorKernelRefused);
  orFree(block);
}

TEST(Guards, come_before_what_a_kernel_throws) {
  EXPECT_EQ(guarded("throws"), 0);
}

TEST(Guarded, DISABLED_recycles) {
  size_t free, total;
  orMemGetInfo(&free, &total);
  EXPECT_EQ(free, total);
  char* first = allocate(64);
  orFree(first);
  for (int i = 0; i < 2000; ++i) orFree(allocate(10000));
  orMemGetInfo(&free, &total);
  EXPECT_EQ(free, total);
  // Nothing is known any more of the block that was freed first.
  read("late", first);
  EXPECT_EQ(orStreamSynchronize(nullptr), orErrorLaunchFailure);
  EXPECT_EQ(detail().find("block of 64 bytes"), std::string::npos) << detail();
  orDeviceReset();
  orClearViolations();
}

TEST(Guards, give_addresses_back_when_they_are_needed) {
  EXPECT_EQ(guarded("recycles", {"OPENREG_DEVICE_MEMORY=8M"}), 0);
  const int both =
      again("Guarded.DISABLED_recycles",
            {"OPENREG_DEVICE_MEMORY=8M", "OPENREG_SANITIZE=races,memory"});
  EXPECT_EQ(both, 0);
}

TEST(Guarded, DISABLED_mappings) {
  std::vector<void*> blocks;
  void* block = nullptr;
  while (orMalloc(&block, 1) == orSuccess) {
    blocks.push_back(block);
    ASSERT_LT(blocks.size(), 1u << 20);
  }
  EXPECT_EQ(detail(),
            "The system gives no guards for another block; each takes two "
            "mappings, of which a process may have as many as "
            "vm.max_map_count says.");
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(orFree(blocks.back()), orSuccess);
    blocks.pop_back();
  }
  EXPECT_EQ(orMalloc(&block, 1), orSuccess) << detail();
}

TEST(Guards, need_mappings) {
  std::FILE* file = std::fopen("/proc/sys/vm/max_map_count", "r");
  long most = 0;
  ASSERT_TRUE(file && std::fscanf(file, "%ld", &most) == 1);
  std::fclose(file);
  if (most > 1 << 18) GTEST_SKIP() << "The system has no such limit.";
  EXPECT_EQ(guarded("mappings", {"OPENREG_DEVICE_MEMORY=16G"}), 0);
}

TEST(Guarded, DISABLED_alignment) {
  orDeviceProp properties;
  ASSERT_EQ(orGetDeviceProperties(&properties, 0), orSuccess);
  EXPECT_EQ(properties.textureAlignment, 16u);
  for (size_t bytes : {1, 16, 17, 4096, 4097, 100000}) {
    char* block = allocate(bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 16, 0u);
    EXPECT_EQ(
        reinterpret_cast<uintptr_t>(block + (bytes + 15) / 16 * 16) % 4096, 0u);
    EXPECT_EQ(orMemset(block, 1, bytes), orSuccess) << detail();
    orFree(block);
  }
  EXPECT_EQ(found().size(), 0u);
}

TEST(Guards, end_a_page_with_a_block) { EXPECT_EQ(guarded("alignment"), 0); }

TEST(Guarded, DISABLED_others) {
  write("right", allocate(64));
  EXPECT_EQ(orStreamSynchronize(nullptr), orSuccess);
  volatile int* volatile nowhere = nullptr;
  *nowhere = 1;
}

TEST(Guards, leave_the_faults_of_others_alone) {
  const int status = guarded("others");
  EXPECT_TRUE(WIFSIGNALED(status)) << status;
  EXPECT_EQ(WTERMSIG(status), SIGSEGV);
}

TEST(Guarded, DISABLED_replaced) {
  write("right", allocate(64));
  EXPECT_EQ(orStreamSynchronize(nullptr), orSuccess);
  signal(SIGSEGV, [](int) { _exit(3); });
  char* block = allocate(64);
  write("one past", block + 64);
  EXPECT_EQ(orStreamSynchronize(nullptr), orErrorLaunchFailure);
  orDeviceReset();
  orClearViolations();
  raise(SIGSEGV);
}

TEST(Guards, outlast_a_handler_that_a_program_installs) {
  const int status = guarded("replaced");
  EXPECT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 3);
}

TEST(Guarded, DISABLED_ends) {
  char* block = allocate(64);
  write("one past", block + 64);
  EXPECT_EQ(orStreamSynchronize(nullptr), orErrorLaunchFailure);
}

TEST(Guards, end_a_process_with_code_66) {
  const int status = guarded("ends");
  EXPECT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 66);
}

TEST(Guarded, DISABLED_asked) {
  int is_guarded = 0;
  EXPECT_EQ(orMemoryIsGuarded(&is_guarded), orSuccess);
  EXPECT_TRUE(is_guarded);
  int is_started = 1;
  EXPECT_EQ(orDeviceIsStarted(0, &is_started), orSuccess);
  EXPECT_FALSE(is_started);
}

TEST(Guards, are_off_unless_they_are_asked_for) {
  EXPECT_EQ(guarded("asked"), 0);
  EXPECT_EQ(guarded("asked", {"OPENREG_SANITIZE=races,memory"}), 0);
  if (std::getenv("OPENREG_SANITIZE")) return;
  int is_guarded = 1;
  EXPECT_EQ(orMemoryIsGuarded(&is_guarded), orSuccess);
  EXPECT_FALSE(is_guarded);
  char* block = allocate(64);
  EXPECT_EQ(orRetireBlock(block, nullptr), orErrorNotSupported);
  EXPECT_EQ(detail(),
            "orRetireBlock is for guarded memory (OPENREG_SANITIZE=memory); "
            "call orFree.");
  orFree(block);
}

TEST(Guards, need_a_place_and_a_function) {
  EXPECT_EQ(orMemoryIsGuarded(nullptr), orErrorInvalidValue);
  EXPECT_EQ(orVisitViolations(nullptr, nullptr), orErrorInvalidValue);
}

}  // namespace guards_test
