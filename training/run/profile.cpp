#include "training/run/profile.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/rng.hpp"
#include "nn/own_arenas.hpp"
#include "runtime/accelerator.hpp"

namespace lockstep::training {
namespace {

constexpr int n_trials = 5;

/// Collective: the sizes with which limits are measured, the same on all ranks, which together choose how to compute.
/// They are at least as large as a machine needs to reach its limits. They are smaller on a GPU with too little free
/// memory: each element of the square exists a dozen times, in floats and derived forms, and ranks may share the GPU.
MachineLimits sizes_of_limits(const runtime::Communicator& world) {
  runtime::Accelerator* const accelerator = runtime::accelerator();
  if (accelerator == nullptr) return {.matrix_side = 1024, .stream_bytes = std::uint64_t{64} << 20};
  constexpr std::uint64_t largest = 8192, bytes_per_element = 12 * sizeof(float), most_ranks = 8;
  const std::uint64_t most = accelerator->available().value / most_ranks / bytes_per_element;
  std::uint8_t n_halved = 0;
  for (std::uint64_t side = largest; side > 64 && side * side > most; side /= 2) ++n_halved;
  const std::uint64_t side = largest >> world.highest(n_halved);
  return {.matrix_side = side, .stream_bytes = side * side * sizeof(float)};
}

/// An evaluation uses no hooks.
struct Nobody final : nn::Hooks {
  void touched(std::size_t, std::span<const std::uint64_t>) override {}
  void ready(std::size_t) override {}
  void sum(runtime::DeviceSpan<double>, runtime::Stream&) override {}
};

/// Random, because products of zeros take less power than others, and so less time.
runtime::Buffer uniform_floats(std::size_t n) {
  runtime::Buffer floats{core::Bytes{n * sizeof(float)}, runtime::Memory::pinned};
  core::Random random{1};
  for (float& value : floats.as<float>()) value = static_cast<float>(2 * random.uniform() - 1);
  return floats;
}

/// The minimum time of `node` in a forward pass over `n` samples.
double best_forward_s(nn::Device& device, const nn::Network& network, nn::ExecutorOptions options, std::uint64_t n,
                      const std::string& node) {
  options.max_batch = n;
  options.loss = nn::Loss::mse;
  const std::unique_ptr<nn::Executor> executor = device.make_executor(network, options);
  const runtime::Buffer x = uniform_floats(n * network.nodes().front().output[0]);
  const std::span<const float> values = x.as<float>();
  const nn::OwnArenas arenas{*executor, values.first(std::min(values.size(), executor->arena_elements()))};
  const std::vector<float> y(n * network.output()[0]);
  const data::Batch batch{.n = n, .x = x.bytes(), .y = std::as_bytes(std::span{y})};
  runtime::Stream stream;
  double best_s = std::numeric_limits<double>::infinity();
  Nobody nobody;
  for (int trial = 0; trial <= n_trials; ++trial) {
    executor->layer_times().start_profile();
    executor->enqueue(batch, nn::Pass::evaluation, {}, nobody, stream);
    for (const nn::ProfileRow& row : executor->layer_times().end_profile())
      if (row.node == node && trial > 0) best_s = std::min(best_s, row.forward_s);
  }
  stream.wait();
  return best_s;
}

/// The minimum work of a layer, for one sample and for one call.
struct Arithmetic {
  double multiply_adds = 0;  ///< forward and backward
  double values = 0;         ///< activations and their gradients read or written
  double weights = 0;        ///< parameters and their gradients read or written
};

/// Forward reads inputs and writes the output. Backward reads the output's gradient and the inputs, and writes the
/// inputs' gradients if an earlier layer needs them. Both read the weights; backward writes their gradients.
Arithmetic work_of(const nn::Network& network, const nn::Node& node) {
  Arithmetic work;
  const auto n_out = static_cast<double>(nn::n_elements(node.output));
  double n_in = 0;
  bool is_first = false;
  for (const nn::Value& input : node.inputs) {
    n_in += static_cast<double>(nn::n_elements(network.shape(input)));
    is_first = is_first || input.node == 0;
  }
  work.values = 2 * n_out + (is_first ? 2 : 3) * n_in;
  for (const int parameter : node.parameters)
    work.weights +=
        3 * static_cast<double>(nn::n_elements(network.parameters()[static_cast<std::size_t>(parameter)].shape));
  work.multiply_adds = (is_first ? 2 : 3) * static_cast<double>(network.n_multiply_adds(node));
  return work;
}

/// Sent from each rank to rank 0 for every node of the network.
struct Measured {
  double forward_s = 0;
  double backward_s = 0;
  double compute_s = 0;  ///< at the machine's rate of products
  double memory_s = 0;   ///< at the machine's rate of memory
  double flops = 0;
};

}  // namespace

MachineLimits measure_limits(const runtime::Communicator& world, nn::Device& device, nn::ExecutorOptions options) {
  MachineLimits limits = sizes_of_limits(world);
  world.barrier();  // limits apply while all ranks work
  const std::uint64_t side = limits.matrix_side;
  nn::Network product;
  product.linear("product", product.input({side}), {.n_out = side, .has_bias = false});
  const double product_s = best_forward_s(device, product, options, side, "product");
  options.precision = nn::Precision::f32;
  nn::Network stream;
  const std::uint64_t n = limits.stream_bytes / sizeof(float) / side;
  stream.linear("sum", stream.relu(stream.input({side}), "relu"), {.n_out = 1});
  const double stream_s = best_forward_s(device, stream, options, n, "relu");
  limits.gflops = 2e-9 * static_cast<double>(side * side * side) / product_s;
  limits.memory_GBps = 2e-9 * static_cast<double>(limits.stream_bytes) / stream_s;
  return limits;
}

double multiply_adds_of_step(const nn::Network& network) {
  double sum = 0;
  for (const nn::Node& node : network.nodes()) sum += work_of(network, node).multiply_adds;
  return sum;
}

Profiler::Profiler(const runtime::Communicator& world, nn::Device& device, const nn::Network& network,
                   const nn::ExecutorOptions& options, nn::Executor& executor)
    : world_{world}, device_{device}, network_{network}, options_{options}, executor_{executor} {
  // Limits use the same plans as layers: the fastest.
  options_.agree = [&world](std::span<double> times) { world.broadcast(std::as_writable_bytes(times)); };
}

void Profiler::step_begun(std::uint64_t n_made) {
  if (n_made != warmup_steps) return;
  executor_.layer_times().start_profile();
  is_running_ = true;
}

void Profiler::step_made(const StepWork& work) {
  if (!is_running_) return;
  ++n_steps_;
  n_samples_ += work.n_samples;
  n_calls_ += work.n_calls;
  step_s_ += work.time.value;
}

void Profiler::steps_over() {
  if (!std::exchange(is_running_, false)) return;
  const std::vector<nn::ProfileRow> rows = executor_.layer_times().end_profile();
  const MachineLimits limits = measure_limits(world_, device_, options_);
  const std::size_t n_nodes = network_.nodes().size();
  std::vector<Measured> mine(n_nodes);
  const double value_bytes = options_.precision == nn::Precision::f32 ? 4 : 2;
  for (const nn::ProfileRow& row : rows) {
    const auto node = std::ranges::find(network_.nodes(), row.node, &nn::Node::name);
    const Arithmetic work = work_of(network_, *node);
    const double flops = 2 * work.multiply_adds * static_cast<double>(n_samples_);
    const double bytes = value_bytes * work.values * static_cast<double>(n_samples_) +
                         sizeof(float) * work.weights * static_cast<double>(n_calls_);
    mine[static_cast<std::size_t>(node - network_.nodes().begin())] = {
        row.forward_s, row.backward_s, 1e-9 * flops / limits.gflops, 1e-9 * bytes / limits.memory_GBps, flops};
  }
  const std::vector<Measured> all = runtime::gather_values(world_, std::span{std::as_const(mine)});
  const std::vector<double> steps_s = runtime::gather_values(world_, std::span{&std::as_const(step_s_), 1});
  const std::vector<MachineLimits> all_limits = runtime::gather_values(world_, std::span{&limits, 1});
  if (all.empty()) return;
  const double per_step = 1e3 / static_cast<double>(world_.n_ranks()) / static_cast<double>(n_steps_);
  ProfileReport report{.limits = {.matrix_side = limits.matrix_side, .stream_bytes = limits.stream_bytes},
                       .n_steps = n_steps_,
                       .step_ms = 0,
                       .layers = {}};
  for (const double seconds : steps_s) report.step_ms += seconds * per_step;
  for (const MachineLimits& of_rank : all_limits) {
    report.limits.gflops += of_rank.gflops / world_.n_ranks();
    report.limits.memory_GBps += of_rank.memory_GBps / world_.n_ranks();
  }
  for (std::size_t node = 1; node < n_nodes; ++node) {  // the first is the input
    Measured sum;
    for (std::size_t at = node; at < all.size(); at += n_nodes) {
      sum.forward_s += all[at].forward_s;
      sum.backward_s += all[at].backward_s;
      sum.compute_s += all[at].compute_s;
      sum.memory_s += all[at].memory_s;
      sum.flops += all[at].flops;
    }
    const double seconds = sum.forward_s + sum.backward_s;
    if (seconds <= 0) continue;
    report.layers.push_back({.layer = network_.nodes()[node].name,
                             .forward_ms = sum.forward_s * per_step,
                             .backward_ms = sum.backward_s * per_step,
                             .gflops = 1e-9 * sum.flops / seconds,
                             .limit_ms = std::max(sum.compute_s, sum.memory_s) * per_step,
                             .is_compute_bound = sum.compute_s > sum.memory_s});
  }
  report_ = std::move(report);
}

void Profiler::ending(FinalRecord& record) {
  record.was_profiled = true;
  record.profile = report_;
}

}  // namespace lockstep::training
