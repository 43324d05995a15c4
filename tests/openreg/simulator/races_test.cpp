// SPDX-License-Identifier: BSD-3-Clause
// The sanitizer: which commands race, by the order that the program gives them.
#include "torch_openreg/common/openreg/interface/openreg_kernels.h"
#include "torch_openreg/common/openreg/interface/openreg_signals.h"
#include "torch_openreg/common/openreg/interface/openreg_tools.h"
#include "torch_openreg/tests/openreg/captures.h"
#include "torch_openreg/tests/openreg/shorthands.h"
#include "torch_openreg/tests/openreg/streams.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace races_test {

/// Finds races while it lives, and forgets them at its end.
struct Search {
  Search() { EXPECT_EQ(orFindRaces(1), orSuccess); }
  ~Search() {
    orDeviceSynchronize();
    orFindRaces(0);
    orClearFindings();
  }
};

struct Found {
  std::string first, second, sentence;
  bool first_writes, second_writes, was_reused;
  size_t offset, bytes;
};

std::vector<Found> found() {
  std::vector<Found> all;
  orVisitFindings(
      [](const orFinding* race, void* data) {
        EXPECT_TRUE(race->is_race);
        const orFoundCommand &first = race->other, &second = race->command;
        static_cast<std::vector<Found>*>(data)->push_back(
            {first.name, second.name, race->sentence, first.is_write != 0,
             second.is_write != 0, race->was_freed != 0,
             static_cast<size_t>(static_cast<const char*>(second.pointer) -
                                 static_cast<const char*>(race->block)),
             second.bytes});
      },
      &all);
  return all;
}

void touch(const void* pointer, size_t bytes, bool is_write) {
  const orAccess access{pointer, bytes, 0, nullptr, nullptr, is_write};
  EXPECT_EQ(orAnnounceAccess(&access), orSuccess);
}

void launch(const Stream& stream, const char* name) {
  EXPECT_EQ(openreg::launch(stream, name, [] {}), orSuccess);
}

void reads(const Stream& stream, const char* name, const void* at,
           size_t bytes = 64) {
  touch(at, bytes, false);
  launch(stream, name);
}

void writes(const Stream& stream, const char* name, const void* at,
            size_t bytes = 64) {
  touch(at, bytes, true);
  launch(stream, name);
}

/// For a part of a block that is not contiguous.
void launch(const Stream& stream, const char* name, const orAccess& access) {
  EXPECT_EQ(orAnnounceAccess(&access), orSuccess);
  launch(stream, name);
}

/// A block of a test, and two streams.
struct RacesTest : testing::Test {
  ~RacesTest() override { orFree(block); }
  Search search;
  char* block = allocate(4096);
  Stream one, two;
};

TEST_F(RacesTest, a_reader_that_does_not_wait_for_the_writer_is_found) {
  writes(one, "producer", block);
  reads(two, "consumer", block);
  ASSERT_EQ(found().size(), 1u);
  const Found race = found()[0];
  EXPECT_EQ(race.first, "producer");
  EXPECT_EQ(race.second, "consumer");
  EXPECT_TRUE(race.first_writes && !race.second_writes);
  EXPECT_FALSE(race.was_reused);
  EXPECT_EQ(race.offset, 0u);
  EXPECT_EQ(race.bytes, 64u);
  EXPECT_NE(race.sentence.find("nothing makes it wait; call wait_stream on"),
            std::string::npos)
      << race.sentence;
}

TEST_F(RacesTest,
       an_event_orders_what_came_before_its_record_and_nothing_else) {
  Event event;
  writes(one, "early", block);
  orEventRecord(event, one);
  writes(one, "late", block + 64);
  orStreamWaitEvent(two, event, 0);
  reads(two, "reader", block);
  EXPECT_TRUE(found().empty());
  reads(two, "hasty", block + 64);
  ASSERT_EQ(found().size(), 1u);
  EXPECT_EQ(found()[0].first, "late");
}

TEST_F(RacesTest, an_event_orders_even_if_it_is_complete_before_the_wait) {
  Event event;
  writes(one, "writer", block);
  orEventRecord(event, one);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  orStreamWaitEvent(two, event, 0);
  reads(two, "reader", block);
  EXPECT_TRUE(found().empty());
}

TEST_F(RacesTest, order_passes_through_a_third_stream) {
  Stream three;
  writes(one, "writer", block);
  follow(three, one);
  follow(two, three);
  writes(two, "second writer", block);
  EXPECT_TRUE(found().empty());
}

TEST_F(RacesTest, two_readers_do_not_race_but_a_writer_races_with_both) {
  Stream three;
  reads(one, "first", block);
  reads(two, "second", block);
  EXPECT_TRUE(found().empty());
  writes(three, "writer", block);
  EXPECT_EQ(found().size(), 2u);
}

TEST_F(RacesTest, every_wait_of_the_host_orders_what_it_enqueues_next) {
  Event event;
  writes(one, "a", block);
  orStreamSynchronize(one);
  writes(two, "b", block);
  orEventRecord(event, two);
  orEventSynchronize(event);
  writes(one, "c", block);
  orDeviceSynchronize();
  writes(two, "d", block);
  char bytes[64];
  follow(one, two);
  orMemcpyAsync(bytes, block, 64, orMemcpyDeviceToHost, one);
  writes(two, "e", block);
  EXPECT_TRUE(found().empty());
}

TEST_F(RacesTest, copies_and_memsets_announce_themselves) {
  orMemsetAsync(block, 0, 128, one);
  orMemcpyAsync(block + 1024, block + 64, 64, orMemcpyDeviceToDevice, two);
  ASSERT_EQ(found().size(), 1u);
  EXPECT_EQ(found()[0].first, "memset");
  EXPECT_EQ(found()[0].second, "memcpy");
}

TEST_F(RacesTest, a_copy_that_is_refused_announces_nothing) {
  char bytes[64];
  writes(one, "writer", block);
  Stream other;
  ASSERT_EQ(orStreamBeginCapture(other.handle, orStreamCaptureModeGlobal),
            orSuccess);
  EXPECT_NE(orMemcpyAsync(bytes, block, 64, orMemcpyDeviceToHost, two.handle),
            orSuccess);
  orGraph_t graph;
  EXPECT_EQ(orStreamEndCapture(other.handle, &graph),
            orErrorStreamCaptureInvalidated);
  launch(two, "innocent");
  EXPECT_TRUE(found().empty());
}

TEST_F(RacesTest, the_host_may_touch_all_to_the_end_of_a_block) {
  void* pinned;
  ASSERT_EQ(orMallocHost(&pinned, 4096), orSuccess);
  writes(one, "writer", static_cast<char*>(pinned) + 4000);
  const orAccess all{pinned, 0, 0, nullptr, nullptr, 0};
  EXPECT_EQ(orAnnounceHostAccess("reader", &all), orSuccess);
  ASSERT_EQ(found().size(), 1u);
  EXPECT_EQ(found()[0].second, "reader");
  orFreeHost(pinned);
}

TEST_F(RacesTest, bytes_that_are_not_shared_do_not_race) {
  writes(one, "front", block, 64);
  writes(two, "back", block + 64, 64);
  EXPECT_TRUE(found().empty());
}

TEST_F(RacesTest,
       parts_that_interleave_are_apart_and_overlapping_ones_are_not) {
  const struct {
    const char* what;
    std::vector<int64_t> sizes, strides;
    std::vector<int> apart;  // from the one at 0, in elements
    int overlaps;
  } parts[] = {
      {"columns of a matrix", {8, 4}, {16, 1}, {4, 12}, 3},
      {"columns that reach into the next row", {8, 4}, {16, 1}, {}, 14},
      {"rows behind four more dimensions",
       {2, 2, 2, 2, 4},
       {120, 56, 24, 8, 1},
       {4},
       2},
      // Rows that follow one another are one row.
      {"each second element of rows of 8", {2, 4, 1}, {8, 2, 100}, {1}, 2},
  };
  for (const auto& [what, sizes, strides, apart, overlaps] : parts) {
    const auto touches = [&](const Stream& stream, int first) {
      launch(stream, what,
             {block + 4 * first, 4, static_cast<int>(sizes.size()),
              sizes.data(), strides.data(), 1});
    };
    touches(one, 0);
    for (int first : apart) touches(two, first);
    EXPECT_TRUE(found().empty()) << what;
    touches(two, overlaps);
    EXPECT_EQ(found().size(), 1u) << what;
    orDeviceSynchronize();
    orClearFindings();
  }
}

TEST_F(RacesTest, of_five_gaps_only_the_range_is_known) {
  const int64_t sizes[] = {2, 2, 2, 2, 2}, strides[] = {100, 40, 16, 6, 2};
  launch(one, "scattered", {block, 4, 5, sizes, strides, 1});
  writes(two, "between", block + 4, 4);
  EXPECT_EQ(found().size(), 1u);
}

TEST_F(RacesTest, what_has_no_bytes_races_with_nothing) {
  const int64_t sizes[] = {4, 0}, strides[] = {16, 1};
  const orAccess empty{block, 4, 2, sizes, strides, 1};
  writes(one, "writer", block);
  launch(two, "nothing", empty);
  EXPECT_EQ(orAnnounceHostAccess("nothing", &empty), orSuccess);
  // A row that repeats is one row.
  const int64_t repeated[] = {4, 16}, stride[] = {0, 1};
  launch(two, "row", {block + 64, 4, 2, repeated, stride, 1});
  EXPECT_TRUE(found().empty());
}

TEST_F(RacesTest, a_column_that_is_written_again_replaces_itself) {
  const int64_t sizes[] = {8}, strides[] = {16};
  launch(one, "first", {block, 4, 1, sizes, strides, 1});
  launch(one, "second", {block, 4, 1, sizes, strides, 1});
  reads(two, "reader", block, 4);
  ASSERT_EQ(found().size(), 1u);
  EXPECT_EQ(found()[0].first, "second");
}

TEST_F(RacesTest, a_reader_of_the_whole_does_not_hide_a_reader_of_a_part) {
  reads(two, "of a part", block + 64, 64);
  reads(one, "of all", block, 128);
  Stream three;
  writes(three, "writer", block + 64, 64);
  EXPECT_EQ(found().size(), 2u);
}

TEST_F(RacesTest, of_very_many_uses_the_oldest_is_forgotten) {
  const int64_t sizes[] = {2};
  for (int64_t i = 0; i < 300; ++i) {
    const int64_t strides[] = {100 + i};
    launch(one, i == 0 ? "oldest" : "other", {block, 4, 1, sizes, strides, 0});
  }
  writes(two, "writer", block, 4);
  ASSERT_EQ(found().size(), 1u);
  EXPECT_EQ(found()[0].first, "other");
}

TEST_F(RacesTest, an_access_of_unknown_size_ends_with_its_block) {
  launch(one, "writer", {block + 64, 0, 0, nullptr, nullptr, 1});
  reads(two, "before", block, 64);
  EXPECT_TRUE(found().empty());
  reads(two, "last", block + 4095, 1);
  EXPECT_EQ(found().size(), 1u);
  // An owner that ends before does not count, and host memory has no end.
  orDeviceSynchronize();
  orClearFindings();
  orAnnounceBlock(block, 64);
  launch(one, "again", {block + 128, 0, 0, nullptr, nullptr, 1});
  reads(two, "the last", block + 4095, 1);
  EXPECT_EQ(found().size(), 1u);
  orDeviceSynchronize();
  orClearFindings();
  char host = 0;
  launch(one, "of the host", {&host, 0, 0, nullptr, nullptr, 1});
  reads(two, "too", &host, 1);
  EXPECT_TRUE(found().empty());
}

TEST_F(RacesTest, a_thread_that_only_watches_orders_nothing) {
  writes(one, "writer", block);
  std::thread([&] {
    EXPECT_EQ(orWatchOnly(1), orSuccess);
    EXPECT_EQ(orStreamSynchronize(one), orSuccess);
    EXPECT_EQ(orDeviceSynchronize(), orSuccess);
  }).join();
  reads(two, "reader", block);
  EXPECT_EQ(found().size(), 1u);
  writes(one, "another writer", block + 1024);
  orWatchOnly(1);
  orWatchOnly(1);
  orWatchOnly(0);
  EXPECT_EQ(orStreamSynchronize(one), orSuccess);
  orWatchOnly(0);
  reads(two, "reader", block + 1024);
  EXPECT_EQ(found().size(), 2u);
  EXPECT_EQ(orStreamSynchronize(one), orSuccess);
  reads(two, "another reader", block + 1024);
  EXPECT_EQ(found().size(), 2u);
}

TEST_F(RacesTest, an_allocator_settles_what_a_stream_did_with_its_block) {
  Stream three;
  writes(one, "before", block);
  writes(one, "next door", block + 1024);
  EXPECT_EQ(orAnnounceSettled(block, 512, one), orSuccess);
  writes(two, "new owner", block);
  EXPECT_TRUE(found().empty());
  writes(two, "of another block", block + 1024);
  EXPECT_EQ(found().size(), 1u);
  reads(three, "forgotten", block + 2048);
  EXPECT_EQ(orAnnounceSettled(block + 2048, 512, one), orSuccess);
  writes(two, "its owner", block + 2048);
  EXPECT_EQ(found().size(), 2u);
}

TEST_F(RacesTest, memory_without_an_owner_was_not_handed_out_again) {
  orAnnounceBlock(block, 512);
  reads(two, "reader", block + 300);
  reads(two, "outside", block + 2048);
  orAnnounceBlock(block, 256);
  writes(one, "writer", block + 300);
  writes(one, "writer outside", block + 2048);
  ASSERT_EQ(found().size(), 2u);
  for (const Found& race : found()) EXPECT_FALSE(race.was_reused);
}

TEST_F(RacesTest, a_second_search_keeps_what_the_first_one_knows) {
  writes(one, "writer", block);
  EXPECT_EQ(orFindRaces(1), orSuccess);
  reads(two, "reader", block);
  EXPECT_EQ(found().size(), 1u);
}

TEST_F(RacesTest, a_column_that_is_written_does_not_hide_the_others) {
  const int64_t sizes[] = {8}, strides[] = {16};
  writes(one, "whole", block, 512);
  follow(two, one);
  launch(two, "column", {block, 4, 1, sizes, strides, 1});
  Stream three;
  reads(three, "reader", block + 4, 4);
  ASSERT_EQ(found().size(), 1u);
  EXPECT_EQ(found()[0].first, "whole");
}

TEST_F(RacesTest, an_access_of_unknown_size_ends_before_the_next_owner) {
  orAnnounceBlock(block, 64);
  orAnnounceBlock(block + 64, 64);
  launch(one, "writer", {block, 0, 0, nullptr, nullptr, 1});
  reads(two, "reader", block + 64, 4);
  EXPECT_TRUE(found().empty());
  reads(two, "reader", block + 60, 4);
  EXPECT_EQ(found().size(), 1u);
}

TEST_F(RacesTest, are_not_looked_for_after_the_search) {
  orFindRaces(0);
  writes(one, "first", block);
  writes(two, "second", block);
  EXPECT_TRUE(found().empty());
}

TEST_F(RacesTest, a_column_reaches_to_its_last_row) {
  const int64_t sizes[] = {8}, strides[] = {16};
  launch(one, "column", {block, 4, 1, sizes, strides, 1});
  reads(two, "reader", block + 4 * 16 * 7, 4);
  EXPECT_EQ(found().size(), 1u);
}

TEST_F(RacesTest, a_part_that_is_written_does_not_hide_the_rest) {
  writes(one, "whole", block, 512);
  follow(two, one);
  writes(two, "middle", block + 64, 64);
  Stream three, four;
  reads(three, "front reader", block, 64);
  reads(four, "back reader", block + 128, 64);
  ASSERT_EQ(found().size(), 2u);
  for (const auto& race : found()) EXPECT_EQ(race.first, "whole");
}

TEST_F(RacesTest, what_was_announced_is_not_of_a_host_function) {
  const orAccess access{block, 4, 0, nullptr, nullptr, 1};
  orAnnounceAccess(&access);
  orLaunchHostFunc(
      one, [](void*) {}, nullptr);
  writes(two, "writer", block, 4);
  EXPECT_TRUE(found().empty());
}

TEST_F(RacesTest, of_writers_in_a_row_the_last_one_is_named) {
  writes(one, "first", block, 64);
  follow(two, one);
  writes(two, "second", block, 128);
  Stream three;
  reads(three, "reader", block, 64);
  ASSERT_EQ(found().size(), 1u);
  EXPECT_EQ(found()[0].first, "second");
}

TEST_F(RacesTest, memory_handed_out_again_races_with_its_former_owner) {
  orAnnounceBlock(block, 512);
  reads(two, "forgotten", block);
  orAnnounceBlock(block, 256);
  writes(one, "new owner", block);
  ASSERT_EQ(found().size(), 1u);
  EXPECT_TRUE(found()[0].was_reused);
  EXPECT_NE(found()[0].sentence.find("record_stream"), std::string::npos);
}

TEST_F(RacesTest, uses_by_one_owner_are_not_of_memory_handed_out_again) {
  orAnnounceBlock(block, 512);
  reads(two, "reader", block);
  writes(one, "writer", block);
  ASSERT_EQ(found().size(), 1u);
  EXPECT_FALSE(found()[0].was_reused);
}

TEST_F(RacesTest, memory_that_was_given_back_has_no_history) {
  char* other = allocate(4096);
  writes(one, "writer", other);
  orFree(other);
  other = allocate(4096);
  writes(two, "next", other);
  EXPECT_TRUE(found().empty());
  orFree(other);
}

TEST_F(RacesTest, pinned_memory_that_was_given_back_has_no_history) {
  void *pinned, *again;
  orMallocHost(&pinned, 4096);
  writes(one, "writer", static_cast<char*>(pinned));
  orFreeHost(pinned);
  orMallocHost(&again, 4096);
  ASSERT_EQ(again, pinned);
  writes(two, "next", static_cast<char*>(again));
  EXPECT_TRUE(found().empty());
  orFreeHost(again);
}

TEST_F(RacesTest,
       nodes_of_a_graph_race_with_each_other_and_with_other_streams) {
  const auto forked = [&](bool is_joined) {
    return executable(one, [&] {
      reads(one, "fork", block + 1024);
      follow(two, one);
      writes(one, "left", block);
      if (is_joined) follow(two, one);
      writes(two, "right", block);
      follow(one, two);
    });
  };
  const Executable right = forked(true), wrong = forked(false);
  EXPECT_TRUE(found().empty());
  orGraphLaunch(right, one);
  orGraphLaunch(right, one);
  orDeviceSynchronize();
  EXPECT_TRUE(found().empty());
  Stream three;
  orGraphLaunch(right, one);
  reads(three, "outside", block);
  EXPECT_EQ(found().size(), 1u);
  orDeviceSynchronize();
  orGraphLaunch(wrong, one);
  ASSERT_EQ(found().size(), 2u);
  EXPECT_EQ(found()[1].first, "left");
  EXPECT_EQ(found()[1].second, "right");
  orDeviceSynchronize();
}

TEST_F(RacesTest, a_launch_of_a_graph_comes_after_the_one_before) {
  const Executable graph = executable(one, [&] { writes(one, "node", block); });
  orGraphLaunch(graph, one);
  orGraphLaunch(graph, two);
  EXPECT_TRUE(found().empty());
  orDeviceSynchronize();
}

TEST_F(RacesTest, a_written_number_orders_the_stream_that_waits_for_it) {
  auto* word = reinterpret_cast<uint32_t*>(block + 2048);
  orMemset(word, 0, 4);
  writes(one, "writer", block);
  orStreamWriteValue32(one, word, 1);
  orStreamWaitValue32(two, word, 1);
  reads(two, "reader", block);
  EXPECT_TRUE(found().empty());
  writes(one, "hasty", block);
  EXPECT_EQ(found().size(), 1u);
}

TEST_F(RacesTest, a_number_of_another_process_orders_nothing_here) {
  auto* word = reinterpret_cast<uint32_t*>(block + 2048);
  orMemset(word, 0, 4);
  writes(one, "writer", block);
  EXPECT_EQ(orAnnouncePeer(), orSuccess);
  orStreamWaitValue32(two, word, 1);
  reads(two, "reader", block);
  EXPECT_EQ(found().size(), 1u);
  // The next wait may be for a stream of this process.
  orStreamWaitValue32(two, word, 2);
  reads(two, "another reader", block);
  EXPECT_EQ(found().size(), 1u);
  orStreamWriteValue32(one, word, 2);
}

TEST_F(RacesTest, nothing_is_said_while_the_writer_of_a_number_is_not_known) {
  auto* word = reinterpret_cast<uint32_t*>(block + 2048);
  orMemset(word, 0, 4);
  orStreamWaitValue32(two, word, 1);
  reads(two, "reader", block);
  writes(one, "writer", block);
  EXPECT_TRUE(found().empty());
  reads(two, "still unknown", block);
  EXPECT_TRUE(found().empty());
  orStreamWriteValue32(one, word, 1);
  writes(two, "known", block);
  EXPECT_TRUE(found().empty());
  writes(one, "hasty", block);
  EXPECT_EQ(found().size(), 1u);
}

TEST_F(RacesTest, the_host_races_with_what_it_has_not_waited_for) {
  void* pinned = nullptr;
  ASSERT_EQ(orMallocHost(&pinned, 64), orSuccess);
  const orAccess access{pinned, 64, 0, nullptr, nullptr, 0};
  orMemcpyAsync(pinned, block, 64, orMemcpyDeviceToHost, one);
  orAnnounceHostAccess("item", &access);
  ASSERT_EQ(found().size(), 1u);
  EXPECT_NE(found()[0].sentence.find("The host reads what stream"),
            std::string::npos)
      << found()[0].sentence;
  orStreamSynchronize(one);
  orAnnounceHostAccess("again", &access);
  EXPECT_EQ(found().size(), 1u);
  orFreeHost(pinned);
}

TEST_F(RacesTest, an_announcement_belongs_to_the_next_kernel_only) {
  touch(block, 64, true);
  orAnnounceAccess(nullptr);
  launch(one, "nothing");
  reads(two, "reader", block);
  EXPECT_TRUE(found().empty());
}

TEST_F(RacesTest, a_pair_of_places_is_reported_once) {
  for (int i = 0; i < 3; ++i) {
    writes(one, "writer", block);
    reads(two, "reader", block);
  }
  // The other pair: the writer overtakes the reader.
  EXPECT_EQ(found().size(), 2u);
  orClearFindings();
  EXPECT_TRUE(found().empty());
}

TEST_F(RacesTest, the_report_names_the_places_that_the_program_gives) {
  static int64_t place = 0;
  orSetPlaces([] { return ++place; },
              [](int64_t number, char* text, size_t bytes) {
                std::snprintf(text, bytes, "line %d", static_cast<int>(number));
              });
  testing::internal::CaptureStderr();
  writes(one, "writer", block);
  reads(two, "reader", block);
  orSetPlaces(nullptr, nullptr);
  const std::string report = testing::internal::GetCapturedStderr();
  EXPECT_NE(report.find("openreg: race between writer and reader\n"
                        "  reader at line 2 reads bytes 0 to 64"),
            std::string::npos)
      << report;
  EXPECT_NE(report.find("before line 2."), std::string::npos) << report;
}

TEST_F(RacesTest, places_without_words_are_left_out) {
  orSetPlaces([] { return int64_t{1}; }, nullptr);
  testing::internal::CaptureStderr();
  writes(one, "writer", block);
  reads(two, "reader", block);
  orSetPlaces(nullptr, nullptr);
  const std::string report = testing::internal::GetCapturedStderr();
  EXPECT_NE(report.find("\n  reader reads bytes"), std::string::npos) << report;
}

TEST(Races, accesses_are_refused_without_their_sizes) {
  const int64_t sizes[] = {2, 3};
  for (const orAccess& access : {orAccess{nullptr, 4, 2, nullptr, nullptr, 0},
                                 orAccess{nullptr, 4, 2, sizes, nullptr, 0}}) {
    EXPECT_EQ(orAnnounceAccess(&access), orErrorInvalidValue);
    EXPECT_EQ(detail(),
              "An access of 2 dimensions needs as many sizes and strides.");
    EXPECT_EQ(orAnnounceHostAccess("sum", &access), orErrorInvalidValue);
  }
  const orAccess access{nullptr, 4, -1, sizes, sizes, 0};
  EXPECT_EQ(orAnnounceAccess(&access), orErrorInvalidValue);
}

TEST(Races, accesses_are_refused_with_negative_strides) {
  const int64_t sizes[] = {2, 3}, strides[] = {3, -1};
  const orAccess access{nullptr, 4, 2, sizes, strides, 0};
  EXPECT_EQ(orAnnounceAccess(&access), orErrorInvalidValue);
  EXPECT_EQ(detail(),
            "An access has sizes and strides of 0 or more; dimension 1 has 3 "
            "and -1.");
  const orAccess other{nullptr, 4, 1, &strides[1], sizes, 0};
  EXPECT_EQ(orAnnounceAccess(&other), orErrorInvalidValue);
}

TEST(Races, announcements_say_whether_they_are_wanted) {
  const int* are_wanted = nullptr;
  EXPECT_EQ(orAccessFlag(&are_wanted), orSuccess);
  EXPECT_EQ(orAnnounceBlock(are_wanted, 4), orSuccess);
  EXPECT_EQ(orFindRaces(1), orSuccess);
  EXPECT_NE(*are_wanted, 0);
  EXPECT_EQ(orFindRaces(0), orSuccess);
}

TEST(Races, of_the_host_are_ignored_without_a_search) {
  char byte = 0;
  const orAccess access{&byte, 1, 0, nullptr, nullptr, 1};
  EXPECT_EQ(orAnnounceHostAccess("sum", &access), orSuccess);
}

void race(bool once) {
  Stream one, two;
  char* block = allocate(64);
  writes(one, "writer", block);
  reads(two, "reader", block);
  if (!once) writes(one, "second writer", block);
}

TEST(Races, DISABLED_one_race) { race(true); }
TEST(Races, DISABLED_two_races) { race(false); }
TEST(Races, DISABLED_own_code) {
  race(true);
  std::exit(3);
}

TEST(Races, are_counted_at_the_end_unless_the_process_has_failed) {
  const std::string races = "OPENREG_SANITIZE=races";
  EXPECT_EQ(WEXITSTATUS(again("Races.DISABLED_two_races", {races})), 66);
  EXPECT_EQ(WEXITSTATUS(again("Races.DISABLED_own_code", {races})), 3);
}

TEST(Races, a_process_with_a_race_ends_with_a_code_of_its_own) {
  const std::string child = "Races.DISABLED_one_race";
  EXPECT_EQ(WEXITSTATUS(again(child, {"OPENREG_SANITIZE=races"})), 66);
  EXPECT_EQ(WEXITSTATUS(again(child, {"OPENREG_SANITIZE="})), 0);
}

TEST(Races, DISABLED_work_at_the_exit) {
  {
    const Search search;
    race(true);
    openreg::launch(nullptr, "late", [] {
      usleep(20'000);
      std::printf("said late\n");
      std::fflush(stdout);
    });
    std::exit(0);
  }
}

TEST(Races, that_are_found_at_run_time_do_not_cut_off_work_at_the_exit) {
  testing::internal::CaptureStdout();
  EXPECT_EQ(WEXITSTATUS(again("Races.DISABLED_work_at_the_exit", {})), 66);
  EXPECT_NE(testing::internal::GetCapturedStdout().find("said late"),
            std::string::npos);
}

TEST(Races, are_not_those_of_a_forked_child) {
  const Search search;
  race(true);
  EXPECT_FALSE(found().empty());
  const pid_t child = fork();
  if (child == 0) std::exit(0);
  int status;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Races, an_access_must_end_before_the_last_address) {
  const Search search;
  void* block = allocate(64);
  const int64_t size = (int64_t{1} << 62) - 1, stride = 1;
  const orAccess access{block, 4, 1, &size, &stride, 1};
  EXPECT_EQ(orAnnounceAccess(&access), orErrorInvalidValue);
  EXPECT_NE(detail().find(" on ends behind the last address."),
            std::string::npos);
  EXPECT_EQ(openreg::launch(nullptr, "writer", [] {}), orSuccess);
}

TEST(Races, what_is_settled_on_the_default_stream_is_settled) {
  const Search search;
  Stream other;
  char* block = allocate(64);
  touch(block, 64, true);
  openreg::launch(nullptr, "writer", [] {});
  EXPECT_EQ(orAnnounceSettled(block, 64, nullptr), orSuccess);
  touch(block, 64, true);
  openreg::launch(other, "second writer", [] {});
  EXPECT_TRUE(found().empty());
}

TEST(Races, an_unknown_sanitizer_is_refused) {
  if (ranAgain({{"OPENREG_SANITIZE=leaks"}})) return;
  int count = 0;
  EXPECT_EQ(orGetDeviceCount(&count), orErrorInvalidConfiguration);
  EXPECT_EQ(
      detail(),
      "OPENREG_SANITIZE=leaks is not allowed; it must be races, memory or "
      "races,memory.");
}

}  // namespace races_test
