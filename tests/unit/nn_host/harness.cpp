#include "unit/nn_host/harness.hpp"

#include <gtest/gtest.h>

#include <dnnl.hpp>
#include <memory>

#include "core/dtype.hpp"
#include "core/error.hpp"
#include "core/rng.hpp"
#include "nn/host/kokkos_session.hpp"
#include "nn/own_arenas.hpp"

namespace lockstep::nn::host {
namespace {

/// Kokkos runs once in a process: from the first test to the last.
class KokkosThreads : public testing::Environment {
 public:
  void SetUp() override { session_ = std::make_unique<nn::host::KokkosSession>(2); }
  void TearDown() override { session_.reset(); }

 private:
  std::unique_ptr<nn::host::KokkosSession> session_;
};
const auto* const kokkos_threads = testing::AddGlobalTestEnvironment(new KokkosThreads);

}  // namespace

Samples::Samples(const ReferenceBatch& batch, Precision precision)
    : n{batch.n},
      numbers{to_precision(batch.x, precision)},
      x_ids{batch.ids},
      classes{batch.classes},
      targets(batch.targets.begin(), batch.targets.end()) {
  for (std::uint64_t i = 0; i < n; ++i) ids.push_back(100 + i);
}

data::Batch Samples::batch(std::uint64_t begin, std::uint64_t end) const {
  const data::Batch whole{.n = n,
                          .x = x_ids.empty() ? std::as_bytes(std::span{numbers}) : std::as_bytes(std::span{x_ids}),
                          .y = classes.empty() ? std::as_bytes(std::span{targets}) : std::as_bytes(std::span{classes}),
                          .ids = ids};
  return whole.part(begin, end - begin);
}

Arena::Arena(std::size_t n, float value) : memory_(n + 16, value), n_{n} {
  void* begin = memory_.data();
  std::size_t room = memory_.size() * sizeof(float);
  begin_ = static_cast<float*>(std::align(64, n * sizeof(float), begin, room));
}

std::vector<Precision> precisions() { return {Precision::f32, Precision::bf16}; }

bool has_avx512() { return dnnl::get_effective_cpu_isa() >= dnnl::cpu_isa::avx512_core; }

Harness::Harness(const Case& given) : Harness{given, options_of(given)} {}

Harness::Harness(const Case& given, ExecutorOptions given_options)
    : tested{given},
      options{given_options},
      samples{given.batch, options.precision},
      executor{given.network, options},
      reference{given.network},
      parameters{executor.arena_elements()},
      gradients{executor.arena_elements(), 7} {
  const Network& network = tested.network;
  for (std::size_t i = 0; i < network.parameters().size(); ++i) {
    const std::vector<double> exact = parameter_values(network, i);
    const std::vector<float> rounded = to_precision(exact, options.precision);
    executor.pack(static_cast<int>(i), rows(i), rounded, slot(parameters.elements(), i));
    reference.parameter(i).assign(rounded.begin(), rounded.end());
  }
  executor.bind(places());
  tested.batch.x.assign(samples.numbers.begin(), samples.numbers.end());
  tested.batch.targets.assign(samples.targets.begin(), samples.targets.end());
  tested.options.keeps = [this](int node, std::uint64_t sample, std::uint64_t element) {
    const auto& layer = std::get<Dropout>(tested.network.nodes()[static_cast<std::size_t>(node)].layer);
    return keeps(options.seed, epoch, node, samples.ids[sample], element, layer.probability);
  };
}

LossSums Harness::forward(const data::Batch& batch, bool is_training) {
  executor.enqueue(batch, is_training ? Pass::forward : Pass::evaluation, numbers, *this, stream);
  return executor.sums();
}

void Harness::backward(float scale, bool accumulate) {
  n_ready_ = 0;
  core::StepNumbers scaled = numbers;
  scaled.sample_weight = scale;
  executor.enqueue({}, accumulate ? Pass::backward_adding : Pass::backward, scaled, *this, stream);
  EXPECT_EQ(n_ready_, executor.slots().size());
}

void Harness::touched(std::size_t slot, std::span<const std::uint64_t> rows) {
  if (on_touched) on_touched(slot, rows);
}

void Harness::ready(std::size_t slot) { EXPECT_EQ(slot, n_ready_++); }

void Harness::sum(runtime::DeviceSpan<double> values, runtime::Stream&) { on_sum(runtime::on_host(values)); }

std::vector<SlotPlace> Harness::places() {
  return places_in(executor, runtime::on_device(parameters.elements()), runtime::on_device(gradients.elements()), {});
}

std::span<float> Harness::slot(std::span<float> arena, std::size_t parameter) const {
  for (const ArenaSlot& slot : executor.slots())
    if (slot.parameter == static_cast<int>(parameter)) return slot.slice.of(arena);
  ADD_FAILURE() << "no slot for parameter " << parameter;
  return {};
}

core::Slice Harness::rows(std::size_t parameter) const {
  for (const ArenaSlot& slot : executor.slots())
    if (slot.parameter == static_cast<int>(parameter)) return slot.all_rows();
  return {};
}

std::vector<float> Harness::gradient(std::size_t i) {
  std::vector<float> logical(n_elements(tested.network.parameters()[i].shape));
  executor.unpack(static_cast<int>(i), rows(i), slot(gradients.elements(), i), logical);
  return logical;
}

LossSums Harness::reference_forward(bool is_training) {
  ReferenceOptions as_tested = tested.options;
  as_tested.is_training = is_training;
  as_tested.bn_group = options.bn_group;
  return reference.forward(tested.batch, as_tested);
}

double Harness::gradient_error(std::size_t i) { return relative_error(gradient(i), reference.gradient(i)); }

Case model_case(const std::string& name) {
  for (const Case& given : model_cases())
    if (given.name == name) return given;
  ADD_FAILURE() << "no case " << name;
  return {};
}

Case make_case(Network network, std::uint64_t n, Loss loss) {
  Case result{"", std::move(network)};
  result.batch.n = n;
  result.options.loss = loss;
  const std::uint64_t n_rows = n_sample_rows(result.network.output());
  const std::uint64_t n_outputs = n_elements(result.network.output()) / n_rows;
  const std::uint64_t n_x = n * n_elements(result.network.nodes().front().output);
  for (std::uint64_t i = 0; i < n_x; ++i) result.batch.x.push_back(value(21, i));
  for (std::uint64_t i = 0; i < n * n_rows * n_outputs && loss == Loss::mse; ++i)
    result.batch.targets.push_back(value(22, i));
  core::Random random{23};
  for (std::uint64_t i = 0; i < n * n_rows && loss != Loss::mse; ++i)
    result.batch.classes.push_back(static_cast<std::int64_t>(random.below(n_outputs)));
  return result;
}

Case part_of(Case given, std::uint64_t begin, std::uint64_t end) {
  const std::uint64_t n = given.batch.n;
  const auto cut = [&](auto& values) {
    const auto each = static_cast<std::ptrdiff_t>(values.size() / n);
    const auto first = static_cast<std::ptrdiff_t>(begin) * each, last = static_cast<std::ptrdiff_t>(end) * each;
    values = {values.begin() + first, values.begin() + last};
  };
  cut(given.batch.x);
  cut(given.batch.ids);
  cut(given.batch.classes);
  cut(given.batch.targets);
  given.batch.n = end - begin;
  return given;
}

Network image_network(std::uint64_t n_channels) {
  Network net;
  Value x = net.conv("conv1", net.input({3, 9, 10}), {.n_out = n_channels, .kernel = 3, .padding = 1});
  x = net.max_pool(net.relu(x), {.kernel = 3, .stride = 2, .padding = 1});
  Value y = net.batch_norm("bn1", net.conv("conv2", x, {.n_out = n_channels, .kernel = 1, .has_bias = false}),
                           {.has_relu = true});
  y = net.batch_norm("bn2", net.conv("conv3", y, {.n_out = n_channels, .kernel = 3, .padding = 1, .has_bias = false}));
  x = net.add(y, x, {.has_relu = true});
  x = net.conv("conv4", x, {.n_out = n_channels + 1, .kernel = 3, .stride = 2});
  x = net.dropout(x, {.probability = 0.25});
  net.linear("fc", net.flatten(x), {.n_out = 7});
  return net;
}

bool repeats_its_bits(const Case& given, const ExecutorOptions& options) {
  Harness a{given, options}, b{given, options};
  for (Harness* harness : {&a, &b}) {
    harness->forward();
    harness->backward();
  }
  const auto left = a.gradients.elements(), right = b.gradients.elements();
  return std::equal(left.begin(), left.end(), right.begin(), right.end());
}

}  // namespace lockstep::nn::host
