// SPDX-License-Identifier: BSD-3-Clause
// A schedule that is chosen: which choices a program has, and what follows from
// each.
#include "torch_openreg/common/openreg/interface/openreg_kernels.h"
#include "torch_openreg/common/openreg/interface/openreg_tools.h"
#include "torch_openreg/tests/openreg/captures.h"
#include "torch_openreg/tests/openreg/shorthands.h"
#include "torch_openreg/tests/openreg/streams.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

namespace order_test {

struct Copied {
  std::string stream, name, ready;
  int device;
  int64_t handle;
  std::vector<uint64_t> before;
  std::vector<size_t> conflicts;
};

std::vector<Copied> steps() {
  std::vector<Copied> all;
  EXPECT_EQ(
      orVisitSteps(
          [](const orStep* step, void* data) {
            static_cast<std::vector<Copied>*>(data)->push_back(
                {step->stream,
                 step->name,
                 step->ready,
                 step->device,
                 step->handle,
                 {step->before, step->before + step->streams},
                 {step->conflicts, step->conflicts + step->conflict_count}});
          },
          &all),
      orSuccess);
  return all;
}

std::string names() {
  std::string all;
  for (const Copied& step : steps()) all += step.name;
  return all;
}

/// Runs the test that calls this again in each of these orders, in which this
/// is wanted.
bool ranInOrder(
    const std::vector<std::pair<std::string, std::string>>& orders) {
  std::vector<std::vector<std::string>> processes;
  for (const auto& [list, wanted] : orders)
    processes.push_back({"OPENREG_SCHEDULE=order:" + list, "WANTED=" + wanted});
  return ranAgain(processes);
}
const char* wanted() { return std::getenv("WANTED"); }

void touch(const void* pointer, bool is_write) {
  const orAccess access{pointer, 4, 0, nullptr, nullptr, is_write};
  EXPECT_EQ(orAnnounceAccess(&access), orSuccess);
}

void launch(const Stream& stream, const char* name, std::string* ran) {
  EXPECT_EQ(openreg::launch(stream, name, [ran, name] { *ran += name; }),
            orSuccess);
}

// Two streams of two commands: a1 a2 and b1 b2.
std::string runFour() {
  static std::string ran;
  Stream a, b;
  launch(a, "1", &ran);
  launch(a, "2", &ran);
  launch(b, "3", &ran);
  launch(b, "4", &ran);
  orDeviceSynchronize();
  return ran;
}

TEST(Order, a_list_names_the_stream_of_each_choice) {
  if (ranInOrder({{"", "1234"},
                  {"B", "3124"},
                  {"B,B", "3412"},
                  {"A,B", "1324"},
                  {"A,B,B", "1342"}}))
    return;
  EXPECT_EQ(runFour(), wanted());
}

TEST(Order, a_stream_with_a_minus_comes_last_behind_the_list) {
  if (ranInOrder({{"-A", "3412"}, {"A,-A", "1342"}, {"-A,-B", "1234"}})) return;
  EXPECT_EQ(runFour(), wanted());
}

TEST(Order, behind_the_list_choices_may_be_random) {
  std::string path =
      std::filesystem::temp_directory_path() / "openreg-order-XXXXXX";
  std::vector<std::pair<std::string, std::string>> seeds;
  if (!wanted()) {
    close(mkstemp(path.data()));
    for (int seed = 0; seed < 8; ++seed)
      seeds.push_back({"B,seed:" + std::to_string(seed), path});
  }
  if (ranInOrder(seeds)) {
    std::ifstream file(path);
    std::set<std::string> seen;
    for (std::string line; std::getline(file, line);) {
      EXPECT_EQ(line[0], '3');
      seen.insert(line);
    }
    std::filesystem::remove(path);
    EXPECT_GT(seen.size(), 1u);
    return;
  }
  const std::string ran = runFour();
  EXPECT_LT(ran.find('1'), ran.find('2'));
  EXPECT_LT(ran.find('3'), ran.find('4'));
  std::ofstream(wanted(), std::ios::app) << ran << "\n";
}

TEST(Order, a_stream_that_cannot_run_there_stops_the_device) {
  if (ranInOrder(
          {{"C",
            "openreg:0 stopped in its order: choice 1 of "
            "OPENREG_SCHEDULE=order is C, and what can run there is A, B"}}))
    return;
  Stream a, b;
  std::string ran;
  launch(a, "1", &ran);
  launch(b, "2", &ran);
  EXPECT_EQ(orDeviceSynchronize(), orErrorLaunchFailure);
  EXPECT_EQ(detail(), wanted());
}

TEST(Order, a_list_that_can_fit_no_program_is_refused) {
  const std::string name =
      " is no stream, and streams are named A, B, ..., Z, AA and so on, or "
      "host.";
  std::vector<std::pair<std::string, std::string>> lists = {
      {"A,x", "Entry x" + name},
      {"A,,B", "Entry " + name},
      {"-A,B", "Entry B" + name},
      {"-1", "Entry -1" + name},
      {"seed:x", "Entry seed:x" + name},
      {"A,seed:", "Entry seed:" + name},
      {"seed:18446744073709551616", "Entry seed:18446744073709551616" + name},
      {"seed:1,A", "Nothing may follow the seed, but A does."}};
  for (auto& [list, problem] : lists)
    problem = "OPENREG_SCHEDULE=order:" + list + " is not allowed. " + problem;
  if (ranInOrder(lists)) return;
  int count = 0;
  EXPECT_EQ(orGetDeviceCount(&count), orErrorInvalidConfiguration);
  EXPECT_EQ(detail(), wanted());
}

// A writes, B reads the same, C reads other memory and waits for A.
TEST(Order, a_step_tells_what_else_could_have_run_and_what_it_conflicts_with) {
  if (ranInOrder({{"", ""}})) return;
  Stream a, b, c;
  Event event;
  char* block = allocate(64);
  std::string ran;
  touch(block, true);
  launch(a, "1", &ran);
  orEventRecord(event, a);
  touch(block, false);
  launch(b, "2", &ran);
  orStreamWaitEvent(c, event, 0);
  touch(block + 32, false);
  launch(c, "3", &ran);
  launch(c, "4", &ran);
  orDeviceSynchronize();
  const std::vector<Copied> all = steps();
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(names(), "1234");
  EXPECT_EQ(all[0].ready, "A,B");
  EXPECT_EQ(all[1].ready, "B,C");
  EXPECT_EQ(all[2].ready, "C");
  EXPECT_EQ(all[2].stream, "C");
  EXPECT_EQ(all[2].device, 0);
  EXPECT_EQ(all[2].handle, reinterpret_cast<int64_t>(c.handle));
  EXPECT_TRUE(all[0].conflicts.empty());
  EXPECT_EQ(all[1].conflicts, std::vector<size_t>{0});
  EXPECT_TRUE(all[2].conflicts.empty());
  // Nothing is known of the last one, so it could touch what B does.
  EXPECT_EQ(all[3].conflicts, std::vector<size_t>{1});
  const std::vector<uint64_t> after_one{0, 1, 0, 0}, after_two{0, 1, 0, 1};
  EXPECT_EQ(all[2].before, after_one);
  EXPECT_EQ(all[3].before, after_two);
}

TEST(Order, steps_that_touch_different_bytes_do_not_conflict) {
  if (ranInOrder({{"", ""}})) return;
  Stream a, b;
  char* block = allocate(64);
  std::string ran;
  touch(block, true);
  launch(a, "1", &ran);
  touch(block + 4, true);
  launch(b, "2", &ran);
  orDeviceSynchronize();
  const std::vector<Copied> all = steps();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_TRUE(all[1].conflicts.empty());
}

TEST(Order, without_a_list_there_are_no_steps) {
  Stream a;
  std::string ran;
  launch(a, "1", &ran);
  orDeviceSynchronize();
  EXPECT_TRUE(steps().empty());
  EXPECT_EQ(orVisitSteps(nullptr, nullptr), orErrorInvalidValue);
}

// The host polls for A, while B has work of its own.
TEST(Order, a_query_is_a_step_of_the_host) {
  if (ranInOrder({{"", "12y|"},
                  {"A,host", "1y|2"},
                  {"host", "n1|2"},
                  {"host,B", "n21|"}}))
    return;
  Stream a, b;
  Event event;
  std::string ran;
  launch(a, "1", &ran);
  orEventRecord(event, a);
  launch(b, "2", &ran);
  const bool is_over = orEventQuery(event) == orSuccess;
  ran += is_over ? "y" : "n";
  // The second time, the question is a wait.
  if (!is_over) {
    EXPECT_EQ(orEventQuery(event), orSuccess);
  }
  ran += "|";
  orDeviceSynchronize();
  EXPECT_EQ(ran, wanted());
  const std::vector<Copied> all = steps();
  ASSERT_EQ(all.size(), 3u);
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].stream != "host") continue;
    EXPECT_EQ(all[i].name, "orEventQuery");
    // Of A it asks, and of B it does not.
    for (size_t j : all[i].conflicts) EXPECT_EQ(all[j].name, "1");
    EXPECT_EQ(all[i].conflicts.size(), is_over ? 1u : 0u);
  }
  // The host has its answer, so it is no choice any more.
  launch(a, "3", &ran);
  orDeviceSynchronize();
  EXPECT_EQ(steps().back().ready, "A");
}

// A stream is asked like an event, and only for its own work.
TEST(Order, a_query_of_a_stream_is_a_step_of_the_host) {
  if (ranInOrder({{"", "12|3"}, {"host", "n1|23"}})) return;
  Stream a, b;
  std::string ran;
  launch(a, "1", &ran);
  launch(b, "2", &ran);
  orError_t answer;
  while ((answer = orStreamQuery(a)) == orErrorNotReady) ran += "n";
  EXPECT_EQ(answer, orSuccess);
  // What the host knows is no question, whatever came since.
  launch(b, "3", &ran);
  EXPECT_EQ(orStreamQuery(a), orSuccess);
  ran += "|";
  orDeviceSynchronize();
  EXPECT_EQ(ran, wanted());
}

// The host asks, enqueues, and asks again: the second question is new.
TEST(Order, a_question_after_new_work_is_another_question) {
  if (ranInOrder({{"host,host", "12"}})) return;
  Stream a, b;
  Event event;
  std::string ran;
  launch(a, "1", &ran);
  orEventRecord(event, a);
  EXPECT_EQ(orEventQuery(event), orErrorNotReady);
  launch(b, "2", &ran);
  EXPECT_EQ(orEventQuery(event), orErrorNotReady);
  EXPECT_EQ(orEventQuery(event), orSuccess);
  orDeviceSynchronize();
  EXPECT_EQ(ran, wanted());
}

// The host's thread of the device touches memory: a step of that stream.
TEST(Order, a_host_function_makes_no_step_of_the_host) {
  if (ranInOrder({{"", ""}})) return;
  Stream a, b;
  static char byte = 0;
  std::string ran;
  EXPECT_EQ(orLaunchHostFunc(
                a,
                [](void*) {
                  const orAccess access{&byte, 1, 0, nullptr, nullptr, 1};
                  EXPECT_EQ(orAnnounceHostAccess("host", &access), orSuccess);
                },
                nullptr),
            orSuccess);
  launch(b, "1", &ran);
  orDeviceSynchronize();
  EXPECT_EQ(steps().size(), 2u);
}

// The two touch memory far apart, the one behind first, on both devices.
TEST(Order, memory_behind_and_memory_before_are_apart) {
  if (ranInOrder({{"", ""}})) return;
  Stream a, b;
  std::string ran;
  char* block = allocate(64);
  touch(block + 32, true);
  launch(a, "1", &ran);
  touch(block, true);
  launch(b, "2", &ran);
  orSetDevice(1);
  Stream c;
  launch(c, "3", &ran);
  orDeviceSynchronize();
  orSetDevice(0);
  orDeviceSynchronize();
  EXPECT_TRUE(steps()[1].conflicts.empty());
}

// The host touches pinned memory while a copy may still write it.
TEST(Order, an_access_of_the_hosts_is_a_step) {
  if (ranInOrder({{"", "y"}, {"host", "n"}})) return;
  Stream a;
  void* pinned = nullptr;
  ASSERT_EQ(orMallocHost(&pinned, 4), orSuccess);
  *static_cast<char*>(pinned) = 'n';
  char* block = allocate(4);
  EXPECT_EQ(orMemset(block, 'y', 4), orSuccess);
  EXPECT_EQ(orMemcpyAsync(pinned, block, 4, orMemcpyDeviceToHost, a),
            orSuccess);
  const orAccess access{pinned, 4, 0, nullptr, nullptr, 0};
  EXPECT_EQ(orAnnounceHostAccess("sum", &access), orSuccess);
  EXPECT_EQ(*static_cast<char*>(pinned), *wanted());
  orDeviceSynchronize();
  const std::vector<Copied> all = steps();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].handle, 0) << "the default stream";
  EXPECT_EQ(all[2].conflicts, std::vector<size_t>{1});
  orFreeHost(pinned);
}

// A graph with two branches after a common node, launched twice.
TEST(Order, each_node_of_a_graph_is_a_step) {
  if (ranInOrder({{"", "12341234"}, {"B", "13241234"}})) return;
  Stream origin, side;
  static std::string ran;
  const auto branches = [&] {
    Event forked, joined;
    launch(origin, "1", &ran);
    orEventRecord(forked, origin);
    orStreamWaitEvent(side, forked, 0);
    launch(side, "2", &ran);
    launch(origin, "3", &ran);
    orEventRecord(joined, side);
    orStreamWaitEvent(origin, joined, 0);
    launch(origin, "4", &ran);
  };
  const Executable exec = executable(origin, branches);
  EXPECT_EQ(orGraphLaunch(exec, origin), orSuccess);
  EXPECT_EQ(orGraphLaunch(exec, origin), orSuccess);
  orDeviceSynchronize();
  EXPECT_EQ(ran, wanted());
  const std::vector<Copied> all = steps();
  ASSERT_EQ(all.size(), 8u);
  EXPECT_EQ(names(), wanted());
  EXPECT_EQ(all[2].conflicts, std::vector<size_t>{1});
  EXPECT_TRUE(all[4].conflicts.empty());
}

TEST(Order, what_announces_nothing_may_touch_anything_in_guarded_memory_too) {
  const std::string order = "OPENREG_SCHEDULE=order:";
  if (ranAgain({{order, "OPENREG_SANITIZE=races"},
                {order, "OPENREG_SANITIZE=memory"},
                {order, "OPENREG_SANITIZE=races,memory"}}))
    return;
  Stream a, b;
  std::string ran;
  launch(a, "1", &ran);
  launch(b, "2", &ran);
  orDeviceSynchronize();
  ASSERT_EQ(steps().size(), 2u);
  EXPECT_EQ(steps()[1].conflicts.size(), 1u);
}

}  // namespace order_test
