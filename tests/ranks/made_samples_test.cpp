// The loader over synthetic samples of any element type.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "data/load/loader.hpp"
#include "data/synth/synth.hpp"
#include "runtime/communicator.hpp"
#include "support/ranks.hpp"

namespace lockstep::data {
namespace {

using core::DType;
using support::world;

LoaderOptions made_options(DType x_dtype, int threads) {
  LoaderOptions options;
  options.global_batch = 16;
  options.augment.dtype = x_dtype;
  options.threads = threads;
  return options;
}

class MadeSamples : public testing::TestWithParam<Synthesizer> {};

RANKS_TEST_P(MadeSamples, AreThoseOfTheSource) {
  const SynthOptions synth{.samples = 100, .height = 5, .width = 6};
  const std::unique_ptr<Source> source = param.open(synth);
  const SetSpec& spec = source->spec();
  std::vector<std::byte> x(spec.x.bytes()), y(spec.y.bytes());
  for (const int threads : {0, 2}) {
    for (const bool is_evaluation : {false, true}) {
      LoaderOptions options = made_options(spec.x.dtype, threads);
      options.is_evaluation = is_evaluation;
      Loader loader{world(), param.open(synth), 0, options};
      loader.begin_epoch(3);
      std::vector<std::uint64_t> ids;
      while (const Batch* const batch = loader.next()) {
        ASSERT_EQ(batch->x.size(), batch->n * x.size());
        ASSERT_EQ(batch->y.size(), batch->n * y.size());
        for (std::uint64_t i = 0; i < batch->n; ++i) {
          source->read(0, batch->ids[i], 1, x, y);
          ASSERT_TRUE(std::ranges::equal(batch->x.subspan(i * x.size(), x.size()), x));
          ASSERT_TRUE(std::ranges::equal(batch->y.subspan(i * y.size(), y.size()), y));
        }
        ids.insert(ids.end(), batch->ids.begin(), batch->ids.end());
      }
      EXPECT_EQ(std::ranges::is_sorted(ids), is_evaluation);
      std::uint64_t ledger = 0;
      const std::uint64_t mine = loader.ledger().hash();
      for (const std::uint64_t hash : runtime::gather_values(world(), std::span{&mine, 1})) ledger += hash;
      EXPECT_EQ(runtime::broadcast_value(world(), ledger), Ledger::complete(100).hash());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, MadeSamples, testing::ValuesIn(synthesizers),
                         [](const auto& instance) { return std::string{instance.param.name}; });

/// The ids of this rank in an epoch.
std::vector<std::uint64_t> made_ids(Order order) {
  LoaderOptions options = made_options(DType::float32, 0);
  options.sampler = {.order = order, .seed = 3};
  Loader loader{world(), synth_toy({.samples = 50}), 0, options};
  loader.begin_epoch(1);
  std::vector<std::uint64_t> ids;
  while (const Batch* const batch = loader.next()) ids.insert(ids.end(), batch->ids.begin(), batch->ids.end());
  return ids;
}

RANKS_TEST(MadeSamples, LieInNoBlocks) {
  EXPECT_EQ(made_ids(Order::blocked), made_ids(Order::keyed));
  EXPECT_NE(made_ids(Order::torch), made_ids(Order::keyed));
}

/// x of sample i is (i, i + 1), y is i / 2, all modulo 100.
class NumberSource final : public Source {
 public:
  explicit NumberSource(DType dtype, std::atomic<int>* n_reads = nullptr) : n_reads_{n_reads} {
    spec_.x = {dtype, {2}};
    spec_.y = {dtype, {}};
  }

  [[nodiscard]] const SetSpec& spec() const override { return spec_; }
  [[nodiscard]] std::vector<SourceSplit> splits() const override { return {{"train", 120}}; }

  void read(std::size_t, std::uint64_t first, std::uint64_t, std::span<std::byte> x, std::span<std::byte> y) override {
    if (n_reads_ != nullptr) ++*n_reads_;
    const std::size_t each = core::size_of(spec_.x.dtype);
    store(first, x);
    store(first + 1, x.subspan(each));
    store(first / 2, y);
  }

  void store(std::uint64_t number, std::span<std::byte> to) const {
    core::visit(spec_.x.dtype, [&]<class T>(std::type_identity<T>) {
      T value;
      if constexpr (std::is_arithmetic_v<T>)
        value = static_cast<T>(number % 100);
      else
        value = T{static_cast<float>(number % 100)};
      std::memcpy(to.data(), &value, sizeof value);
    });
  }

 private:
  SetSpec spec_{};
  std::atomic<int>* n_reads_;
};

class MadeNumbers : public testing::TestWithParam<DType> {};

/// `x_unit`: the value for a stored 1.
template <class X, class Y>
void expect_numbers(DType stored, DType x_dtype, DType y_dtype, X x_unit) {
  for (const int threads : {0, 2}) {
    LoaderOptions options = made_options(x_dtype, threads);
    options.y_dtype = y_dtype;
    Loader loader{world(), std::make_unique<NumberSource>(stored), 0, options};
    loader.begin_epoch(0);
    while (const Batch* const batch = loader.next()) {
      ASSERT_EQ(batch->x.size(), 2 * batch->n * sizeof(X));
      ASSERT_EQ(batch->y.size(), batch->n * sizeof(Y));
      const auto* const x = reinterpret_cast<const X*>(batch->x.data());
      const auto* const y = reinterpret_cast<const Y*>(batch->y.data());
      for (std::size_t i = 0; i < batch->n; ++i) {
        ASSERT_EQ(x[2 * i], static_cast<X>(batch->ids[i] % 100) / x_unit);
        ASSERT_EQ(x[2 * i + 1], static_cast<X>((batch->ids[i] + 1) % 100) / x_unit);
        ASSERT_EQ(y[i], static_cast<Y>(batch->ids[i] / 2));
      }
    }
  }
}

RANKS_TEST_P(MadeNumbers, ComeAsTheTypesAskedFor) {
  expect_numbers<std::int64_t, float>(param, DType::int64, DType::float32, 1);
  const float unit = param == DType::uint8 ? 255.0f : 1.0f;  // for x these are levels of pixels
  expect_numbers<float, std::int64_t>(param, DType::float32, DType::int64, unit);
}

INSTANTIATE_TEST_SUITE_P(Types, MadeNumbers, testing::ValuesIn(core::all_dtypes),
                         [](const auto& instance) { return std::string{name(instance.param)}; });

RANKS_TEST(MadeSamples, AreMadeOnceWhereTheBatchIsRepeated) {
  std::atomic<int> n_reads{0};
  LoaderOptions options = made_options(DType::float32, 2);
  options.global_batch = 12;
  options.is_repeated = true;
  Loader loader{world(), std::make_unique<NumberSource>(DType::float32, &n_reads), 0, options};
  EXPECT_EQ(loader.stats().threads, 0);
  std::vector<std::uint64_t> first_ids;
  for (std::uint64_t epoch = 0; epoch < 2; ++epoch) {
    loader.begin_epoch(epoch);
    for (std::uint64_t number = 0; number < 10; ++number) {
      const Batch* const batch = loader.next();
      ASSERT_NE(batch, nullptr);
      EXPECT_EQ(batch->number, number);
      EXPECT_EQ(batch->n_global, 12u);
      const std::vector<std::uint64_t> ids(batch->ids.begin(), batch->ids.end());
      if (first_ids.empty()) first_ids = ids;
      EXPECT_EQ(ids, first_ids);
    }
    EXPECT_EQ(loader.next(), nullptr);
  }
  EXPECT_EQ(n_reads, static_cast<int>(first_ids.size()));
  // The same for a resumed run.
  Loader resumed{world(), std::make_unique<NumberSource>(DType::float32, &n_reads), 0, options};
  resumed.begin_epoch(1, 7);
  const Batch* const batch = resumed.next();
  ASSERT_NE(batch, nullptr);
  EXPECT_EQ(std::vector<std::uint64_t>(batch->ids.begin(), batch->ids.end()), first_ids);
}

}  // namespace
}  // namespace lockstep::data
