// Batch normalization over ranks that are threads, one of which has no samples: same results as one rank with all
// samples.
#include <gtest/gtest.h>

#include <barrier>
#include <thread>

#include "support/recorder.hpp"
#include "unit/nn_cuda/on_test_device.hpp"

namespace lockstep::nn::cuda {
namespace {

/// Sums over ranks, on the host.
class SumOfRanks {
 public:
  explicit SumOfRanks(std::size_t n) : parts_(n), all_{static_cast<std::ptrdiff_t>(n)} {}

  void operator()(std::size_t rank, runtime::DeviceSpan<double> values, const runtime::Stream& stream) {
    stream.wait();
    parts_[rank] = values;
    all_.arrive_and_wait();
    std::vector<double> sums(values.size());
    for (const auto& part : parts_) {
      EXPECT_EQ(part.size(), sums.size());
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += part.data()[i];
    }
    all_.arrive_and_wait();
    std::ranges::copy(sums, values.data());  // from a recorder, which the host can write to
  }

 private:
  std::vector<runtime::DeviceSpan<double>> parts_;
  std::barrier<> all_;
};

// Two branches are added; the first is normalized last, as part of the sum.
Case case_of_branches() {
  Network net;
  const Value x = net.conv("conv1", net.input({3, 5, 5}), {.n_out = 5, .kernel = 3, .padding = 1, .has_bias = false});
  const Value y =
      net.conv("conv2", net.batch_norm("bn1", x, {.has_relu = true}), {.n_out = 9, .kernel = 1, .has_bias = false});
  const Value first = net.batch_norm("bn2", y);
  const Value z = net.conv("conv3", x, {.n_out = 9, .kernel = 1, .has_bias = false});
  const Value sum = net.add(first, net.batch_norm("bn3", z), {.has_relu = true});
  net.linear("fc", net.global_avg_pool(sum), {.n_out = 4});
  Case given{"branches", net};
  given.batch = {.n = 5, .classes = {3, 0, 1, 2, 0}};
  for (std::uint64_t i = 0; i < 5 * 3 * 5 * 5; ++i) given.batch.x.push_back(value(22, i));
  return given;
}

TEST(SyncBatchNorm, AreAsOneRankWithAllSamples) {
  test::Recorder recorder;
  const test::UseRecorder use{recorder};
  const Case given = case_of_branches();
  const std::vector<std::uint64_t> begins{0, 2, 2, 5};  // the second has none
  const std::size_t n_ranks = begins.size() - 1;
  SumOfRanks sum{n_ranks};
  std::vector<std::unique_ptr<OnTestDevice>> ranks;
  for (std::size_t rank = 0; rank < n_ranks; ++rank) {
    ranks.push_back(std::make_unique<OnTestDevice>(given, Precision::f32, true));
    ranks.back()->on_sum = [&, rank](auto values, auto& stream) { sum(rank, values, stream); };
  }
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < n_ranks; ++rank)
    threads.emplace_back([&, rank] {
      ranks[rank]->forward_part(Pass::forward, begins[rank], begins[rank + 1]);
      ranks[rank]->backward(0.2F);
      ranks[rank]->forward_part(Pass::evaluation, begins[rank], begins[rank + 1]);
    });
  for (std::thread& thread : threads) thread.join();

  const std::span<float> total = ranks[0]->fetch_gradients();
  for (std::size_t rank = 1; rank < n_ranks; ++rank) {
    const std::span<const float> part = ranks[rank]->fetch_gradients();
    for (std::size_t i = 0; i < total.size(); ++i) total[i] += part[i];
  }
  for (std::size_t rank = 0; rank < n_ranks; ++rank) {
    SCOPED_TRACE(rank);
    const std::span<float> here = rank == 0 ? total : ranks[rank]->fetch_gradients();
    std::ranges::copy(total, here.begin());
    static_cast<void>(ranks[rank]->reference_forward(true));
    ranks[rank]->reference().backward(0.2);
    ranks[rank]->expect_fetched(1e-5);
  }
  for (const std::string& complaint : recorder.complaints()) ADD_FAILURE() << complaint;
}

}  // namespace
}  // namespace lockstep::nn::cuda
