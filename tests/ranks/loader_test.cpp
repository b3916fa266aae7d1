#include "data/load/loader.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "data/image/image.hpp"
#include "runtime/communicator.hpp"
#include "shared_set.hpp"
#include "support/ranks.hpp"
#include "unit/data/load/loader_set.hpp"

namespace lockstep::data {
namespace {

using support::world;

/// A batch that outlives the next one.
struct Kept {
  std::uint64_t number = 0, n_global = 0, n = 0;
  std::vector<std::byte> x{}, y{};
  std::vector<std::uint64_t> ids{};
  bool operator==(const Kept&) const = default;
};

std::vector<Kept> rest_of_epoch(Loader& loader) {
  std::vector<Kept> all;
  while (const Batch* batch = loader.next())
    all.push_back({batch->number,
                   batch->n_global,
                   batch->n,
                   {batch->x.begin(), batch->x.end()},
                   {batch->y.begin(), batch->y.end()},
                   {batch->ids.begin(), batch->ids.end()}});
  return all;
}

std::vector<Kept> epoch_of(Loader& loader, std::uint64_t epoch, std::uint64_t first = 0) {
  loader.begin_epoch(epoch, first);
  return rest_of_epoch(loader);
}

/// The sum over all ranks, on all ranks.
std::uint64_t sum_of_all(std::uint64_t mine) {
  std::uint64_t sum = 0;
  for (const std::uint64_t value : runtime::gather_values<std::uint64_t>(world(), {&mine, 1})) sum += value;
  return runtime::broadcast_value(world(), sum);
}

LoaderOptions raw_options(Order order, Cache cache, int threads) {
  LoaderOptions options;
  options.global_batch = 16;
  options.sampler = {.order = order, .seed = 3, .window_chunks = 2};
  options.augment.dtype = core::DType::uint8;
  options.cache = cache;
  options.threads = threads;
  return options;
}

class LoaderOrders : public testing::TestWithParam<Order> {};

// The main promise of the loader, for raw, compressed and encoded sets.
RANKS_TEST_P(LoaderOrders, BatchesDependOnNothingThatMakesThemFaster) {
  for (const SetShape& shape : {SetShape{}, SetShape{.filter = io::Filter::zstd}, SetShape{.is_encoded = true}}) {
    const SharedSet shared{shape};
    LoaderOptions options = raw_options(param, Cache::none, 0);
    options.augment.dtype = core::DType::float32;
    options.augment.steps = parse_augment("rrcrop:6,crop:6:1,flip,normalize:0.5:0.25", "--augment");
    Loader reference{world(), shared.open(), options};
    const std::vector<Kept> expected = epoch_of(reference, 2);
    EXPECT_EQ(expected.size(), 7u);
    for (const int threads : {0, 1, 3}) {
      for (const Cache cache : {Cache::none, Cache::node, Cache::automatic}) {
        options.threads = threads;
        options.cache = cache;
        options.batches_ahead = threads == 3 ? 5 : 1;
        Loader loader{world(), shared.open(), options};
        EXPECT_TRUE(epoch_of(loader, 1) != expected || param == Order::sequential);
        EXPECT_TRUE(epoch_of(loader, 2) == expected) << threads << " threads, cache " << name(cache);
        EXPECT_EQ(loader.stats().threads, threads);
      }
    }
  }
}

// With everything that a device has to know. Images with more channels than it takes become floats, as elsewhere.
RANKS_TEST_P(LoaderOrders, ImagesStayPixelsWhereThatIsAskedFor) {
  for (const SetShape& shape : {SetShape{}, SetShape{.is_encoded = true}}) {
    const SharedSet shared{shape};
    for (const int threads : {0, 3}) {
      LoaderOptions options = raw_options(param, Cache::none, threads);
      options.augment.dtype = core::DType::float32;
      options.augment.steps = parse_augment("rrcrop:6,crop:6:1,flip,normalize:0.5:0.25", "--augment");
      if (!shape.is_encoded) options.augment.steps.erase(options.augment.steps.begin());
      options.most_pixel_channels = 2;
      EXPECT_FALSE((Loader{world(), shared.open(), options}.keeps_pixels()));
      options.most_pixel_channels = 3;
      Loader loader{world(), shared.open(), options};
      ASSERT_TRUE(loader.keeps_pixels());
      const Augment& augment = loader.augment();
      std::vector<std::byte> pixels(augment.pixels()->bytes()), scratch(augment.scratch_bytes());
      loader.begin_epoch(2);
      while (const Batch* const all = loader.next()) {
        ASSERT_TRUE(all->images);
        for (std::uint64_t i = 0; i < all->n; ++i) {
          const Batch one = all->part(i, 1);
          std::vector<std::byte> stored = sample_of(shape, one.ids[0]);
          std::uint64_t height = 8, width = 8;
          if (shape.is_encoded) {
            Image image = decode_image(stored, 3);
            height = image.height, width = image.width;
            stored = std::move(image.pixels);
          }
          const ImageView view = augment.take(stored, height, width, 2, one.ids[0], pixels, scratch);
          ASSERT_EQ(one.images->views.size(), 1u);
          EXPECT_EQ(one.images->views[0], view);
          EXPECT_TRUE(std::ranges::equal(one.x, pixels));
          EXPECT_EQ(one.images->levels.data(), augment.levels().data());
        }
        EXPECT_EQ(all->images->height, 6);
        EXPECT_EQ(all->images->width, 6);
        EXPECT_EQ(all->images->n_channels, 3);
      }
    }
  }
}

RANKS_TEST_P(LoaderOrders, SamplesAreThoseOfTheSet) {
  const SharedSet shared{{.x_shape = {24}}};
  Loader loader{world(), shared.open(), raw_options(param, Cache::none, 1)};
  for (const Kept& batch : epoch_of(loader, 0)) {
    EXPECT_EQ(batch.ids.size(), batch.n);
    EXPECT_EQ(batch.y.size(), batch.n);
    ASSERT_EQ(batch.x.size(), batch.n * 24);
    for (std::size_t i = 0; i < batch.n; ++i) {
      EXPECT_EQ(batch.y[i], label_of(batch.ids[i]));
      const std::vector<std::byte> x = sample_of(shared.shape(), batch.ids[i]);
      EXPECT_TRUE(std::equal(x.begin(), x.end(), batch.x.begin() + static_cast<std::ptrdiff_t>(i * 24)));
    }
  }
}

RANKS_TEST_P(LoaderOrders, ResumingGivesTheTailOfTheEpoch) {
  const SharedSet shared{{}};
  for (const int threads : {0, 2}) {
    LoaderOptions options = raw_options(param, Cache::none, threads);
    options.augment.dtype = core::DType::float32;
    options.augment.steps = parse_augment("crop:8:2,flip", "--augment");
    Loader whole{world(), shared.open(), options};
    const std::vector<Kept> all = epoch_of(whole, 4);
    for (const std::uint64_t first : {1, 3, 6, 7}) {
      Loader resumed{world(), shared.open(), options};
      EXPECT_TRUE(epoch_of(resumed, 4, first) ==
                  std::vector(all.begin() + static_cast<std::ptrdiff_t>(first), all.end()));
    }
  }
}

RANKS_TEST_P(LoaderOrders, EverySampleIsSeenOnceForAnySizes) {
  for (const std::uint64_t n : {1, 7, 64, 100}) {
    const SharedSet shared{{.n_samples = n, .x_shape = {3}}};
    for (const std::uint64_t global_batch : {1, 3, 8, 33}) {
      LoaderOptions options = raw_options(param, Cache::none, 0);
      options.global_batch = global_batch;
      Loader loader{world(), shared.open(), options};
      const std::vector<Kept> batches = epoch_of(loader, 1);
      EXPECT_EQ(batches.size(), loader.n_batches());
      std::uint64_t n_mine = 0, n_global = 0;
      for (const Kept& batch : batches) n_mine += batch.n, n_global += batch.n_global;
      EXPECT_EQ(sum_of_all(n_mine), n_global);
      EXPECT_EQ(sum_of_all(batches.size()), batches.size() * static_cast<std::uint64_t>(world().n_ranks()));
      const std::uint64_t n_ranks = static_cast<std::uint64_t>(world().n_ranks());
      if (param == Order::torch && n % n_ranks != 0) {
        EXPECT_EQ(n_global, (n / n_ranks + 1) * n_ranks);
        continue;
      }
      EXPECT_EQ(n_global, n);
      EXPECT_EQ(sum_of_all(loader.ledger().hash()), Ledger::complete(n).hash());
      const std::uint64_t half = loader.n_batches() / 2;
      loader.begin_epoch(1);
      for (std::uint64_t i = 0; i < half; ++i) ASSERT_NE(loader.next(), nullptr);
      const std::uint64_t delivered = loader.ledger().hash();
      EXPECT_EQ(loader.ledger_before(1, half).hash(), delivered) << "told before it is delivered";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Orders, LoaderOrders, testing::ValuesIn(all_orders),
                         [](const auto& instance) { return std::string{name(instance.param)}; });

RANKS_TEST(Loader, BatchesAreTheSameForAnyNumberOfRanks) {
  const SharedSet shared{{}};
  Loader loader{world(), shared.open(), raw_options(Order::keyed, Cache::none, 1)};
  const KeyedPermutation order{shared.shape().n_samples, 3, 5};
  for (const Kept& batch : epoch_of(loader, 5)) {
    std::string mine{reinterpret_cast<const char*>(batch.ids.data()), batch.ids.size() * sizeof(std::uint64_t)};
    std::string all;
    for (const std::string& part : world().gather(mine)) all += part;
    if (world().rank() != 0) continue;
    ASSERT_EQ(all.size(), batch.n_global * sizeof(std::uint64_t));
    for (std::uint64_t i = 0; i < batch.n_global; ++i) {
      std::uint64_t id = 0;
      std::memcpy(&id, all.data() + i * sizeof id, sizeof id);
      EXPECT_EQ(id, order.at(batch.number * 16 + i));
    }
  }
}

// In threads and inline, for samples that are together in memory (none) and separate (node).
RANKS_TEST(Loader, LabelsAreOfTheTypeAskedFor) {
  const SharedSet shared{{}};
  for (const int threads : {0, 2}) {
    for (const Cache cache : {Cache::none, Cache::node}) {
      for (const core::DType wanted : {core::DType::int64, core::DType::float32}) {
        LoaderOptions options = raw_options(Order::keyed, cache, threads);
        options.y_dtype = wanted;
        Loader loader{world(), shared.open(), options};
        for (const Kept& batch : epoch_of(loader, 0)) {
          ASSERT_EQ(batch.y.size(), batch.n * core::size_of(wanted));
          for (std::size_t i = 0; i < batch.n; ++i) {
            const auto expected = std::to_integer<int>(label_of(batch.ids[i]));
            if (wanted == core::DType::int64)
              ASSERT_EQ(reinterpret_cast<const std::int64_t*>(batch.y.data())[i], expected);
            else
              ASSERT_EQ(reinterpret_cast<const float*>(batch.y.data())[i], static_cast<float>(expected));
          }
        }
      }
    }
  }
}

// They are consecutive in the block that was read, unlike the loader's own buffers.
RANKS_TEST(Loader, WhatIsStoredAsWantedIsNotCopied) {
  const SharedSet shared{{.n_samples = 128, .x_shape = {24}, .shard_samples = 128, .chunk_samples = 128}};
  for (const int threads : {0, 2}) {
    for (const bool has_labels_as_stored : {false, true}) {
      LoaderOptions options = raw_options(Order::sequential, Cache::none, threads);
      options.is_evaluation = true;
      if (!has_labels_as_stored) options.y_dtype = core::DType::int64;
      Loader loader{world(), shared.open(), options};
      loader.begin_epoch(0);
      Batch last = *loader.next();
      while (const Batch* const batch = loader.next()) {
        EXPECT_EQ(batch->x.data(), last.x.data() + last.x.size());
        EXPECT_EQ(batch->y.data() == last.y.data() + last.y.size(), has_labels_as_stored);
        last = *batch;
      }
    }
  }
}

RANKS_TEST(Loader, EvaluationTakesContiguousRanges) {
  const SharedSet shared{{}};
  LoaderOptions options = raw_options(Order::keyed, Cache::none, 1);
  options.is_evaluation = true;
  options.drop_last = true;
  Loader loader{world(), shared.open(), options};
  std::vector<std::uint64_t> ids;
  for (const Kept& batch : epoch_of(loader, 0)) ids.insert(ids.end(), batch.ids.begin(), batch.ids.end());
  for (std::size_t i = 1; i < ids.size(); ++i) EXPECT_EQ(ids[i], ids[0] + i);
  EXPECT_EQ(sum_of_all(loader.ledger().hash()), Ledger::complete(100).hash());
}

RANKS_TEST(Loader, DropLastLeavesOutTheTail) {
  const SharedSet shared{{}};
  LoaderOptions options = raw_options(Order::keyed, Cache::none, 0);
  options.drop_last = true;
  Loader loader{world(), shared.open(), options};
  const std::vector<Kept> batches = epoch_of(loader, 0);
  EXPECT_EQ(batches.size(), 6u);
  for (const Kept& batch : batches) EXPECT_EQ(sum_of_all(batch.n), 16u);
}

// The ranks of a node together read the set once, and never again.
RANKS_TEST(Loader, TheCacheIsReadOnceAndShared) {
  const SharedSet shared{{.n_samples = 4000, .x_shape = {1000}, .shard_samples = 1500, .chunk_samples = 100}};
  const auto set = shared.open();
  Loader loader{world(), set, raw_options(Order::keyed, Cache::node, 1)};
  const std::uint64_t bytes_read = loader.stats().bytes_read;
  const std::uint64_t all = sum_of_all(bytes_read);
  EXPECT_GE(all, 4000u * 1001);
  EXPECT_LT(all, 4000u * 1001 * 5 / 4);  // blocks at the borders between ranks are read by both
  EXPECT_EQ(epoch_of(loader, 0).size(), loader.n_batches());
  EXPECT_EQ(loader.stats().bytes_read, bytes_read);
  EXPECT_TRUE(loader.stats().is_cached);
  EXPECT_EQ(sum_of_all(loader.ledger().hash()), Ledger::complete(4000).hash());
}

RANKS_TEST(Loader, StatsCount) {
  const SharedSet shared{{}};
  Loader loader{world(), shared.open(), raw_options(Order::blocked, Cache::none, 1)};
  (void)epoch_of(loader, 0);
  const LoaderStats stats = loader.stats();
  EXPECT_FALSE(stats.is_cached);
  EXPECT_GT(stats.bytes_read, 0u);
  EXPECT_GT(stats.n_chunks, 0u);
  EXPECT_EQ(stats.n_crc_failures, 0u);
  EXPECT_GT(stats.data_wait_ms, 0);
  EXPECT_GT(stats.mixing, 0.05);  // windows of 16 of 100 samples
  EXPECT_LT(stats.mixing, 0.5);
  Loader keyed{world(), shared.open(), raw_options(Order::keyed, Cache::none, 1)};
  EXPECT_EQ(keyed.stats().mixing, 1);
}

RANKS_TEST(Loader, DamageComesOutOfNext) {
  for (const Order order : {Order::keyed, Order::blocked}) {
    for (const int threads : {0, 1, 3}) {
      const SharedSet shared{{}};
      shared.damage(57);
      const auto set = shared.open();
      Loader loader{world(), set, raw_options(order, Cache::none, threads)};
      loader.begin_epoch(0);
      std::optional<core::Error> error;
      try {
        (void)rest_of_epoch(loader);
      } catch (const core::Error& caught) {
        error = caught;
      }
      EXPECT_TRUE(world().any(error.has_value()));
      if (!error) continue;
      EXPECT_EQ(error->code(), core::ExitCode::failed);
      EXPECT_NE(std::string{error->what()}.find("train-00001.h5"), std::string::npos) << error->what();
      EXPECT_GT(loader.stats().n_crc_failures, 0u);
    }
  }
}

RANKS_TEST(Loader, DamageStopsAllRanksBeforeTheCacheIsUsed) {
  const SharedSet shared{{}};
  shared.damage(57);
  bool is_caught = false;
  try {
    const Loader loader{world(), shared.open(), raw_options(Order::keyed, Cache::node, 1)};
  } catch (const core::Error& error) {
    is_caught = true;
    EXPECT_EQ(error.code(), core::ExitCode::failed);
    EXPECT_NE(std::string{error.what()}.find("train-00001.h5"), std::string::npos) << error.what();
  }
  EXPECT_TRUE(is_caught);
}

RANKS_TEST(Loader, EndsInTheMiddleOfAnEpoch) {
  const SharedSet shared{{}};
  for (const int threads : {0, 1, 3}) {
    Loader loader{world(), shared.open(), raw_options(Order::keyed, Cache::none, threads)};
    EXPECT_EQ(loader.next(), nullptr);
    loader.begin_epoch(0);
    EXPECT_NE(loader.next(), nullptr);
    loader.begin_epoch(1, 2);
    EXPECT_EQ(loader.next()->number, 2u);
  }
}

RANKS_TEST(Loader, RefusesBadOptions) {
  const SharedSet shared{{}};
  LoaderOptions no_batch = raw_options(Order::keyed, Cache::none, 0), no_threads = no_batch;
  no_batch.global_batch = 0;
  no_threads.threads = -2;
  for (const auto& [options, flag] : {std::pair{no_batch, "--batch"}, std::pair{no_threads, "--threads"}}) {
    try {
      const Loader loader{world(), shared.open(), options};
      FAIL() << "no error";
    } catch (const core::Error& error) {
      EXPECT_EQ(error.code(), core::ExitCode::usage);
      EXPECT_EQ(error.problem().where, flag);
    }
  }
}

}  // namespace
}  // namespace lockstep::data
