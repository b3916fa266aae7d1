// What the loader is made of, as far as it needs no MPI; the loader itself is tested in tests/ranks/loader_test.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "data/load/block_cache.hpp"
#include "data/load/pipeline.hpp"
#include "data/load/sampler.hpp"
#include "data/load/store.hpp"
#include "data/read/block.hpp"
#include "data/read/shard_set.hpp"
#include "unit/data/load/loader_set.hpp"

namespace lockstep::data {
namespace {

class PipelineThreads : public testing::TestWithParam<std::size_t> {
 protected:
  static constexpr std::uint64_t n_pieces = 4;

  [[nodiscard]] static std::size_t n_slots() { return GetParam() == 0 ? 1 : 3; }
};

TEST_P(PipelineThreads, DeliversEveryPieceOfEveryBatchInOrder) {
  std::vector<std::array<std::uint64_t, n_pieces>> slots(n_slots());
  Pipeline pipeline{GetParam(), n_slots(), n_pieces,
                    [&](const Pipeline::Piece& piece) { slots[piece.slot][piece.number] = piece.batch; }};
  for (const std::uint64_t first : {0, 7, 100}) {
    pipeline.stop();
    pipeline.start(first, 100);
    for (std::uint64_t batch = first; batch < 100; ++batch) {
      const auto taken = pipeline.take();
      ASSERT_TRUE(taken.has_value());
      EXPECT_EQ(taken->batch, batch);
      for (const std::uint64_t value : slots[taken->slot]) ASSERT_EQ(value, batch);
    }
    EXPECT_FALSE(pipeline.take().has_value());
    EXPECT_FALSE(pipeline.take().has_value());
  }
}

TEST_P(PipelineThreads, NeverRunsFurtherAheadThanItsSlots) {
  std::atomic<std::uint64_t> n_taken{0};
  std::atomic<bool> is_too_far{false};
  Pipeline pipeline{GetParam(), n_slots(), n_pieces, [&](const Pipeline::Piece& piece) {
                      if (piece.batch >= n_taken + n_slots()) is_too_far = true;
                    }};
  pipeline.stop();
  pipeline.start(0, 200);
  for (; pipeline.take(); ++n_taken)
    if (n_taken % 50 == 0) std::this_thread::sleep_for(std::chrono::milliseconds{5});
  EXPECT_EQ(n_taken, 200u);
  EXPECT_FALSE(is_too_far);
}

TEST_P(PipelineThreads, WhatAPieceThrowsComesOutInItsTurn) {
  Pipeline pipeline{GetParam(), n_slots(), n_pieces, [](const Pipeline::Piece& piece) {
                      if (piece.batch == 3 && piece.number >= 1) throw std::runtime_error(std::to_string(piece.number));
                    }};
  pipeline.stop();
  pipeline.start(0, 10);
  for (int batch = 0; batch < 3; ++batch) EXPECT_TRUE(pipeline.take().has_value());
  for (int attempt = 0; attempt < 2; ++attempt) {
    try {
      (void)pipeline.take();
      FAIL() << "no error";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "1");
    }
  }
  pipeline.stop();
  pipeline.start(4, 10);
  EXPECT_EQ(pipeline.take()->batch, 4u);
}

TEST_P(PipelineThreads, EndsInTheMiddle) {
  for (int round = 0; round < 20; ++round) {
    Pipeline pipeline{GetParam(), n_slots(), n_pieces, [](const Pipeline::Piece&) { std::this_thread::yield(); }};
    pipeline.stop();
    pipeline.start(0, 1000);
    for (int i = 0; i < round % 3; ++i) (void)pipeline.take();
    if (round % 2 == 0) pipeline.stop();
  }
}

TEST_P(PipelineThreads, NothingIsThereBeforeTheStart) {
  Pipeline pipeline{GetParam(), n_slots(), n_pieces, [](const Pipeline::Piece&) { ADD_FAILURE() << "work"; }};
  EXPECT_FALSE(pipeline.take().has_value());
}

INSTANTIATE_TEST_SUITE_P(Threads, PipelineThreads, testing::Values(0, 1, 3));

TEST(Pipeline, SeveralThreadsWorkOnOneBatch) {
  std::mutex mutex;
  std::set<std::size_t> workers;
  std::atomic<int> n_inside{0};
  std::atomic<int> n_come{0};
  Pipeline pipeline{2, 2, 2, [&](const Pipeline::Piece& piece) {
                      ++n_come;
                      const std::lock_guard lock{mutex};
                      if (piece.batch == 0) workers.insert(piece.worker);
                      ++n_inside;
                    }};
  std::unique_lock lock{mutex};  // holds the first worker back until the second has come
  pipeline.start(0, 1);
  for (int i = 0; i < 3000 && n_come < 2; ++i) std::this_thread::sleep_for(std::chrono::milliseconds{10});
  lock.unlock();
  EXPECT_TRUE(pipeline.take().has_value());
  EXPECT_EQ(n_inside, 2);
  EXPECT_EQ(workers.size(), 2u);
}

Block block_of(std::uint64_t number) { return {.first = number, .n = 1, .offsets = {0, 0}}; }

TEST(BlockCache, KeepsTheBlocksUsedLast) {
  std::vector<std::uint64_t> reads;
  BlockCache cache{2, [&](std::uint64_t number, Block& block) {
                     reads.push_back(number);
                     block = block_of(number);
                   }};
  for (const std::uint64_t number : {1, 2, 1, 3, 1, 2}) EXPECT_EQ(cache.get(number)->first, number);
  EXPECT_EQ(reads, (std::vector<std::uint64_t>{1, 2, 3, 2}));
}

TEST(BlockCache, ReadsAgainOnceCleared) {
  int n_reads = 0;
  BlockCache cache{2, [&](std::uint64_t number, Block& block) {
                     ++n_reads;
                     block = block_of(number);
                   }};
  (void)cache.get(1);
  cache.clear();
  EXPECT_EQ(cache.get(1)->first, 1u);
  EXPECT_EQ(n_reads, 2);
}

TEST(BlockCache, ReadsOnceForAllWhoAskAtTheSameTime) {
  std::atomic<int> n_reads{0};
  BlockCache cache{2, [&](std::uint64_t number, Block& block) {
                     ++n_reads;
                     std::this_thread::sleep_for(std::chrono::milliseconds{50});
                     block = block_of(number);
                   }};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([&] { EXPECT_EQ(cache.get(7)->first, 7u); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(n_reads, 1);
}

TEST(BlockCache, UsesMemoryAgainThatNobodyHas) {
  std::vector<const Block*> places;
  BlockCache cache{1, [&](std::uint64_t number, Block& block) {
                     places.push_back(&block);
                     block = block_of(number);
                   }};
  (void)cache.get(1);
  const std::shared_ptr<const Block> held = cache.get(2);
  EXPECT_EQ(places[1], places[0]);
  EXPECT_EQ(cache.get(3)->first, 3u);
  EXPECT_EQ(held->first, 2u);
  EXPECT_NE(places[2], held.get());
}

TEST(BlockCache, GivesMemoryFromOneThreadToTheNext) {
  BlockCache cache{1, [](std::uint64_t number, Block& block) { block.first = number; }};
  std::vector<std::thread> threads;
  for (std::uint64_t thread = 0; thread < 3; ++thread)
    threads.emplace_back([&, thread] {
      for (std::uint64_t i = 0; i < 2000; ++i) ASSERT_EQ(cache.get(i * (thread + 1) % 7)->first, i * (thread + 1) % 7);
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(BlockCache, AFailureIsToldAndTriedAgain) {
  int n_reads = 0;
  BlockCache cache{2, [&](std::uint64_t number, Block& block) {
                     if (++n_reads == 1) throw std::runtime_error("broken");
                     block = block_of(number);
                   }};
  EXPECT_THROW((void)cache.get(1), std::runtime_error);
  EXPECT_EQ(cache.get(1)->first, 1u);
}

TEST(Blocks, BeginWithChunksAndNeverCrossShards) {
  const TemporaryFolder folder;
  write_set(folder.path(), {.n_samples = 50, .shard_samples = 20, .chunk_samples = 8});
  EXPECT_EQ(block_starts(ShardSet{folder.path().string(), "train"}),
            (std::vector<std::uint64_t>{0, 8, 16, 20, 28, 36, 40, 48}));
}

class StoreSets : public testing::TestWithParam<SetShape> {};

/// Fetches all samples, by nines, in an order of its own.
void expect_all_samples(Store& store, const SetShape& shape, std::uint64_t seed) {
  const KeyedPermutation order{shape.n_samples, seed, 1};
  Fetched fetched;
  for (std::uint64_t first = 0; first < shape.n_samples; first += 9) {
    std::vector<std::uint64_t> ids;
    for (std::uint64_t p = first; p < std::min(first + 9, shape.n_samples); ++p) ids.push_back(order.at(p));
    store.fetch({.ids = ids}, fetched);
    ASSERT_EQ(fetched.samples.size(), ids.size());
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const auto& [x, y] = fetched.samples[i];
      ASSERT_EQ(std::vector(x.begin(), x.end()), sample_of(shape, ids[i])) << "sample " << ids[i];
      ASSERT_EQ(y.size(), 1u);
      ASSERT_EQ(y[0], label_of(ids[i]));
    }
  }
}

TEST_P(StoreSets, HandOutWhatWasStored) {
  const TemporaryFolder folder;
  write_set(folder.path(), GetParam());
  const auto set = std::make_shared<const ShardSet>(folder.path().string(), "train");
  for (const bool by_block : {false, true})
    expect_all_samples(*make_streaming_store(set, {.by_block = by_block, .n_blocks = 2}), GetParam(), 1);
}

// Fewer blocks are kept than threads need: memory goes from one to the other.
TEST_P(StoreSets, ServeSeveralThreads) {
  const TemporaryFolder folder;
  write_set(folder.path(), GetParam());
  const auto set = std::make_shared<const ShardSet>(folder.path().string(), "train", 2);
  for (const bool by_block : {false, true}) {
    const auto store = make_streaming_store(set, {.by_block = by_block, .n_blocks = 2, .n_threads = 3});
    std::vector<std::thread> threads;
    for (std::uint64_t seed = 1; seed <= 3; ++seed)
      threads.emplace_back([&, seed] { expect_all_samples(*store, GetParam(), seed); });
    for (std::thread& thread : threads) thread.join();
  }
}

TEST_P(StoreSets, SequentialBlocksAreReadOnce) {
  const TemporaryFolder folder;
  const SetShape& shape = GetParam();
  write_set(folder.path(), shape);
  const auto set = std::make_shared<const ShardSet>(folder.path().string(), "train");
  const auto store = make_streaming_store(set, {.by_block = true, .n_blocks = 2});
  Fetched fetched;
  std::uint64_t n_after_first = 0;
  for (int round = 0; round < 2; ++round) {
    for (std::uint64_t id = 0; id < std::min<std::uint64_t>(8, shape.n_samples); ++id)
      store->fetch({.ids = std::array{id}}, fetched);
    if (round == 0) n_after_first = set->counters().n_chunks;
  }
  EXPECT_EQ(set->counters().n_chunks, n_after_first);
  EXPECT_GT(n_after_first, 0u);
}

TEST_P(StoreSets, DamageIsAnErrorThatNamesTheSample) {
  const SetShape& shape = GetParam();
  for (const bool by_block : {false, true}) {
    const TemporaryFolder folder;
    write_set(folder.path(), shape);
    damage_sample(folder.path(), 33);
    const auto set = std::make_shared<const ShardSet>(folder.path().string(), "train");
    const auto store = make_streaming_store(set, {.by_block = by_block, .n_blocks = 2});
    Fetched fetched;
    try {
      store->fetch({.ids = std::array<std::uint64_t, 1>{33}}, fetched);
      FAIL() << "no error";
    } catch (const core::Error& error) {
      EXPECT_EQ(error.code(), core::ExitCode::failed);
      EXPECT_NE(std::string{error.what()}.find("samples"), std::string::npos) << error.what();
    }
    EXPECT_EQ(set->counters().n_crc_failures, 1u);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, StoreSets,
                         testing::Values(SetShape{}, SetShape{.filter = io::Filter::zstd}, SetShape{.is_encoded = true},
                                         SetShape{.filter = io::Filter::deflate, .is_encoded = true}));

}  // namespace
}  // namespace lockstep::data
