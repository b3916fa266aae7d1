#include "training/run/profile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/table.hpp"
#include "metrics/fingerprint.hpp"
#include "nn/host/host_executor.hpp"

namespace lockstep::training {
namespace {

constexpr std::uint64_t matrix_side = 1024;
constexpr std::uint64_t stream_bytes = std::uint64_t{64} << 20;
constexpr int n_trials = 5;

/// The least time of `node` in a forward pass over `n` samples of zeros.
double best_forward_s(const nn::Network& network, nn::ExecutorOptions options, std::uint64_t n,
                      const std::string& node) {
  options.max_batch = n;
  options.loss = nn::Loss::mse;
  nn::host::HostExecutor executor{network, options};
  const std::vector<float> parameters(executor.arena_elements(), 0.01f);
  std::vector<float> gradients(executor.arena_elements());
  executor.bind(parameters, gradients);
  const std::vector<float> x(n * network.nodes().front().output[0], 1.0f), y(n * network.output()[0]);
  const nn::BatchView batch{.x = std::as_bytes(std::span{x}), .y = std::as_bytes(std::span{y}), .ids = {}, .n = n};
  double best_s = std::numeric_limits<double>::infinity();
  for (int trial = 0; trial <= n_trials; ++trial) {
    executor.enable_profile();
    static_cast<void>(executor.forward(batch, false, 0));
    for (const nn::host::ProfileRow& row : executor.profile())
      if (row.node == node && trial > 0) best_s = std::min(best_s, row.forward_s);
  }
  return best_s;
}

/// What a layer has to do at least, for one sample and for one call.
struct Work {
  double multiply_adds = 0;  ///< forward and backward
  double values = 0;         ///< activations and their gradients read or written
  double weights = 0;        ///< parameters and their gradients read or written
};

/// Forward reads inputs and writes the output; backward reads the output's gradient and the inputs, and writes the
/// inputs' gradients where something before them learns. Both read the weights; backward writes their gradients.
Work work_of(const nn::Network& network, const nn::Node& node, std::uint64_t n_multiply_adds) {
  Work work;
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
  work.multiply_adds = (is_first ? 2 : 3) * static_cast<double>(n_multiply_adds);
  return work;
}

/// What each rank sends to rank 0 of every node of the network.
struct Measured {
  double forward_s = 0;
  double backward_s = 0;
  double compute_s = 0;  ///< at the limit of oneDNN
  double memory_s = 0;   ///< at the limit of memory
  double flops = 0;
};

double layers_ms(const ProfileReport& report) {
  double sum = 0;
  for (const LayerProfile& layer : report.layers) sum += layer.forward_ms + layer.backward_ms;
  return sum;
}

double percent_of(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

}  // namespace

MachineLimits measure_limits(nn::ExecutorOptions options) {
  nn::Network product;
  product.linear("product", product.input({matrix_side}), {.n_out = matrix_side, .has_bias = false});
  const double product_s = best_forward_s(product, options, matrix_side, "product");
  options.precision = nn::Precision::f32;
  nn::Network stream;
  const std::uint64_t n = stream_bytes / sizeof(float) / matrix_side;
  stream.linear("sum", stream.relu(stream.input({matrix_side}), "relu"), {.n_out = 1});
  const double stream_s = best_forward_s(stream, options, n, "relu");
  return {.gflops = 2e-9 * static_cast<double>(matrix_side * matrix_side * matrix_side) / product_s,
          .memory_GBps = 2e-9 * static_cast<double>(stream_bytes) / stream_s};
}

Profiler::Profiler(const nn::Network& network, const nn::ExecutorOptions& options, nn::Executor& executor)
    : network_{network}, options_{options}, executor_{executor} {}

void Profiler::start() {
  auto* const host = dynamic_cast<nn::host::HostExecutor*>(&executor_);
  if (host == nullptr) return;
  host->enable_profile();
  is_running_ = true;
}

void Profiler::add(std::uint64_t n_samples, std::uint64_t n_calls) noexcept {
  ++n_steps_;
  n_samples_ += n_samples;
  n_calls_ += n_calls;
}

void Profiler::stop(const runtime::Communicator& world, double step_s) {
  is_running_ = false;
  const auto* const host = dynamic_cast<const nn::host::HostExecutor*>(&executor_);
  const std::vector<nn::host::ProfileRow> rows = host->profile();
  world.barrier();  // limits are those of all ranks at work
  const MachineLimits limits = measure_limits(options_);
  const std::size_t n_nodes = network_.nodes().size();
  std::vector<Measured> mine(n_nodes);
  const double value_bytes = options_.precision == nn::Precision::bf16 ? 2 : 4;
  for (const nn::host::ProfileRow& row : rows) {
    const auto node = std::ranges::find(network_.nodes(), row.node, &nn::Node::name);
    const Work work = work_of(network_, *node, row.n_multiply_adds);
    const double flops = 2 * work.multiply_adds * static_cast<double>(n_samples_);
    const double bytes = value_bytes * work.values * static_cast<double>(n_samples_) +
                         sizeof(float) * work.weights * static_cast<double>(n_calls_);
    mine[static_cast<std::size_t>(node - network_.nodes().begin())] = {
        row.forward_s, row.backward_s, 1e-9 * flops / limits.gflops, 1e-9 * bytes / limits.memory_GBps, flops};
  }
  const std::vector<Measured> all = runtime::gather_values(world, std::span{std::as_const(mine)});
  const std::vector<double> steps_s = runtime::gather_values(world, std::span{&std::as_const(step_s), 1});
  const std::vector<MachineLimits> all_limits = runtime::gather_values(world, std::span{&limits, 1});
  if (all.empty()) return;
  const double per_step = 1e3 / static_cast<double>(world.n_ranks()) / static_cast<double>(n_steps_);
  ProfileReport report{.limits = {}, .n_steps = n_steps_, .step_ms = 0, .layers = {}};
  for (const double seconds : steps_s) report.step_ms += seconds * per_step;
  for (const MachineLimits& of_rank : all_limits) {
    report.limits.gflops += of_rank.gflops / world.n_ranks();
    report.limits.memory_GBps += of_rank.memory_GBps / world.n_ranks();
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

std::string profile_text(const ProfileReport& report) {
  std::size_t width = 12;
  for (const LayerProfile& layer : report.layers) width = std::max(width, layer.layer.size());
  const core::Table table{{{.header = "layer", .unit = "", .width = width, .align = core::Align::left},
                           {.header = "forward", .unit = "(ms)", .width = 9},
                           {.header = "backward", .unit = "(ms)", .width = 9},
                           {.header = "share", .unit = "(%)", .width = 6},
                           {.header = "speed", .unit = "(GFLOP/s)", .width = 9},
                           {.header = "limit", .unit = "", .width = 6, .align = core::Align::left},
                           {.header = "reached", .unit = "(%)", .width = 7}}};
  std::string text = table.header();
  double forward_ms = 0, backward_ms = 0, limit_ms = 0;
  const auto row = [&](const std::string& name, double forward, double backward, const std::string& gflops,
                       const std::string& limit, double at_limit_ms) {
    text += table.row({name, fmt::format("{:.3f}", forward), fmt::format("{:.3f}", backward),
                       fmt::format("{:.1f}", percent_of(forward + backward, report.step_ms)), gflops, limit,
                       at_limit_ms > 0 ? fmt::format("{:.0f}", percent_of(at_limit_ms, forward + backward)) : "-"});
  };
  for (const LayerProfile& layer : report.layers) {
    // What only gives memory another name takes no time and has no limit.
    const bool moves_data = layer.forward_ms + layer.backward_ms > 0.01 * layer.limit_ms;
    const double layer_limit_ms = moves_data ? layer.limit_ms : 0;
    row(layer.layer, layer.forward_ms, layer.backward_ms, layer.gflops > 0 ? fmt::format("{:.1f}", layer.gflops) : "-",
        layer.is_compute_bound ? "oneDNN" : "memory", layer_limit_ms);
    forward_ms += layer.forward_ms;
    backward_ms += layer.backward_ms;
    limit_ms += layer_limit_ms;
  }
  row("all layers", forward_ms, backward_ms, "-", "both", limit_ms);
  return text + fmt::format(
                    "step        {:.3f} ms, mean of {} steps and all ranks; {:.3f} ms outside of the layers\n"
                    "limits      oneDNN {:.1f} GFLOP/s, a product of matrices of {}x{}; memory {:.1f} GB/s, a ReLU of "
                    "{} MiB;\n"
                    "            of a rank, measured in this run on all ranks at once. What stays in caches may exceed "
                    "the latter.\n",
                    report.step_ms, report.n_steps, report.step_ms - layers_ms(report), report.limits.gflops,
                    matrix_side, matrix_side, report.limits.memory_GBps, stream_bytes >> 20);
}

std::string to_line(const ProfileReport& report) {
  nlohmann::ordered_json layers = nlohmann::ordered_json::array();
  for (const LayerProfile& layer : report.layers)
    layers.push_back({{"layer", layer.layer},
                      {"forward_ms", layer.forward_ms},
                      {"backward_ms", layer.backward_ms},
                      {"speed_gflops", layer.gflops},
                      {"limit", layer.is_compute_bound ? "onednn" : "memory"},
                      {"limit_ms", layer.limit_ms}});
  const nlohmann::ordered_json line{{"kind", "profile"},
                                    {"steps", report.n_steps},
                                    {"step_ms_mean", report.step_ms},
                                    {"limit_onednn_gflops", report.limits.gflops},
                                    {"limit_memory_GBps", report.limits.memory_GBps},
                                    {"layers", layers}};
  return metrics::dump(line, -1);
}

}  // namespace lockstep::training
