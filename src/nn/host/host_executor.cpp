#include "nn/host/host_executor.hpp"

#include <Kokkos_Core.hpp>
#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.hpp"
#include "nn/host/executor_state.hpp"
#include "nn/ops/batch_norm/host_statistics.hpp"
#include "nn/plan/empty_pass.hpp"

namespace lockstep::nn::host {

HostExecutor::HostExecutor(const Network& network, const ExecutorOptions& options) {
  core::require(Kokkos::is_initialized(), "a Kokkos session is open");
  core::require(options.max_batch > 0, "max_batch is positive");
  state_ = std::make_unique<ExecutorState>(network, options);
  state_->plan(options.max_batch, true);
  state_->parameters.place(state_->network, state_->pass_plan, options.place);
}

HostExecutor::~HostExecutor() = default;

std::span<const ArenaSlot> HostExecutor::slots() const noexcept { return state_->parameters.slots().all(); }

std::size_t HostExecutor::arena_elements() const noexcept { return state_->parameters.slots().n_elements(); }

void HostExecutor::pack(int parameter, core::Slice rows, std::span<const float> logical,
                        std::span<float> elements) const {
  state_->parameters.pack(parameter, rows, logical, elements);
}

void HostExecutor::unpack(int parameter, core::Slice rows, std::span<const float> elements,
                          std::span<float> logical) const {
  state_->parameters.unpack(parameter, rows, elements, logical);
}

void HostExecutor::bind(runtime::DeviceSpan<const float> parameters, runtime::DeviceSpan<float> gradients,
                        runtime::DeviceSpan<const std::byte> weights) {
  core::require(parameters.size() == arena_elements() && gradients.size() == arena_elements() &&
                    weights.size() == weights_bytes(),
                "arenas have arena_elements() elements");
  Bases& bases = state_->bases;
  core::require(bases.parameters == nullptr, "an executor is bound once");
  std::ranges::fill(runtime::on_host(gradients), 0.0f);  // padding that no layer writes
  bases.parameters = reinterpret_cast<std::byte*>(const_cast<float*>(parameters.data()));
  bases.gradients = reinterpret_cast<std::byte*>(gradients.data());
}

std::span<float> HostExecutor::statistic(int statistic) {
  const auto i = static_cast<std::size_t>(statistic);
  return std::span{state_->statistics.at(i)}.first(state_->network.statistics()[i].n_channels);
}

void HostExecutor::enqueue(const data::Batch& batch, Pass pass, const core::StepNumbers& numbers, Hooks& hooks,
                           runtime::Stream& stream) {
  LastPass& last = state_->last;
  const bool is_forward = pass == Pass::evaluation || pass == Pass::forward;
  if (is_forward) {
    state_->check(batch);
    last = {.batch = batch};
  }
  core::require(is_forward || last.pass != Pass::evaluation, "a backward pass follows a forward pass in training");
  last.pass = pass;
  last.numbers = numbers;
  PassContext context{.batch = last.batch, .numbers = last.numbers, .hooks = &hooks, .stream = &stream};
  context.run.stream = state_->stream;
  if (is_forward)
    forward(context, pass == Pass::forward);
  else
    backward(context, pass == Pass::backward_adding);
  last.n_reorders += context.run.n_reorders;
}

void HostExecutor::forward(PassContext& pass, bool is_training) {
  if (pass.batch.n == 0) {
    const bool joins = is_training && state_->options.is_group_of_ranks;
    return forward_without_samples(state_->pass_plan, state_->parameters.slots(), *pass.hooks, *pass.stream,
                                   [&](std::size_t node) {
                                     if (joins) join_forward(state_->network.nodes()[node], pass, state_->statistics);
                                   });
  }
  Program& program = state_->ready(pass.batch.n, is_training);
  ForwardObserver observer{state_->options, state_->profile.get()};
  const LossSums sums = program.forward(pass, observer);
  state_->last.program = &program;
  state_->last.is_finite = std::isfinite(sums.loss);
  state_->sums += sums;
}

void HostExecutor::backward(PassContext& pass, bool is_adding) {
  const std::span<float> gradients = state_->gradients();
  if (pass.batch.n == 0) {
    if (!is_adding) std::ranges::fill(gradients, 0.0f);
    return backward_without_samples(state_->pass_plan, state_->parameters.slots(), *pass.hooks, *pass.stream,
                                    [&](std::size_t node) {
                                      if (state_->options.is_group_of_ranks)
                                        join_backward(state_->network.nodes()[node], pass);
                                    });
  }
  core::require(state_->last.program != nullptr, "a backward pass follows a forward pass that succeeded");
  Accumulation* const accumulation = is_adding ? &state_->accumulation : nullptr;
  BackwardObserver observer{state_->options, state_->parameters.slots(), gradients,
                            accumulation,    state_->profile.get(),      *pass.hooks};
  state_->last.program->backward(pass, observer);
}

LossSums HostExecutor::sums() { return std::exchange(state_->sums, {}); }

bool HostExecutor::is_finite() const { return state_->last.is_finite; }

/// Computes the last pass again, because its values may already be overwritten.
std::string HostExecutor::find_not_finite() const {
  const LastPass& last = state_->last;
  if (last.program == nullptr) return {};
  core::StepNumbers numbers = last.numbers;
  numbers.share_of_step = 0;
  PassContext pass{.batch = last.batch, .numbers = numbers};
  pass.run.stream = state_->stream;
  FinitenessObserver observer{last.program->storage()};
  static_cast<void>(last.program->forward(pass, observer));
  const bool was_backward = last.pass == Pass::backward || last.pass == Pass::backward_adding;
  if (was_backward && !observer.found()) last.program->backward(pass, observer);
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

void HostExecutor::start_profile() { state_->profile = std::make_unique<Profile>(state_->network.nodes().size()); }

bool HostExecutor::is_profiling() const noexcept { return state_->profile != nullptr; }

std::vector<ProfileRow> HostExecutor::end_profile() {
  std::vector<ProfileRow> rows;
  const std::unique_ptr<Profile> profile = std::move(state_->profile);
  if (!profile) return rows;
  const auto& nodes = state_->network.nodes();
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const double forward_s = profile->forward_s[i], backward_s = profile->backward_s[i];
    if (forward_s + backward_s > 0) rows.push_back({nodes[i].name, forward_s, backward_s});
  }
  return rows;
}

}  // namespace lockstep::nn::host
