#include <gtest/gtest.h>

#include <barrier>
#include <memory>
#include <numeric>
#include <optional>
#include <thread>

#include "core/error.hpp"
#include "unit/nn_host/harness.hpp"

namespace lockstep::nn::host {
namespace {

/// Sums over threads, each of which is a rank.
class ThreadSum {
 public:
  explicit ThreadSum(std::size_t n_ranks)
      : n_calls(n_ranks, 0), barrier_{static_cast<std::ptrdiff_t>(n_ranks)}, values_(n_ranks) {}

  std::function<void(std::span<double>)> of_rank(std::size_t rank) {
    return [this, rank](std::span<double> values) {
      ++n_calls[rank];
      values_[rank] = values;
      barrier_.arrive_and_wait();
      std::vector<double> sums(values.size(), 0);
      for (const std::span<double> others : values_) {
        EXPECT_EQ(others.size(), sums.size());
        for (std::size_t i = 0; i < std::min(sums.size(), others.size()); ++i) sums[i] += others[i];
      }
      barrier_.arrive_and_wait();
      std::copy(sums.begin(), sums.end(), values.begin());
    };
  }

  std::vector<int> n_calls;

 private:
  std::barrier<> barrier_;
  std::vector<std::span<double>> values_;
};

/// Executors that normalize their samples together: each has a part of the case's samples, with sizes `parts`.
class SyncRanks {
 public:
  SyncRanks(const Case& given, ExecutorOptions options, const std::vector<std::uint64_t>& parts)
      : sum_{parts.size()}, losses_(parts.size(), 0) {
    options.bn_group = 0;
    options.is_group_of_ranks = true;
    std::uint64_t begin = 0;
    for (std::size_t rank = 0; rank < parts.size(); ++rank) {
      harnesses_.push_back(std::make_unique<Harness>(given, options));
      harnesses_.back()->on_sum = sum_.of_rank(rank);
      batches_.push_back(harnesses_.back()->samples.batch(begin, begin + parts[rank]));
      begin += parts[rank];
    }
  }

  /// Calls f(rank, harness) in a thread for each rank; rank 0 in this one.
  template <class F>
  void run(const F& f) {
    std::vector<std::jthread> threads;
    for (std::size_t rank = 1; rank < harnesses_.size(); ++rank)
      threads.emplace_back([&, rank] { f(rank, *harnesses_[rank]); });
    f(0, *harnesses_[0]);
  }

  /// Makes one step; returns the loss of all.
  double step() {
    run([&](std::size_t rank, Harness& harness) {
      losses_[rank] = harness.forward(batches_[rank]).loss;
      harness.backward();
    });
    return std::accumulate(losses_.begin(), losses_.end(), 0.0);
  }

  /// The gradient summed over ranks, as by the synchronizer.
  std::vector<float> gradient(std::size_t parameter) {
    std::vector<float> sum;
    for (const auto& harness : harnesses_) {
      const std::vector<float> more = harness->gradient(parameter);
      sum.resize(more.size(), 0);
      for (std::size_t i = 0; i < more.size(); ++i) sum[i] += more[i];
    }
    return sum;
  }

  /// The statistic of rank 0; expects the same bits on all.
  std::vector<float> statistic(int i) {
    const std::span<float> first = harnesses_[0]->executor.statistic(i);
    for (const auto& harness : harnesses_) {
      const std::span<float> other = harness->executor.statistic(i);
      EXPECT_TRUE(std::equal(first.begin(), first.end(), other.begin(), other.end()));
    }
    return {first.begin(), first.end()};
  }

  const ThreadSum& sum() const { return sum_; }
  const data::Batch& batch(std::size_t rank) const { return batches_[rank]; }

 private:
  ThreadSum sum_;
  std::vector<std::unique_ptr<Harness>> harnesses_{};
  std::vector<data::Batch> batches_{};
  std::vector<double> losses_;
};

/// Two steps of the ranks beside the reference, which has the whole batch.
void expect_as_whole(const Case& given, const ExecutorOptions& options, const std::vector<std::uint64_t>& parts,
                     double tolerance) {
  SyncRanks ranks{given, options, parts};
  ExecutorOptions of_whole = options;
  of_whole.bn_group = 0;
  Harness whole{given, of_whole};
  for (int step = 0; step < 2; ++step) {
    const double expected = whole.reference_forward().loss;
    whole.reference.backward(1);
    EXPECT_NEAR(ranks.step(), expected, tolerance * std::abs(expected));
  }
  for (std::size_t i = 0; i < given.network.parameters().size(); ++i) {
    const std::string& name = given.network.parameters()[i].name;
    const bool cancels_out = options.precision == Precision::bf16 && name == "bn1.bias";
    EXPECT_LT(relative_error(ranks.gradient(i), whole.reference.gradient(i)), cancels_out ? 0.05 : tolerance) << name;
  }
  for (std::size_t i = 0; i < given.network.statistics().size(); ++i)
    EXPECT_LT(relative_error(ranks.statistic(static_cast<int>(i)), whole.reference.statistic(i)), tolerance)
        << given.network.statistics()[i].name;
  for (const int n_calls : ranks.sum().n_calls) EXPECT_EQ(n_calls, ranks.sum().n_calls[0]);
}

TEST(SyncBatchNorm, OfPartsIsThatOfTheWhole) {
  for (const std::uint64_t n_channels : {3u, 10u, 17u}) {
    const Case given = make_case(image_network(n_channels), 8, Loss::cross_entropy);
    for (const std::vector<std::uint64_t>& parts :
         {std::vector<std::uint64_t>{4, 4}, {7, 1}, {0, 8}, {8, 0}, {3, 0, 2, 3}}) {
      SCOPED_TRACE(testing::PrintToString(parts) + " samples, channels: " + std::to_string(n_channels));
      expect_as_whole(given, options_of(given), parts, 2e-5);
    }
  }
}

TEST(SyncBatchNorm, OfPartsIsThatOfTheWholeInAllPrecisions) {
  for (const Case& given : layer_cases()) {
    if (!given.name.starts_with("batch_norm")) continue;
    for (const Precision precision : precisions()) {
      SCOPED_TRACE(given.name);
      const std::uint64_t n = given.batch.n;
      expect_as_whole(given, options_of(given, precision), {n - 2, 2}, precision == Precision::f32 ? 1e-5 : 0.01);
    }
  }
}

// Large enough for loops of several threads.
TEST(SyncBatchNorm, TakesAnyNumberOfChannelsAndSamples) {
  for (const std::uint64_t n_channels : {2u, 8u, 16u, 40u}) {
    for (const std::uint64_t n : {1u, 3u, 33u}) {
      SCOPED_TRACE(std::to_string(n_channels) + " channels, " + std::to_string(n) + " samples");
      const Case given = make_case(image_network(n_channels), n, Loss::cross_entropy);
      expect_as_whole(given, options_of(given), {n}, 2e-5);
    }
  }
}

// Both are bf16: they differ where different normalizations round differently.
TEST(SyncBatchNorm, IsNearThatOfOneRankInBf16) {
  const Case given = make_case(image_network(40), 33, Loss::cross_entropy);
  ExecutorOptions options = options_of(given, Precision::bf16);
  Harness usual{given, options};
  options.is_group_of_ranks = true;
  Harness sync{given, options};
  sync.on_sum = [](std::span<double>) {};
  EXPECT_NEAR(sync.forward().loss / usual.forward().loss, 1, 0.002);
  sync.backward();
  usual.backward();
  for (std::size_t i = 0; i < given.network.parameters().size(); ++i)
    EXPECT_LT(relative_error(sync.gradient(i), usual.gradient(i)), 0.05) << given.network.parameters()[i].name;
}

// The mean is a million times the deviation: float32, or sums of squares, would lose most of the variance.
TEST(SyncBatchNorm, FindsSmallDeviationsFromALargeMean) {
  Network net;
  net.linear("fc", net.flatten(net.batch_norm("bn1", net.input({2, 4, 4}))), {.n_out = 2});
  Case given = make_case(net, 6, Loss::cross_entropy);
  for (double& x : given.batch.x) x = 0x1p22 + std::round(4 * x);
  SyncRanks ranks{given, options_of(given), {4, 2}};
  Harness whole{given};
  ranks.step();
  whole.reference_forward();
  EXPECT_LT(relative_error(ranks.statistic(1), whole.reference.statistic(1)), 1e-6);
}

TEST(SyncBatchNorm, ExchangesInTrainingOnly) {
  const Case given = make_case(image_network(10), 8, Loss::cross_entropy);
  SyncRanks ranks{given, options_of(given), {4, 4}};
  ranks.step();
  EXPECT_EQ(ranks.sum().n_calls, (std::vector<int>{6, 6}));  // of 2 layers
  ranks.run([&](std::size_t rank, Harness& harness) {
    if (rank > 0) return;
    EXPECT_EQ(harness.not_finite(), "");
    harness.forward(ranks.batch(rank), false);
  });
  EXPECT_EQ(ranks.sum().n_calls, (std::vector<int>{6, 6}));
}

// A pass is repeated with the values that other ranks sent in it, so their infinity is also found here.
TEST(SyncBatchNorm, NamesWhatIsNotFiniteByWhatWasExchanged) {
  const Case given = make_case(image_network(10), 8, Loss::cross_entropy);
  ExecutorOptions options = options_of(given);
  int n_calls = 0, infinite = 0;
  options.is_group_of_ranks = true;
  Harness harness{given, options};
  harness.on_sum = [&](std::span<double> values) {
    if (++n_calls == infinite) values[0] = INFINITY;
  };
  harness.forward();
  harness.backward();
  EXPECT_EQ(harness.not_finite(), "");
  for (const auto& [call, name] : {std::pair{1, "bn1"}, {3, "bn2"}, {5, "conv3"}, {6, "conv2"}}) {
    SCOPED_TRACE(call);
    n_calls = 0;
    infinite = call;
    EXPECT_EQ(std::isfinite(harness.forward().loss), call > 4);
    harness.backward();
    const std::vector<float> before{harness.executor.statistic(0).begin(), harness.executor.statistic(0).end()};
    EXPECT_EQ(harness.not_finite(), name);
    EXPECT_EQ(n_calls, 6);
    EXPECT_TRUE(std::equal(before.begin() + 1, before.end(), harness.executor.statistic(0).begin() + 1));
  }
}

TEST(SyncBatchNorm, OfASingleValueIsRefusedByAllRanks) {
  Network net;
  const Value x = net.conv("conv1", net.input({1, 3, 3}), {.n_out = 2, .kernel = 3});
  net.linear("fc", net.flatten(net.batch_norm("bn1", x)), {.n_out = 2});
  const Case given = make_case(net, 2, Loss::cross_entropy);
  for (const std::vector<std::uint64_t>& parts : {std::vector<std::uint64_t>{1, 0}, {1, 1}}) {
    SyncRanks ranks{given, options_of(given), parts};
    const bool is_single = parts[1] == 0;
    ranks.run([&](std::size_t rank, Harness& harness) {
      const auto error = core::complaint_of([&] { harness.forward(ranks.batch(rank)); });
      EXPECT_EQ(error && std::string{error->what()}.find("bn1") != std::string::npos, is_single);
    });
  }
}

}  // namespace
}  // namespace lockstep::nn::host
