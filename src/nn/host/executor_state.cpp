#include "nn/host/executor_state.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace lockstep::nn::host {

void ActivationArena::grow(std::size_t n_bytes) {
  data_.reset();
  data_.reset(static_cast<std::byte*>(::operator new[](n_bytes, alignment)));
  n_bytes_ = n_bytes;
}

ExecutorState::ExecutorState(const Network& given, const ExecutorOptions& given_options)
    : network{given}, options{given_options}, parameters{network} {
  computes_in_floats = options.precision == Precision::bf16 && !computes_bf16(engine);
  // oneDNN's vectors may read beyond the end of an array of channels.
  for (const Statistic& statistic : network.statistics())
    statistics.emplace_back((statistic.n_channels + 15) / 16 * 16, statistic.initial);
}

Program& ExecutorState::plan(std::uint64_t n, bool is_training) {
  const Common common{network, options,     pass_plan,         engine, parameters, statistics,
                      choices, slow_layers, computes_in_floats};
  auto program = std::make_unique<Program>(common, n, is_training);
  planned_bytes = std::max(planned_bytes, program->n_bytes());
  return *(programs[{n, is_training}] = std::move(program));
}

Program& ExecutorState::ready(std::uint64_t n, bool is_training) {
  const auto found = programs.find({n, is_training});
  const bool is_new = found == programs.end();
  Program& program = is_new ? plan(n, is_training) : *found->second;
  if (arena.n_bytes() < planned_bytes) {
    arena.grow(planned_bytes);
    bases.arena = arena.data();
    for (const auto& [key, other] : programs) other->rebase(bases);
  } else if (is_new) {
    program.rebase(bases);
  }
  return program;
}

void ExecutorState::check(const data::Batch& batch) const {
  const Node& input = network.nodes().front();
  const bool has_ids = std::holds_alternative<Ids>(input.layer), is_mse = options.loss == Loss::mse;
  const std::size_t x_bytes = n_elements(input.output) * (has_ids ? sizeof(std::int64_t) : sizeof(float));
  const std::size_t y_bytes =
      is_mse ? n_elements(network.output()) * sizeof(float) : n_sample_rows(network.output()) * sizeof(std::int64_t);
  core::require(bases.parameters != nullptr, "an executor is bound to its arenas");
  core::require(batch.n <= options.max_batch, "a batch has at most max_batch samples");
  core::require(batch.x.size() == batch.n * x_bytes, "the batch's samples have the network's input size");
  core::require(batch.y.size() == batch.n * y_bytes, "every sample of a batch has a label or target");
  core::require(batch.ids.empty() || batch.ids.size() == batch.n, "every sample of a batch has an id");
}

std::span<float> ExecutorState::gradients() const {
  return {reinterpret_cast<float*>(bases.gradients), parameters.slots().n_elements()};
}

}  // namespace lockstep::nn::host
