#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "data/load/sampler.hpp"
#include "data/load/store.hpp"
#include "data/read/shard_set.hpp"
#include "unit/data/load/loader_set.hpp"

namespace lockstep::data {
namespace {

/// A gathering store over a set in keyed order, in batches of 7, and what it has to hand out.
class Gathering : public testing::TestWithParam<io::Filter> {
 protected:
  static constexpr std::uint64_t batch = 7, n_at_once = 3;
  static std::uint64_t n_batches() { return (shape.n_samples + batch - 1) / batch; }

  Gathering() { write_set(folder.path(), shape_of_param()); }
  [[nodiscard]] static SetShape shape_of_param() {
    SetShape with_filter = shape;
    with_filter.filter = GetParam();
    return with_filter;
  }
  [[nodiscard]] std::vector<std::uint64_t> ids_of(std::uint64_t number) const {
    std::vector<std::uint64_t> ids;
    for (std::uint64_t p = number * batch; p < std::min((number + 1) * batch, shape.n_samples); ++p)
      ids.push_back(order.at(p));
    return ids;
  }
  [[nodiscard]] std::unique_ptr<Store> make(const std::shared_ptr<const ShardSet>& set) const {
    return make_gathering_store(set, 60, n_at_once, [this](std::uint64_t number, std::vector<std::uint64_t>& ids) {
      const auto more = ids_of(number);
      ids.insert(ids.end(), more.begin(), more.end());
    });
  }
  void expect_batch(Store& store, std::uint64_t number, Fetched& fetched) const {
    const std::vector<std::uint64_t> ids = ids_of(number);
    for (const std::size_t first : {std::size_t{0}, ids.size() / 2}) {
      const std::size_t n = first == 0 ? ids.size() / 2 : ids.size() - first;
      store.fetch({.batch = number, .first = first, .ids = std::span{ids}.subspan(first, n)}, fetched);
      ASSERT_EQ(fetched.samples.size(), n);
      for (std::size_t i = 0; i < n; ++i) {
        const auto& [x, y] = fetched.samples[i];
        ASSERT_EQ(std::vector(x.begin(), x.end()), sample_of(shape, ids[first + i])) << "sample " << ids[first + i];
        ASSERT_EQ(y[0], label_of(ids[first + i]));
      }
    }
  }

  static inline const SetShape shape{.n_samples = 300, .shard_samples = 70, .chunk_samples = 8};
  TemporaryFolder folder;
  KeyedPermutation order{shape.n_samples, 5, 1};
};

TEST_P(Gathering, HandsOutWhatWasStoredFromAnyBatchOn) {
  const auto set = std::make_shared<const ShardSet>(folder.path().string(), "train", 2);
  const auto store = make(set);
  Fetched fetched;
  for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{20}, n_batches() - 1}) {
    store->begin(first, n_batches());
    for (std::uint64_t number = first; number < n_batches(); ++number) expect_batch(*store, number, fetched);
  }
}

TEST_P(Gathering, ServesThreadsThatAreSomeBatchesApart) {
  const auto set = std::make_shared<const ShardSet>(folder.path().string(), "train", 2);
  const auto store = make(set);
  for (int epoch = 0; epoch < 20; ++epoch) {
    store->begin(0, n_batches());
    std::vector<std::thread> threads;
    std::array<std::atomic<std::uint64_t>, n_at_once> pending{0, 1, 2};
    for (std::uint64_t first = 0; first < n_at_once; ++first)
      threads.emplace_back([&, first] {
        Fetched fetched;
        for (std::uint64_t number = first; number < n_batches(); number += n_at_once) {
          pending[first] = number;
          // As the loader's queue does: no batch before the one `n_at_once` earlier is done.
          for (const auto& other : pending)
            while (other + n_at_once <= number) std::this_thread::yield();
          expect_batch(*store, number, fetched);
        }
        pending[first] = n_batches();
      });
    for (std::thread& thread : threads) thread.join();
  }
}

TEST_P(Gathering, ReadsEachPartOncePerWindow) {
  const auto set = std::make_shared<const ShardSet>(folder.path().string(), "train");
  const auto store = make(set);
  store->begin(0, n_batches());
  Fetched fetched;
  for (std::uint64_t number = 0; number < n_batches(); ++number) expect_batch(*store, number, fetched);
  // Five windows of at most 9 batches; chunks of x and of y, of which a shard has 9.
  const std::uint64_t n_chunks = 5 * 9;
  EXPECT_LE(set->counters().n_chunks, 5 * 2 * n_chunks);
  EXPECT_GE(set->counters().n_chunks, 2 * n_chunks - 10);
}

TEST_P(Gathering, DamageComesWithItsOwnBatch) {
  damage_sample(folder.path(), 33);
  const auto set = std::make_shared<const ShardSet>(folder.path().string(), "train");
  const auto store = make(set);
  store->begin(0, n_batches());
  Fetched fetched;
  std::set<std::uint64_t> bad;
  for (std::uint64_t number = 0; number < n_batches(); ++number) {
    const std::vector<std::uint64_t> ids = ids_of(number);
    try {
      store->fetch({.batch = number, .ids = ids}, fetched);
      EXPECT_FALSE(std::ranges::count(ids, 33u) > 0);
    } catch (const core::Error& error) {
      bad.insert(number);
      EXPECT_EQ(error.code(), core::ExitCode::failed);
    }
  }
  EXPECT_GE(bad.size(), 1u);
  EXPECT_LE(bad.size(), shape.chunk_samples);  // which have a check sum in common
}

INSTANTIATE_TEST_SUITE_P(Filters, Gathering, testing::Values(io::Filter::none, io::Filter::zstd));

// The case that was slow: many small samples in many small shards. Large samples, and few of many, are read one by one.
TEST(GatheredSamples, WhereReadingTogetherPays) {
  const auto of = [](const SetShape& shape) {
    const TemporaryFolder folder;
    write_set(folder.path(), shape);
    return gathered_samples(ShardSet{folder.path().string(), "train"});
  };
  EXPECT_EQ(of({.n_samples = 400, .x_shape = {12}, .shard_samples = 10}), 400u);
  EXPECT_EQ(of({.n_samples = 4000, .x_shape = {12}, .shard_samples = 40}), 3200u);
  EXPECT_EQ(of({.n_samples = 8, .x_shape = {256, 256}, .shard_samples = 4, .chunk_samples = 2}), 0u);
  EXPECT_EQ(of({.is_encoded = true}), 0u);
}

}  // namespace
}  // namespace lockstep::data
