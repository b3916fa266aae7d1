#include "nn/host/host_executor.hpp"

#include <Kokkos_Core.hpp>
#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "nn/ops/batch_norm/host_statistics.hpp"
#include "nn/plan/empty_pass.hpp"

namespace lockstep::nn::host {

void ActivationArena::grow(std::size_t n_bytes) {
  data_.reset();
  data_.reset(static_cast<std::byte*>(::operator new[](n_bytes, alignment)));
  n_bytes_ = n_bytes;
}

HostExecutor::HostExecutor(const Network& network, const ExecutorOptions& options)
    : PlannedExecutor{network, options},
      computes_in_floats_{options.precision == Precision::bf16 && !computes_bf16(engine_)} {
  core::require(Kokkos::is_initialized(), "a Kokkos session is open");
  // oneDNN's vectors may read beyond the end of an array of channels.
  for (const Statistic& statistic : network_.statistics())
    statistics_.emplace_back((statistic.n_channels + 15) / 16 * 16, statistic.initial);
  plan(options.max_batch, true);
  parameters_.place(network_, plan_, options_.place);
}

std::span<float> HostExecutor::statistic(int statistic) {
  const auto i = static_cast<std::size_t>(statistic);
  return std::span{statistics_.at(i)}.first(network_.statistics()[i].n_channels);
}

Program& HostExecutor::plan(std::uint64_t n, bool is_training) {
  const Common common{network_, options_,    plan_,    engine_,      parameters_,
                      places(), statistics_, choices_, slow_layers_, computes_in_floats_};
  auto program = std::make_unique<Program>(common, n, is_training);
  planned_bytes_ = std::max(planned_bytes_, program->n_bytes());
  return *(programs_[{n, is_training}] = std::move(program));
}

Program& HostExecutor::ready(std::uint64_t n, bool is_training) {
  const auto found = programs_.find({n, is_training});
  const bool is_new = found == programs_.end();
  Program& program = is_new ? plan(n, is_training) : *found->second;
  if (arena_.n_bytes() < planned_bytes_) {
    arena_.grow(planned_bytes_);
    for (const auto& [key, other] : programs_) other->rebase(arena_.data());
  } else if (is_new) {
    program.rebase(arena_.data());
  }
  return program;
}

void HostExecutor::enqueue(const data::Batch& batch, Pass pass, const core::StepNumbers& numbers, Hooks& hooks,
                           runtime::Stream& stream) {
  const bool is_forward = pass == Pass::evaluation || pass == Pass::forward;
  if (is_forward) {
    check(batch, batch.x.size() == batch.n * x_bytes_);
    last_ = {.batch = batch};
  }
  core::require(is_forward || last_.pass != Pass::evaluation, "a backward pass follows a forward pass in training");
  last_.pass = pass;
  last_.numbers = numbers;
  PassContext context{.batch = last_.batch, .numbers = last_.numbers, .hooks = &hooks, .stream = &stream};
  context.run.stream = stream_;
  PassReporter reporter{
      options_, parameters_.slots(), places(), pass == Pass::backward_adding ? &accumulation_ : nullptr, times_, stream,
      hooks};
  if (is_forward)
    forward(context, pass == Pass::forward, reporter);
  else
    backward(context, pass == Pass::backward_adding, reporter);
  last_.n_reorders += context.run.n_reorders;
}

void HostExecutor::forward(PassContext& pass, bool is_training, PassReporter& reporter) {
  if (pass.batch.n == 0) {
    const bool joins = is_training && options_.is_group_of_ranks;
    return forward_without_samples(plan_, parameters_.slots(), *pass.hooks, *pass.stream, [&](std::size_t node) {
      if (joins) join_forward(network_.nodes()[node], pass, statistics_);
    });
  }
  Program& program = ready(pass.batch.n, is_training);
  times_.begin(*pass.stream);
  const LossSums sums = program.forward(pass, reporter);
  last_.program = &program;
  last_.is_finite = std::isfinite(sums.loss);
  sums_ += sums;
}

void HostExecutor::backward(PassContext& pass, bool is_adding, PassReporter& reporter) {
  if (pass.batch.n == 0) {
    return backward_without_samples(plan_, parameters_.slots(), *pass.hooks, *pass.stream,
                                    [&](const BackwardStep& step) {
                                      if (!is_adding) zero_completed(step, *pass.stream);
                                      if (options_.is_group_of_ranks) join_backward(network_.nodes()[step.node], pass);
                                    });
  }
  core::require(last_.program != nullptr, "a backward pass follows a forward pass that succeeded");
  times_.begin(*pass.stream);
  last_.program->backward(pass, reporter);
}

/// Computes the last pass again, because its values may already be overwritten.
std::string HostExecutor::find_not_finite() const {
  if (last_.program == nullptr || has_shared_places()) return {};
  core::StepNumbers numbers = last_.numbers;
  numbers.share_of_step = 0;
  PassContext pass{.batch = last_.batch, .numbers = numbers};
  pass.run.stream = stream_;
  FinitenessObserver observer{last_.program->storage()};
  static_cast<void>(last_.program->forward(pass, observer));
  const bool was_backward = last_.pass == Pass::backward || last_.pass == Pass::backward_adding;
  if (was_backward && !observer.found()) last_.program->backward(pass, observer);
  return observer.found() ? network_.nodes()[*observer.found()].name : std::string{};
}

std::size_t HostExecutor::n_bytes() const noexcept {
  std::size_t n = std::max(planned_bytes_, arena_.n_bytes());
  for (const std::vector<float>& statistic : statistics_) n += statistic.size() * sizeof(float);
  return n;
}

}  // namespace lockstep::nn::host
