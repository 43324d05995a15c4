// SPDX-License-Identifier: BSD-3-Clause
// Runs the ranks of a group: as threads of this process, or as processes.
#pragma once

#include "torch_openreg/common/orccl/interface/orccl.h"

#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

inline void sleepMs(int ms) {
  std::this_thread::sleep_for(std::chrono::milliseconds(ms));
}

inline void ok(orError_t error) {
  if (error) throw std::runtime_error(orGetErrorDetail());
}

/// Bytes of the current device's memory.
inline size_t usedMemory() {
  size_t free = 0, total = 0;
  ok(orMemGetInfo(&free, &total));
  return total - free;
}

/// A group that has left is freed later, by a thread of its own.
inline void waitUntilMemoryIsUsed(size_t bytes) {
  for (int ms = 0; usedMemory() != bytes && ms < 10000; ++ms) sleepMs(1);
  ASSERT_EQ(usedMemory(), bytes);
}

/// Memory of one rank. Freeing device memory waits for all ranks of a process,
/// which may wait for the one that frees, so a rank allocates once.
struct Arena {
  static constexpr size_t kBytes = size_t{96} << 20;

  Arena() { ok(orMalloc(&begin, kBytes)); }
  ~Arena() { orFree(begin); }
  static Arena*& current() {
    thread_local Arena* arena = nullptr;
    return arena;
  }

  void* begin = nullptr;
  size_t used = 0;
  int blocks = 0;
};

/// Bytes of this rank's memory.
class Block {
 public:
  explicit Block(size_t bytes) {
    Arena& arena = *Arena::current();
    if (arena.used + bytes > Arena::kBytes) throw std::runtime_error("full");
    data = static_cast<char*>(arena.begin) + arena.used;
    arena.used += (bytes + 511) / 512 * 512;
    ++arena.blocks;
  }
  ~Block() {
    Arena& arena = *Arena::current();
    if (--arena.blocks == 0) arena.used = 0;
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  void* data;
};

struct Stream {
  Stream() { ok(orStreamCreate(&handle)); }
  Stream(const Stream&) = delete;
  ~Stream() { orStreamDestroy(handle); }
  operator orStream_t() const { return handle; }
  orStream_t handle = nullptr;
};

template <class T>
void write(const Block& block, const std::vector<T>& values,
           orStream_t stream) {
  if (values.empty()) return;
  ok(orMemcpyAsync(block.data, values.data(), values.size() * sizeof(T),
                   orMemcpyHostToDevice, stream));
}

/// Waits for the stream.
template <class T>
std::vector<T> read(const Block& block, size_t count, orStream_t stream) {
  std::vector<T> values(count);
  ok(orStreamSynchronize(stream));
  if (count == 0) return values;
  ok(orMemcpyAsync(values.data(), block.data, count * sizeof(T),
                   orMemcpyDeviceToHost, stream));
  return values;
}

/// How ranks find each other.
struct Exchange {
  std::function<void(const std::string& key, const std::string& value)> publish;
  std::function<std::string(const std::string& key)> lookUp;
};

/// A call that the library refused.
struct Refused : std::runtime_error {
  explicit Refused(orcclResult_t code)
      : std::runtime_error(orcclGetLastError()), code(code) {}
  orcclResult_t code;
};

inline void check(orcclResult_t result) {
  if (result) throw Refused(result);
}

/// A send or a receive.
struct Transfer {
  bool is_send;
  int peer;
  void* data;
  size_t bytes;
};

/// One rank's communicator; its calls throw what the library refuses.
class Group {
 public:
  Group(int rank, int size, Exchange exchange)
      : rank_(rank), size_(size), exchange_(std::move(exchange)) {
    orcclCard_t card;
    check(orcclCommInitRank(&comm, size, rank, &card));
    exchange_.publish(keyOf(rank), {card.reserved, sizeof(card)});
  }
  ~Group() {
    if (comm) orcclCommDestroy(comm);
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  /// The communicator, which knows the other ranks.
  orcclComm_t connected() {
    if (is_connected_ || isAborted()) return comm;
    std::vector<orcclCard_t> cards(size_);
    for (int rank = 0; rank < size_; ++rank) {
      const std::string card = exchange_.lookUp(keyOf(rank));
      std::memcpy(&cards[rank], card.data(), sizeof(orcclCard_t));
    }
    check(orcclCommConnect(comm, cards.data()));
    is_connected_ = true;
    return comm;
  }
  void barrier(orStream_t stream) { check(orcclBarrier(connected(), stream)); }
  /// Waits until all ranks have come here.
  void meet(orStream_t stream) {
    barrier(stream);
    ok(orStreamSynchronize(stream));
  }
  void broadcast(orStream_t stream, void* data, size_t bytes, int root) {
    check(orcclBroadcast(data, bytes, orcclBytes, root, connected(), stream));
  }
  void allReduce(orStream_t stream, void* output, const void* input,
                 size_t count, orcclDataType_t type, orcclRedOp_t op) {
    check(orcclAllReduce(input, output, count, type, op, connected(), stream));
  }
  void reduce(orStream_t stream, void* output, const void* input, size_t count,
              orcclDataType_t type, orcclRedOp_t op, int root) {
    check(
        orcclReduce(input, output, count, type, op, root, connected(), stream));
  }
  void allGather(orStream_t stream, const std::vector<void*>& outputs,
                 const void* input, size_t bytes) {
    check(orcclAllGather(input, outputs.data(), bytes, orcclBytes, connected(),
                         stream));
  }
  void reduceScatter(orStream_t stream, void* output,
                     const std::vector<const void*>& inputs, size_t count,
                     orcclDataType_t type, orcclRedOp_t op) {
    check(orcclReduceScatter(inputs.data(), output, count, type, op,
                             connected(), stream));
  }
  void transfer(orStream_t stream, const std::vector<Transfer>& transfers) {
    connected();
    check(orcclGroupStart());
    for (const auto& [is_send, peer, data, bytes] : transfers) {
      check(is_send ? orcclSend(data, bytes, orcclBytes, peer, comm, stream)
                    : orcclRecv(data, bytes, orcclBytes, peer, comm, stream));
    }
    check(orcclGroupEnd());
  }
  void abort() { check(orcclCommAbort(comm, nullptr)); }
  bool isAborted() {
    orcclResult_t error;
    check(orcclCommGetAsyncError(comm, &error));
    return error != orcclSuccess;
  }
  /// What the ranks disagree about.
  std::string problem() {
    orcclResult_t error;
    check(orcclCommGetAsyncError(comm, &error));
    return error == orcclInvalidUsage ? orcclGetLastError() : "";
  }
  std::string endedPeer() {
    return orcclCommCheckPeers(comm) == orcclRemoteError ? orcclGetLastError()
                                                         : "";
  }

  orcclComm_t comm = nullptr;

 private:
  static std::string keyOf(int rank) {
    return "mailbox/" + std::to_string(rank);
  }

  const int rank_, size_;
  bool is_connected_ = false;
  Exchange exchange_;
};

/// A group on this thread's device.
inline std::shared_ptr<Group> makeGroup(int rank, int size, Exchange exchange) {
  return std::make_shared<Group>(rank, size, std::move(exchange));
}

/// One rank's part of a test.
using Part = std::function<void(Group& group, orStream_t stream)>;

inline void runPart(int rank, int size, Exchange exchange, const Part& part) {
  Arena arena;
  Arena::current() = &arena;
  Group group(rank, size, std::move(exchange));
  const Stream stream;
  part(group, stream.handle);
  EXPECT_EQ(orStreamSynchronize(stream.handle), orSuccess)
      << orGetErrorDetail();
}

/// A table in memory.
class Table {
 public:
  Exchange exchange() {
    return {[this](const std::string& key, const std::string& value) {
              std::lock_guard lock(mutex_);
              values_[key] = value;
              changed_.notify_all();
            },
            [this](const std::string& key) {
              std::unique_lock lock(mutex_);
              const bool found =
                  changed_.wait_for(lock, std::chrono::seconds(20),
                                    [&] { return values_.contains(key); });
              if (!found) throw std::runtime_error("nobody published " + key);
              return values_[key];
            }};
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> values_;
};

/// The ranks are threads, each with a device in turn.
inline void onThreads(int size, const Part& part) {
  Table table;
  int devices = 0;
  ok(orGetDeviceCount(&devices));
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < size; ++rank) {
    ranks.emplace_back([&, rank] {
      ok(orSetDevice(rank % devices));
      runPart(rank, size, table.exchange(), part);
    });
  }
  for (auto& rank : ranks) rank.join();
}

/// A table in files.
inline Exchange exchangeIn(const std::filesystem::path& folder) {
  const auto place = [folder](std::string key) {
    for (char& letter : key) letter = letter == '/' ? '-' : letter;
    return folder / key;
  };
  return {[place](const std::string& key, const std::string& value) {
            const auto draft = place(key).string() + ".draft";
            std::ofstream(draft, std::ios::binary) << value;
            std::filesystem::rename(draft, place(key));
          },
          [place](const std::string& key) {
            for (int turn = 0; turn < 20'000; ++turn) {
              if (std::filesystem::exists(place(key))) {
                std::stringstream content;
                content << std::ifstream(place(key), std::ios::binary).rdbuf();
                return content.str();
              }
              sleepMs(1);
            }
            throw std::runtime_error("nobody published " + key);
          }};
}

/// Runs the test that calls this in one more process for each rank, where the
/// call runs `part`; `settings` are of the environment. The status of each rank
/// as `waitpid` gives it; in a rank, nothing.
inline std::vector<int> onProcesses(int size, const Part& part,
                                    std::vector<std::string> settings = {}) {
  if (const char* text = std::getenv("OPENREG_TEST_RANK")) {
    const int rank = std::stoi(text);
    runPart(rank, size, exchangeIn(std::getenv("OPENREG_TEST_FOLDER")), part);
    return {};
  }
  std::string folder = std::filesystem::temp_directory_path() / "ranks-XXXXXX";
  if (!mkdtemp(folder.data())) throw std::runtime_error("no folder");
  const auto* test = testing::UnitTest::GetInstance()->current_test_info();
  std::string filter = std::string("--gtest_filter=") +
                       test->test_suite_name() + "." + test->name();
  std::string disabled = "--gtest_also_run_disabled_tests";
  settings.push_back("OPENREG_TEST_FOLDER=" + folder);
  std::vector<pid_t> children;
  for (int rank = 0; rank < size; ++rank) {
    std::string program = "/proc/self/exe";
    std::string number = "OPENREG_TEST_RANK=" + std::to_string(rank);
    std::vector<char*> environment{number.data()};
    for (auto& setting : settings) environment.push_back(setting.data());
    for (char** old = environ; *old; ++old) environment.push_back(*old);
    environment.push_back(nullptr);
    char* arguments[] = {program.data(), filter.data(), disabled.data(),
                         nullptr};
    pid_t child = 0;
    EXPECT_EQ(posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, arguments,
                          environment.data()),
              0);
    children.push_back(child);
  }
  std::vector<int> statuses;
  for (pid_t child : children) {
    waitpid(child, &statuses.emplace_back(), 0);
  }
  std::filesystem::remove_all(folder);
  return statuses;
}

/// The same, if all ranks must succeed.
inline void onGoodProcesses(int size, const Part& part,
                            std::vector<std::string> settings = {}) {
  for (int status : onProcesses(size, part, std::move(settings))) {
    EXPECT_EQ(status, 0);
  }
}
