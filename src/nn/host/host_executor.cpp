#include "nn/host/host_executor.hpp"

#include <Kokkos_Core.hpp>
#include <algorithm>

#include "core/error.hpp"
#include "nn/host/executor_state.hpp"
#include "nn/host/layers/batch_statistics.hpp"

namespace lockstep::nn::host {
namespace {

std::uint64_t multiply_adds(const Network& network, const Node& node) {
  const bool is_product = std::holds_alternative<Conv>(node.layer) || std::holds_alternative<Linear>(node.layer);
  if (!is_product) return 0;
  const Shape& weights = network.parameters()[static_cast<std::size_t>(node.parameters[0])].shape;
  return n_elements(weights) * n_elements(node.output) / weights[0];
}

}  // namespace

HostExecutor::HostExecutor(const Network& network, const ExecutorOptions& options) {
  core::require(Kokkos::is_initialized(), "a Kokkos session is there");
  core::require(options.max_batch > 0, "a batch may have samples");
  state_ = std::make_unique<ExecutorState>(network, options);
  state_->plan(options.max_batch, true);
  state_->parameters.place(state_->network);
}

HostExecutor::~HostExecutor() = default;

std::span<const ArenaSlot> HostExecutor::slots() const noexcept { return state_->parameters.slots(); }

std::size_t HostExecutor::arena_elements() const noexcept { return state_->parameters.n_elements(); }

void HostExecutor::pack(int parameter, std::span<const float> logical, std::span<float> slot) const {
  state_->parameters.pack(parameter, logical, slot);
}

void HostExecutor::unpack(int parameter, std::span<const float> slot, std::span<float> logical) const {
  state_->parameters.unpack(parameter, slot, logical);
}

void HostExecutor::bind(std::span<const float> parameters, std::span<float> gradients) {
  core::require(parameters.size() == arena_elements() && gradients.size() == arena_elements(),
                "arenas have arena_elements()");
  std::fill(gradients.begin(), gradients.end(), 0.0f);  // padding that no layer writes
  Bases& bases = state_->bases;
  bases.parameters = reinterpret_cast<std::byte*>(const_cast<float*>(parameters.data()));
  bases.gradients = reinterpret_cast<std::byte*>(gradients.data());
  if (bases.arena != nullptr)
    for (const auto& [key, program] : state_->programs) program->rebase(bases);
}

std::span<float> HostExecutor::statistic(int statistic) {
  const auto i = static_cast<std::size_t>(statistic);
  return std::span{state_->statistics.at(i)}.first(state_->network.statistics()[i].n_channels);
}

void HostExecutor::begin_step(std::uint64_t n_samples) {
  state_->step_samples = n_samples;
  state_->begins_step = true;
}

LossSums HostExecutor::forward(const data::Batch& batch, bool is_training, std::uint64_t epoch) {
  state_->check(batch);
  LastCall& last = state_->last;
  last = {batch, epoch, is_training};
  Call call{last.batch, epoch};
  if (is_training) state_->place_in_step(call);
  if (batch.n == 0) {
    if (is_training && state_->options.sum_group)
      join_forward(state_->network, state_->options.sum_group, call, state_->statistics);
    return {};
  }
  Program& program = state_->ready(batch.n, is_training);
  call.run.stream = state_->stream;
  ForwardObserver observer{state_->options, state_->profile.get()};
  const LossSums sums = program.forward(call, observer);
  last.program = &program;
  last.n_reorders = call.run.n_reorders;
  return sums;
}

void HostExecutor::backward(float scale, bool accumulate, const std::function<void(std::size_t slot)>& on_ready) {
  LastCall& last = state_->last;
  core::require(last.is_training, "backward() follows forward() in training");
  last.was_backward = true;
  last.scale = scale;
  const std::span<float> gradients = state_->gradients();
  if (last.batch.n == 0) {
    if (state_->options.sum_group) join_backward(state_->network, state_->options.sum_group);
    if (!accumulate) std::fill(gradients.begin(), gradients.end(), 0.0f);
    for (std::size_t slot = 0; slot < slots().size() && on_ready; ++slot) on_ready(slot);
    return;
  }
  core::require(last.program != nullptr, "backward() follows a forward() that succeeded");
  Call call{last.batch, last.epoch};
  call.run.stream = state_->stream;
  BackwardObserver observer{
      state_->network,       state_->options, slots(), gradients, accumulate ? &state_->accumulation : nullptr,
      state_->profile.get(), on_ready};
  last.program->backward(call, scale, observer);
  last.n_reorders += call.run.n_reorders;
}

/// Computes the last call once more: what it computed may be overwritten by now.
std::string HostExecutor::find_not_finite() const {
  const LastCall& last = state_->last;
  if (last.program == nullptr) return {};
  Call call{last.batch, last.epoch};
  call.is_repeated = true;
  call.run.stream = state_->stream;
  FinitenessObserver observer{last.program->storage()};
  static_cast<void>(last.program->forward(call, observer));
  if (last.was_backward && !observer.found()) last.program->backward(call, last.scale, observer);
  return observer.found() ? state_->network.nodes()[*observer.found()].name : std::string{};
}

std::vector<std::string> HostExecutor::slow_layers() const {
  return {state_->slow_layers.begin(), state_->slow_layers.end()};
}

bool HostExecutor::computes_in_floats() const { return state_->computes_in_floats; }

std::size_t HostExecutor::n_bytes() const noexcept {
  std::size_t n = std::max(state_->planned_bytes, state_->arena.n_bytes());
  for (const std::vector<float>& statistic : state_->statistics) n += statistic.size() * sizeof(float);
  return n;
}

std::size_t HostExecutor::n_reorders() const noexcept { return state_->last.n_reorders; }

void HostExecutor::enable_profile() { state_->profile = std::make_unique<Profile>(state_->network.nodes().size()); }

std::vector<ProfileRow> HostExecutor::profile() const {
  std::vector<ProfileRow> rows;
  if (!state_->profile) return rows;
  const auto& nodes = state_->network.nodes();
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const double forward_s = state_->profile->forward_s[i], backward_s = state_->profile->backward_s[i];
    if (forward_s + backward_s > 0)
      rows.push_back({nodes[i].name, forward_s, backward_s, multiply_adds(state_->network, nodes[i])});
  }
  return rows;
}

}  // namespace lockstep::nn::host

namespace lockstep::nn {

std::unique_ptr<Executor> make_host_executor(const Network& network, const ExecutorOptions& options) {
  return std::make_unique<host::HostExecutor>(network, options);
}

}  // namespace lockstep::nn
