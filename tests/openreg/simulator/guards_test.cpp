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

/// Runs the test that calls this in a process whose memory is guarded.
bool ranGuarded(std::vector<std::string> more = {}) {
  more.push_back("OPENREG_SANITIZE=memory");
  return ranAgain({more});
}

/// How that process ends, for the claims that it does not survive.
int guarded(const std::string& claim) {
  return again("Guarded.DISABLED_" + claim, {"OPENREG_SANITIZE=memory"});
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
  orVisitFindings(
      [](const orFinding* each, void* data) {
        EXPECT_FALSE(each->is_race);
        const orFoundCommand& command = each->command;
        static_cast<std::vector<Found>*>(data)->push_back(
            {command.name, each->sentence, command.device,
             command.is_write != 0, each->was_freed != 0,
             static_cast<const char*>(command.pointer) -
                 static_cast<const char*>(each->block),
             each->block_bytes});
      },
      &all);
  return all;
}

template <class Body>
void launch(orStream_t stream, const char* name, Body body) {
  EXPECT_EQ(openreg::launch(stream, name, body), orSuccess) << detail();
}
template <class Body>
void launch(const char* name, Body body) {
  launch(nullptr, name, body);
}

void write(const char* name, char* address, orStream_t stream = nullptr) {
  launch(stream, name,
         [address] { *(volatile char*)openreg::onDevice(address) = 1; });
}

void read(const char* name, char* address, orStream_t stream = nullptr) {
  launch(stream, name, [address] {
    static_cast<void>(*(volatile char*)openreg::onDevice(address));
  });
}

std::string addressOf(const void* pointer) {
  std::ostringstream text;
  text << pointer;
  return text.str();
}

/// What is said of a command of the default stream that was outside of a block.
std::string sentence(const std::string& name, const std::string& what,
                     const void* block, size_t bytes,
                     const std::string& more = ".") {
  return "openreg:0 stopped in " + name +
         ": on the default stream of openreg:0 " + what + " block of " +
         std::to_string(bytes) + " bytes at " + addressOf(block) + more;
}

/// A wait fails with a sentence that has `part`; then nothing is known of it.
void expectFailed(const std::string& part = "", orStream_t stream = nullptr) {
  EXPECT_EQ(orStreamSynchronize(stream), orErrorLaunchFailure);
  EXPECT_NE(detail().find(part), std::string::npos) << detail();
  EXPECT_EQ(orDeviceReset(), orSuccess);
  EXPECT_EQ(orClearFindings(), orSuccess);
}

const std::string kOthers =
    ". Other commands ran at the same time, and one of them may have done it.";

/// Nothing was found.
void expectRight() {
  EXPECT_EQ(orStreamSynchronize(nullptr), orSuccess) << detail();
}

/// The next wait fails with this sentence, and there is one violation.
Found expectOne(const std::string& sentence) {
  EXPECT_EQ(orStreamSynchronize(nullptr), orErrorLaunchFailure);
  EXPECT_EQ(detail(), sentence);
  EXPECT_EQ(orDeviceReset(), orSuccess);
  const std::vector<Found> all = found();
  EXPECT_EQ(all.size(), 1u);
  if (all.size() != 1) return {};
  EXPECT_EQ(sentence,
            "openreg:0 stopped in " + all[0].name + ": " + all[0].sentence);
  EXPECT_EQ(orClearFindings(), orSuccess);
  return all[0];
}

Found expectOne(const std::string& name, const std::string& what,
                const void* block, size_t bytes,
                const std::string& more = ".") {
  return expectOne(sentence(name, what, block, bytes, more));
}

TEST(Guards, find_what_is_past_the_end) {
  if (ranGuarded()) return;
  char* block = allocate(400);
  write("one past", block + 400);
  const Found past =
      expectOne("one past", "it wrote 0 bytes past the end of the", block, 400);
  EXPECT_EQ(past.offset, 400);
  EXPECT_EQ(past.block_bytes, 400u);
  EXPECT_TRUE(past.is_write);
  EXPECT_FALSE(past.was_freed);
  read("far past", block + 404);
  expectOne("far past", "it read 4 bytes past the end of the", block, 400);
  EXPECT_EQ(orFree(block), orSuccess);
}

TEST(Guards, find_what_is_before_the_beginning) {
  if (ranGuarded()) return;
  char* block = allocate(8192);
  write("before", block - 1);
  expectOne("before", "it wrote 1 byte before the beginning of the", block,
            8192);
  // A block that does not fill its first page has canaries before it.
  char* small = allocate(64);
  write("canary", small - 3);
  const Found found = expectOne(
      "canary", "it wrote 3 bytes before the beginning of the", small, 64);
  EXPECT_EQ(found.offset, -3);
  orFree(block);
  orFree(small);
}

TEST(Guards, find_what_is_in_the_padding) {
  if (ranGuarded()) return;
  char* block = allocate(405);
  write("padding", block + 407);
  expectOne("padding", "it wrote 2 bytes past the end of the", block, 405);
  // The first byte counts, and not the one at which the page ends.
  launch("loop", [block] {
    for (int i = 405; i < 420; ++i) {
      ((volatile char*)openreg::onDevice(block))[i] = 1;
    }
  });
  expectOne("loop", "it wrote 0 bytes past the end of the", block, 405);
  // The canaries are there again, so the next command is not accused.
  launch("innocent", [] {});
  expectRight();
  orFree(block);
  EXPECT_EQ(found().size(), 0u);
}

TEST(Guards, check_padding_when_a_block_is_freed) {
  if (ranGuarded()) return;
  char* block = allocate(405);
  char* other = allocate(405);
  // A command that lies about what it touches is found when the block is freed.
  const orAccess access{other, 405, 0, nullptr, nullptr, 1};
  orAnnounceAccess(&access);
  write("liar", block + 405);
  expectRight();
  EXPECT_EQ(orFree(block), orSuccess);
  expectOne(
      "openreg:0 stopped in free: something wrote 0 bytes past the end of the "
      "block of 405 bytes at " +
      addressOf(block) + ". It was no command that announced the block.");
  orAnnounceAccess(&access);
  write("honest", other + 405);
  expectOne("honest", "it wrote 0 bytes past the end of the", other, 405);
  orFree(other);
}

TEST(Guards, find_what_was_freed) {
  if (ranGuarded()) return;
  char* block = allocate(400);
  EXPECT_EQ(orFree(block), orSuccess);
  read("late", block + 16);
  const Found late =
      expectOne("late", "it read byte 16 of the freed", block, 400);
  EXPECT_TRUE(late.was_freed);
  write("late", block);
  expectOne("late", "it wrote byte 0 of the freed", block, 400);
}

TEST(Guards, close_a_block_in_the_order_of_a_stream) {
  if (ranGuarded()) return;
  char* block = allocate(400);
  Stream stream;
  launch(stream, "slow", [] { usleep(20000); });
  write("in time", block + 8, stream);
  EXPECT_EQ(orRetireBlock(block, stream), orSuccess);
  EXPECT_EQ(orMemset(block, 0, 1), orErrorInvalidValue);
  EXPECT_EQ(orStreamSynchronize(stream), orSuccess) << detail();
  EXPECT_EQ(orRetireBlock(block, stream), orErrorInvalidValue);
  read("late", block + 8, stream);
  expectFailed("it read byte 8 of the freed block", stream);
  // A failed device closes blocks, too.
  block = allocate(400);
  launch(stream, "thrower", [] { throw std::runtime_error("no"); });
  EXPECT_EQ(orStreamSynchronize(stream), orErrorLaunchFailure);
  EXPECT_EQ(orRetireBlock(block, stream), orSuccess) << detail();
  orDeviceReset();
  read("late", block + 8, stream);
  expectFailed("it read byte 8 of the freed block", stream);
}

TEST(Guards, watch_the_nodes_of_a_graph) {
  if (ranGuarded()) return;
  char* block = allocate(64);
  Stream stream;
  orGraph_t graph;
  orStreamBeginCapture(stream, orStreamCaptureModeRelaxed);
  EXPECT_EQ(orRetireBlock(block, stream), orErrorStreamCaptureUnsupported);
  EXPECT_EQ(orStreamEndCapture(stream, &graph),
            orErrorStreamCaptureInvalidated);
  write("right", block);
  expectRight();
  char* kept = allocate(64);
  const Executable exec =
      executable(stream, [&] { write("node", kept, stream); });
  EXPECT_EQ(orGraphLaunch(exec, stream), orSuccess);
  EXPECT_EQ(orFree(kept), orSuccess);
  EXPECT_EQ(orGraphLaunch(exec, stream), orSuccess);
  EXPECT_EQ(orStreamSynchronize(stream), orErrorLaunchFailure);
  EXPECT_NE(detail().find("stopped in node: "), std::string::npos);
  expectFailed("it wrote byte 0 of the freed block", stream);
}

TEST(Guards, find_what_is_in_no_block) {
  if (ranGuarded()) return;
  char* block = allocate(64);
  read("wild", block + (16 << 20));
  expectOne(
      "openreg:0 stopped in wild: on the default stream of openreg:0 "
      "it read " +
      addressOf(block + (16 << 20)) + ", which is in no block.");
  // A kernel that runs through all memory comes to its end.
  char* large = allocate(64 << 20);
  orFree(large);
  launch("runner", [large] {
    volatile char* bytes = openreg::onDevice(large);
    for (size_t i = 0; i < size_t{64} << 20; i += 512) bytes[i] = 1;
  });
  EXPECT_EQ(orStreamSynchronize(nullptr), orErrorLaunchFailure);
  EXPECT_EQ(detail(), sentence("runner", "it wrote byte 0 of the freed", large,
                               64 << 20));
  expectFailed();
  // What the commands opened is closed again.
  read("again", large + 4096);
  expectOne("again", "it read byte 4096 of the freed", large, 64 << 20);
  // And what is in use has not been closed.
  write("right", block + 63);
  expectRight();
  orFree(block);
}

// From the last page to the first, each touch is a fault, and none opens the
// page before it. After 31 faults everything is open.
TEST(Guards, let_a_kernel_run_through_freed_memory_backwards) {
  if (ranGuarded()) return;
  constexpr size_t kPage = 4096, kPages = 100;
  char* freed = allocate(kPages * kPage);
  char* block = allocate(64);
  orFree(freed);
  launch("down", [freed] {
    volatile char* bytes = openreg::onDevice(freed);
    for (size_t i = kPages; i-- > 0;) bytes[i * kPage] = 1;
  });
  expectFailed("of the freed block of 409600 bytes");
  read("again", freed + kPage);
  expectFailed();
  write("right", block + 63);
  expectRight();
}

// The second fault opens two pages, and the second one is of a block in use.
TEST(Guards, leave_a_block_in_use_open) {
  if (ranGuarded()) return;
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
  expectFailed();
  read("before", block - 1);
  expectFailed();
  char byte = 0;
  EXPECT_EQ(orMemcpy(&byte, block + kPage - 1, 1, orMemcpyDeviceToHost),
            orSuccess);
  EXPECT_EQ(byte, 7);
  write("right", block);
  expectRight();
}

// A program that goes on after a fault of its own has its guards no more, and
// its devices work.
TEST(Guards, let_a_program_handle_its_own_faults) {
  if (ranGuarded()) return;
  static sigjmp_buf back;
  signal(SIGSEGV, [](int) { siglongjmp(back, 1); });
  char* block = allocate(64);
  write("right", block);
  expectRight();
  volatile int* volatile nowhere = nullptr;
  if (sigsetjmp(back, 1) == 0) *nowhere = 1;
  write("right again", block);
  expectRight();
}

TEST(Guards, forget_the_oldest_of_too_many_blocks) {
  if (ranGuarded({"OPENREG_DEVICE_MEMORY=16G"})) return;
  constexpr int kMostRetired = 1 << 16;
  char* first = allocate(16);
  orFree(first);
  for (int i = 0; i < kMostRetired; ++i) orFree(allocate(16));
  read("late", first);
  expectFailed("which is in no block");
}

TEST(Guards, let_large_copies_pass) {
  if (ranGuarded()) return;
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

TEST(Guards, retire_only_blocks_and_only_on_streams) {
  if (ranGuarded()) return;
  char* block = allocate(64);
  orStream_t gone;
  EXPECT_EQ(orStreamCreate(&gone), orSuccess);
  EXPECT_EQ(orStreamDestroy(gone), orSuccess);
  EXPECT_EQ(orRetireBlock(block + 16, nullptr), orErrorInvalidValue);
  EXPECT_EQ(orRetireBlock(block, gone), orErrorInvalidResourceHandle);
}

TEST(Guards, do_not_judge_what_was_announced_and_not_touched) {
  if (ranGuarded()) return;
  char* freed = allocate(64);
  EXPECT_EQ(orFree(freed), orSuccess);
  const orAccess access{freed, 64, 0, nullptr, nullptr, 1};
  EXPECT_EQ(orAnnounceAccess(&access), orSuccess);
  launch("announces", [] {});
  expectRight();
}

TEST(Guards, name_the_free_if_only_that_has_a_place) {
  if (ranGuarded()) return;
  char* freed = allocate(64);
  orSetPlaces([] { return int64_t{1}; },
              [](int64_t, char* text, size_t bytes) {
                std::snprintf(text, bytes, "a line");
              });
  EXPECT_EQ(orFree(freed), orSuccess);
  read("late", freed);
  expectOne("late", "at a line it read byte 0 of the freed", freed, 64,
            ", which was freed at a line.");
  orSetPlaces(nullptr, nullptr);
}

TEST(Guards, know_the_threads_that_a_kernel_starts) {
  if (ranGuarded() && ranGuarded({"OPENREG_SCHEDULE=seed:1"})) return;
  char* block = allocate(64);
  launch("parallel", [block] {
    std::thread([block] {
      *(volatile char*)openreg::onDevice(block + 64) = 1;
    }).join();
  });
  const char* past = "it wrote 0 bytes past the end of the";
  expectOne("parallel", past, block, 64);
  // A thread with a name of its own is one of some command that runs.
  launch("parallel", [block] {
    std::thread([block] {
      pthread_setname_np(pthread_self(), "helper");
      *(volatile char*)openreg::onDevice(block + 64) = 1;
    }).join();
  });
  expectOne("parallel", past, block, 64);
  orFree(block);
}

TEST(Guards, say_when_another_command_may_have_done_it) {
  if (ranGuarded()) return;
  char* block = allocate(405);
  Stream stream;
  std::atomic<bool> is_over{false};
  ASSERT_EQ(enqueue(stream, until(is_over)), orSuccess);
  usleep(20000);
  write("guess", block + 405);
  EXPECT_EQ(orStreamSynchronize(nullptr), orErrorLaunchFailure);
  EXPECT_EQ(detail(), sentence("guess", "it wrote 0 bytes past the end of the",
                               block, 405, kOthers));
  is_over = true;
  expectFailed();
  orFree(block);
}

// A block is closed while a command has damaged another one and still runs.
TEST(Guards, blame_no_free_for_another_block) {
  if (ranGuarded()) return;
  char *block = allocate(405), *other = allocate(64);
  Stream stream;
  std::atomic<bool> has_written{false}, is_over{false};
  launch(stream, "culprit", [&, block] {
    *(volatile char*)openreg::onDevice(block + 405) = 1;
    has_written = true;
    while (!is_over) usleep(100);
  });
  while (!has_written) usleep(100);
  EXPECT_EQ(orRetireBlock(other, nullptr), orSuccess);
  EXPECT_EQ(orStreamSynchronize(nullptr), orSuccess);
  is_over = true;
  expectFailed(
      ": on stream 1048577 of openreg:0 it wrote 0 bytes past the end "
      "of the block of 405 bytes at " +
          addressOf(block) + ".",
      stream);
}

TEST(Guards, name_the_kernel_whose_thread_faulted) {
  if (ranGuarded()) return;
  char* block = allocate(64);
  Stream other;
  std::atomic<bool> runs{false}, is_over{false};
  launch(other, "bystander", [&] {
    runs = true;
    while (!is_over) usleep(100);
  });
  while (!runs) usleep(100);
  write("culprit", block + 64);
  EXPECT_EQ(orStreamSynchronize(nullptr), orErrorLaunchFailure);
  is_over = true;
  expectFailed("stopped in culprit: ");
  orFree(block);
}

TEST(Guards, name_the_lines_of_the_program) {
  if (ranGuarded()) return;
  static int64_t place = 0;
  orSetPlaces([] { return ++place; },
              [](int64_t number, char* text, size_t bytes) {
                std::snprintf(text, bytes, "line %d", static_cast<int>(number));
              });
  char* block = allocate(64);   // line 1
  write("placed", block + 64);  // line 2
  expectOne("placed", "at line 2 it wrote 0 bytes past the end of the", block,
            64, ", which was allocated at line 1.");
  orFree(block);  // line 3
  read("placed", block);
  expectOne("placed", "at line 4 it read byte 0 of the freed", block, 64,
            ", which was allocated at line 1 and freed at line 3.");
  block = allocate(64);                                 // line 5
  EXPECT_EQ(orRetireBlock(block, nullptr), orSuccess);  // line 6
  EXPECT_EQ(orDeviceSynchronize(), orSuccess);
  read("placed", block);
  expectOne("placed", "at line 7 it read byte 0 of the freed", block, 64,
            ", which was allocated at line 5 and freed at line 6.");
  orSetPlaces(nullptr, nullptr);
}

TEST(Guards, come_before_what_a_kernel_throws) {
  if (ranGuarded()) return;
  char* block = allocate(64);
  launch("thrower", [block] {
    *(volatile char*)openreg::onDevice(block + 64) = 1;
    throw openreg::Refusal("it follows from what was read");
  });
  expectOne("thrower", "it wrote 0 bytes past the end of the", block, 64);
  launch("refuser", [] { throw openreg::Refusal("no"); });
  EXPECT_EQ(orStreamSynchronize(nullptr), orErrorKernelRefused);
  orFree(block);
}

TEST(Guards, give_addresses_back_when_they_are_needed) {
  const std::string small = "OPENREG_DEVICE_MEMORY=8M";
  if (ranAgain({{small, "OPENREG_SANITIZE=memory"},
                {small, "OPENREG_SANITIZE=races,memory"}}))
    return;
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
  expectFailed();
}

TEST(Guards, need_mappings) {
  std::FILE* file = std::fopen("/proc/sys/vm/max_map_count", "r");
  long most = 0;
  ASSERT_TRUE(file && std::fscanf(file, "%ld", &most) == 1);
  std::fclose(file);
  if (most > 1 << 18) GTEST_SKIP() << "The system has no such limit.";
  if (ranGuarded({"OPENREG_DEVICE_MEMORY=16G"})) return;
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

TEST(Guards, end_a_page_with_a_block) {
  if (ranGuarded()) return;
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

TEST(Guarded, DISABLED_others) {
  write("right", allocate(64));
  expectRight();
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
  expectRight();
  signal(SIGSEGV, [](int) { _exit(3); });
  char* block = allocate(64);
  write("one past", block + 64);
  expectFailed();
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

TEST(Guards, are_off_unless_they_are_asked_for) {
  int is_guarded = 0, is_started = 1;
  if (!ranAgain(
          {{"OPENREG_SANITIZE=memory"}, {"OPENREG_SANITIZE=races,memory"}})) {
    EXPECT_EQ(orMemoryIsGuarded(&is_guarded), orSuccess);
    EXPECT_TRUE(is_guarded);
    EXPECT_EQ(orDeviceIsStarted(0, &is_started), orSuccess);
    EXPECT_FALSE(is_started);
    return;
  }
  if (std::getenv("OPENREG_SANITIZE")) return;
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
  EXPECT_EQ(orVisitFindings(nullptr, nullptr), orErrorInvalidValue);
}

}  // namespace guards_test
