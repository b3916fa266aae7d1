#include <gtest/gtest.h>

#include "core/error.hpp"
#include "nn/graph/models.hpp"
#include "unit/nn_host/harness.hpp"

namespace lockstep::nn::host {
namespace {

constexpr double batches_tolerance = 2e-5;

/// Without dropout, because ids of a part begin at 100 again.
Case plain_case(std::uint64_t n) {
  Network net;
  Value x = net.conv("conv1", net.input({3, 8, 8}), {.n_out = 10, .kernel = 3, .padding = 1, .has_bias = false});
  x = net.batch_norm("bn1", x, {.has_relu = true});
  x = net.max_pool(net.add(net.conv("conv2", x, {.n_out = 10, .kernel = 1}), x, {.has_relu = true}));
  net.linear("fc", net.flatten(x), {.n_out = 4});
  return make_case(net, n, Loss::cross_entropy);
}

/// Compares gradients of `harness` with the reference's for its samples [begin, end).
void expect_gradients_of(Harness& harness, std::uint64_t begin, std::uint64_t end) {
  Harness part{part_of(harness.tested, begin, end), harness.options};
  part.reference_forward();
  part.reference.backward(1);
  for (std::size_t i = 0; i < part.tested.network.parameters().size(); ++i)
    EXPECT_LT(relative_error(harness.gradient(i), part.reference.gradient(i)), batches_tolerance)
        << harness.tested.network.parameters()[i].name;
}

TEST(HostBatches, MayBeSmallerThanTheLargestAndComeInAnyOrder) {
  Harness harness{plain_case(8)};
  for (const auto& [begin, end] : {std::pair{0u, 8u}, {5u, 8u}, {0u, 8u}, {2u, 3u}, {5u, 8u}, {1u, 7u}}) {
    SCOPED_TRACE(std::to_string(begin) + " to " + std::to_string(end));
    EXPECT_EQ(harness.forward(harness.samples.batch(begin, end)).n, end - begin);
    harness.backward();
    expect_gradients_of(harness, begin, end);
  }
}

TEST(HostBatches, MayBeEvaluatedInBetween) {
  Harness harness{plain_case(8)};
  harness.forward();
  harness.backward();
  const std::vector<float> before = harness.gradient(0);
  harness.forward(harness.samples.batch(0, 5), false);
  harness.forward(harness.samples.batch(), false);
  EXPECT_EQ(harness.gradient(0), before);
  EXPECT_THROW(harness.backward(), core::Error);
  harness.forward();
  harness.backward();
  expect_gradients_of(harness, 0, 8);
}

TEST(HostBatches, OfNoSamplesGiveGradientsOfZero) {
  Harness harness{plain_case(4)};
  const data::Batch none{};
  harness.forward();
  harness.backward();
  const std::vector<float> before = harness.gradient(0);
  EXPECT_EQ(harness.forward(none).n, 0u);
  harness.backward(1, true);
  EXPECT_EQ(harness.gradient(0), before);
  harness.backward();
  for (const float element : harness.gradients.elements()) ASSERT_EQ(element, 0);
  EXPECT_EQ(harness.forward(none, false).loss, 0);
  EXPECT_EQ(harness.not_finite(), "");
}

/// Layers share a weight, one of them as the second to compute its gradient.
Case shared_case() {
  Network net;
  const Value wte = net.embedding("wte", net.ids(2), {.n_rows = 9, .width = 4, .column = std::nullopt});
  const Value middle = net.linear("middle", wte, {.n_out = 9}, wte);
  net.linear("head", net.linear("fc", middle, {.n_out = 4}), {.n_out = 9}, wte);
  Case given = make_case(net, 8, Loss::cross_entropy);
  given.batch.ids = {3, 0, 1, 4, 3, 5, 3, 4, 8, 0, 3, 1, 1, 4, 0, 7};
  return given;
}

void expect_sum_of_parts(const Case& given) {
  Harness harness{given};
  Harness first{part_of(harness.tested, 0, 3), harness.options}, second{part_of(harness.tested, 3, 8), harness.options};
  harness.forward(harness.samples.batch(0, 3));
  harness.backward(2);
  harness.forward(harness.samples.batch(3, 8));
  harness.backward(0.5f, true);
  first.reference_forward();
  first.reference.backward(2);
  second.reference_forward();
  second.reference.backward(0.5);
  for (std::size_t i = 0; i < harness.tested.network.parameters().size(); ++i) {
    std::vector<double> sum = first.reference.gradient(i);
    for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += second.reference.gradient(i)[k];
    EXPECT_LT(relative_error(harness.gradient(i), sum), batches_tolerance)
        << harness.tested.network.parameters()[i].name;
  }
}

TEST(HostBatches, AddUpTheirGradients) {
  expect_sum_of_parts(plain_case(8));
  expect_sum_of_parts(shared_case());
}

TEST(HostBatches, PlaceASharedWeightOnce) {
  Harness harness{shared_case()};
  const Network& network = harness.tested.network;
  std::vector<std::string> names;
  for (const ArenaSlot& slot : harness.executor.slots())
    names.push_back(network.parameters()[static_cast<std::size_t>(slot.parameter)].name);
  EXPECT_EQ(names, (std::vector<std::string>{"head.bias", "fc.weight", "fc.bias", "middle.bias", "wte.weight"}));
  harness.forward();
  harness.backward();
  expect_gradients_of(harness, 0, 8);
}

TEST(HostBatches, RefuseRowGradientsOfASharedWeight) {
  const Case given = shared_case();
  ExecutorOptions options = options_of(given);
  options.row_gradients = {0};
  EXPECT_THROW((HostExecutor{given.network, options}), core::Error);
}

/// Two tables of which a batch reads few rows.
Case tables_case() {
  Network net;
  const Value ids = net.ids(2);
  const Value users = net.embedding("users", ids, {.n_rows = 40, .width = 3, .column = 0});
  const Value items = net.embedding("items", ids, {.n_rows = 50, .width = 5, .column = 1});
  net.linear("fc", net.concat({users, items}), {.n_out = 1});
  Case given = make_case(net, 8, Loss::mse);
  given.batch.ids = {3, 0, 17, 42, 3, 5, 39, 42, 8, 0, 3, 1, 17, 49, 0, 7};
  return given;
}

// The first table's gradient is added to zeros that its owner wrote, the second's is written: both end the same.
TEST(HostBatches, AddRowsWhereTheOwnerZeroesThem) {
  const Case given = tables_case();
  ExecutorOptions options = options_of(given);
  options.row_gradients = {0};
  Harness by_rows{given, options}, whole{given};
  for (int step = 0; step < 2; ++step) {
    std::ranges::fill(by_rows.slot(by_rows.gradients.elements(), 0), 0.0f);
    for (Harness* harness : {&by_rows, &whole}) {
      harness->forward(harness->samples.batch(0, 3));
      harness->backward(2);
      harness->forward(harness->samples.batch(3, 8));
      harness->backward(0.5f, true);
    }
    for (std::size_t i = 0; i < given.network.parameters().size(); ++i)
      EXPECT_LT(relative_error(by_rows.gradient(i), whole.gradient(i)), 1e-6) << i;
  }
  const std::vector<float> before = by_rows.gradient(0), second = by_rows.gradient(1);
  by_rows.forward();
  by_rows.backward(0);
  EXPECT_EQ(by_rows.gradient(0), before);
  EXPECT_NE(by_rows.gradient(1), second);
}

// Only tables with row gradients report rows, and only in training.
TEST(HostBatches, TellTheRowsTheyTouch) {
  const Case given = tables_case();
  ExecutorOptions options = options_of(given);
  options.row_gradients = {1};
  std::vector<std::pair<int, std::vector<std::uint64_t>>> told;
  Harness harness{given, options};
  harness.on_touched = [&](std::size_t slot, std::span<const std::uint64_t> rows) {
    told.emplace_back(harness.executor.slots()[slot].parameter, std::vector(rows.begin(), rows.end()));
  };
  harness.forward(harness.samples.batch(0, 3));
  harness.backward();
  EXPECT_EQ(told, (decltype(told){{1, {0, 42, 5}}}));
  EXPECT_EQ(harness.not_finite(), "");
  harness.forward(harness.samples.batch(), false);
  harness.forward(harness.samples.batch(0, 0));
  EXPECT_EQ(told.size(), 1u);
}

TEST(HostBatches, TellTheRowsOfSequences) {
  Network net;
  net.linear("fc", net.embedding("wte", net.ids(2), {.n_rows = 9, .width = 3, .column = std::nullopt}), {.n_out = 1});
  Case given = make_case(net, 3, Loss::mse);
  given.batch.ids = {3, 0, 8, 3, 1, 1};
  ExecutorOptions options = options_of(given);
  options.row_gradients = {0};
  std::vector<std::uint64_t> told;
  Harness harness{given, options};
  harness.on_touched = [&](std::size_t, std::span<const std::uint64_t> rows) { told.assign(rows.begin(), rows.end()); };
  std::ranges::fill(harness.slot(harness.gradients.elements(), 0), 0.0f);
  harness.reference_forward();
  harness.reference.backward(1);
  harness.forward();
  harness.backward();
  EXPECT_EQ(told, (std::vector<std::uint64_t>{3, 0, 8, 3, 1, 1}));
  EXPECT_LT(harness.gradient_error(0), 1e-5);
}

TEST(HostBatches, AreNormalizedInGroupsAndTheirTail) {
  for (const std::uint64_t group : {1u, 2u, 3u, 5u, 8u, 20u}) {
    SCOPED_TRACE(group);
    const Case given = plain_case(8);
    ExecutorOptions options = options_of(given);
    options.bn_group = group;
    Harness harness{given, options};
    EXPECT_NEAR(harness.forward().loss / harness.reference_forward().loss, 1, batches_tolerance);
    harness.reference.backward(1);
    harness.backward();
    for (std::size_t i = 0; i < given.network.parameters().size(); ++i)
      EXPECT_LT(harness.gradient_error(i), batches_tolerance) << given.network.parameters()[i].name;
    for (int i = 0; i < 2; ++i)
      EXPECT_LT(relative_error(harness.executor.statistic(i), harness.reference.statistic(static_cast<std::size_t>(i))),
                batches_tolerance);
  }
}

// Two halves of a batch of 8, as parts of one step, move them like its two groups.
TEST(HostBatches, PartsOfAStepMoveStatisticsOnce) {
  const Case given = plain_case(8);
  ExecutorOptions options = options_of(given);
  options.bn_group = 4;
  Harness whole{given, options}, parts{given, options};
  for (int step = 0; step < 2; ++step) {
    whole.forward();
    parts.numbers.share_of_step = 0.5;
    for (const std::uint64_t first : {0u, 4u}) {
      parts.numbers.begins_step = first == 0;
      parts.forward(parts.samples.batch(first, first + 4));
    }
  }
  for (int i = 0; i < 2; ++i) {
    const auto expected = whole.executor.statistic(i), found = parts.executor.statistic(i);
    for (std::size_t c = 0; c < expected.size(); ++c) EXPECT_NEAR(found[c], expected[c], 1e-5F) << i << ' ' << c;
  }
}

TEST(HostBatches, GiveTheSameBitsAgain) {
  for (const char* name : {"mnist_cnn", "resnet18_cifar", "movielens"}) {
    const Case given = model_case(name);
    ExecutorOptions options = options_of(given);
    options.is_deterministic = true;
    EXPECT_TRUE(repeats_its_bits(given, options)) << given.name;
  }
}

TEST(HostBatches, ArePlannedBeforeTheyCome) {
  const Case given = plain_case(8);
  const HostExecutor small{given.network, {.max_batch = 8}}, large{given.network, {.max_batch = 64}};
  // Kept for the backward pass: the results of conv1, bn1 and the sum.
  constexpr std::size_t least = 3 * 10 * 64 * sizeof(float);
  EXPECT_GT(small.n_bytes(), 8 * least);
  EXPECT_GT(large.n_bytes(), small.n_bytes() + 56 * least);
}

}  // namespace
}  // namespace lockstep::nn::host
