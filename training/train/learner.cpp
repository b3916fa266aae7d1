#include "training/train/learner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "io/digest.hpp"
#include "nn/initialize.hpp"
#include "runtime/together.hpp"
#include "training/recipe/specs.hpp"
#include "training/train/model.hpp"

namespace lockstep::training {
namespace {

/// A step touches no more rows than it has samples. If that is a small part of the table, only those rows are zeroed,
/// summed and read; else going through the whole table is faster.
constexpr std::uint64_t least_rows_per_sample = 4;

/// The embedding of a parameter where rows pay; a tree over ranks sums everything.
const nn::Embedding* find_sparse(const nn::Network& network, int parameter, const Recipe& recipe) {
  if (recipe.deterministic) return nullptr;
  for (const nn::Node& node : network.nodes()) {
    const auto* const embedding = std::get_if<nn::Embedding>(&node.layer);
    if (embedding == nullptr || node.parameters[0] != parameter) continue;
    return recipe.batch * least_rows_per_sample <= embedding->n_rows ? embedding : nullptr;
  }
  return nullptr;
}

/// lars and lamb adapt to each tensor but biases and normalization, as their papers do (You et al. 2017, 2019); the other
/// optimizers treat all alike, as PyTorch does.
bool decays(const nn::Parameter& parameter, const Recipe& recipe) {
  return parameter.shape.size() > 1 || (recipe.optimizer != "lars" && recipe.optimizer != "lamb");
}

std::vector<parallel::Slot> slots_of(const nn::Network& network, const nn::Executor& executor, const Recipe& recipe) {
  std::vector<parallel::Slot> slots;
  for (const nn::ArenaSlot& slot : executor.slots()) {
    const nn::Embedding* const sparse = find_sparse(network, slot.parameter, recipe);
    slots.push_back({.name = network.parameters()[static_cast<std::size_t>(slot.parameter)].name,
                     .slice = slot.slice,
                     .decays = decays(network.parameters()[static_cast<std::size_t>(slot.parameter)], recipe),
                     .row_elements = sparse != nullptr ? sparse->width : 0});
  }
  return slots;
}

nn::LossSums& operator+=(nn::LossSums& sums, const nn::LossSums& more) {
  sums.loss += more.loss;
  sums.n += more.n;
  sums.n_top1 += more.n_top1;
  sums.n_top5 += more.n_top5;
  return sums;
}

}  // namespace

Learner::Learner(const runtime::Communicator& world, comm::Transport& transport, const Recipe& recipe,
                 nn::Network network, std::uint64_t most, metrics::PhaseTimers& timers,
                 std::function<void()> on_progress)
    : world_{world},
      recipe_{recipe},
      timers_{timers},
      network_{std::move(network)},
      tensors_{tensors_of(network_)},
      at_a_time_{samples_at_a_time(recipe, most, world.n_ranks())} {
  nn::ExecutorOptions options = executor_options(recipe, at_a_time_);
  options.on_progress = std::move(on_progress);
  options.agree = [&world](std::span<double> times) { world.broadcast(std::as_writable_bytes(times)); };
  for (std::size_t i = 0; i < network_.parameters().size(); ++i)
    if (find_sparse(network_, static_cast<int>(i), recipe) != nullptr)
      options.row_gradients.push_back(static_cast<int>(i));
  options.touched = [this](std::size_t slot, std::span<const std::uint64_t> rows) { synchronizer_->touch(slot, rows); };
  const int n_together = ranks_of_group(recipe, world.n_ranks());
  if (n_together > 1) {
    group_sum_.emplace(transport, n_together);
    options.sum_group = [this](std::span<double> values) {
      const metrics::PhaseTimers::Scope scope{timers_, metrics::Phase::communication};
      group_sum_->sum(values);
    };
  }
  executor_ = nn::make_host_executor(network_, options);
  synchronizer_ = std::make_unique<parallel::Synchronizer>(
      transport, slots_of(network_, *executor_, recipe),
      parallel::SynchronizerOptions{.optimizer = optimizer_spec(recipe), .is_deterministic = recipe.deterministic});
  if (recipe.deterministic)
    lanes_.emplace(static_cast<int>(recipe.lanes), world.rank(), world.n_ranks(), synchronizer_->gradients());
  executor_->bind(synchronizer_->parameters(), synchronizer_->gradients());
  slot_of_.resize(network_.parameters().size());
  for (const nn::ArenaSlot& slot : executor_->slots()) slot_of_[static_cast<std::size_t>(slot.parameter)] = slot;
}

void Learner::initialize(const std::string& weights_file) {
  if (world_.rank() == 0) {
    std::vector<float> values;
    for (std::size_t i = 0; i < network_.parameters().size(); ++i) {
      values.resize(nn::n_elements(network_.parameters()[i].shape));
      nn::initialize(network_.parameters()[i], recipe_.seed, values);
      take(i, values);
    }
  }
  for (std::size_t i = 0; i < network_.statistics().size(); ++i)
    std::ranges::fill(executor_->statistic(static_cast<int>(i)), network_.statistics()[i].initial);
  const auto take_mine = [this](std::size_t tensor, std::span<const float> values) {
    if (tensor >= network_.parameters().size() || world_.rank() == 0) take(tensor, values);
  };
  if (!weights_file.empty())
    runtime::together(world_, [&] { load_weights(weights_file, recipe_.model, tensors_, take_mine, "--init-from"); });
  for (const nn::Statistic& statistic : network_.statistics()) n_statistics_ += statistic.n_channels;
  statistics_.resize(n_statistics_ * (lanes_ ? static_cast<std::size_t>(lanes_->n_local()) : 1));
  for (std::size_t at = 0; at < statistics_.size(); at += n_statistics_)
    copy_statistics(std::span{statistics_}.subspan(at, n_statistics_));
  synchronizer_->publish_initial();
}

/// Now, as the pass can be repeated: what the update before left, or what the pass itself made of it.
std::string Learner::find_not_finite() const {
  const auto ruined = parallel::find_not_finite(synchronizer_->slots(), synchronizer_->parameters());
  if (ruined) return fmt::format("parameter {}, after the update before", synchronizer_->slots()[*ruined].name);
  const std::string node = executor_->find_not_finite();
  return node.empty() ? "the loss" : node;
}

// The parts of a batch that memory is short for, one after another; gradients are added up.
nn::LossSums Learner::run_parts(const data::Batch& batch, float scale, std::uint64_t epoch, bool is_last) {
  nn::LossSums sums;
  executor_->begin_step(batch.n);
  for (std::uint64_t part = 0; part < recipe_.accumulate; ++part) {
    const std::uint64_t begin = begin_of_part(recipe_, batch.n, part), end = begin_of_part(recipe_, batch.n, part + 1);
    {
      const metrics::PhaseTimers::Scope scope{timers_, metrics::Phase::forward};
      const nn::LossSums of_part = executor_->forward(batch.part(begin, end - begin), true, epoch);
      if (!std::isfinite(of_part.loss) && not_finite_in_.empty()) not_finite_in_ = find_not_finite();
      sums += of_part;
    }
    const metrics::PhaseTimers::Scope scope{timers_, metrics::Phase::backward};
    const bool is_complete = is_last && part + 1 == recipe_.accumulate;
    executor_->backward(scale, part > 0, [&](std::size_t slot) {
      if (is_complete) synchronizer_->ready(slot);
    });
  }
  return sums;
}

nn::LossSums Learner::run_lanes(const data::Batch& batch, std::uint64_t epoch) {
  const auto n_global = static_cast<std::size_t>(batch.n_global);
  const std::size_t mine = parallel::lane_samples(n_global, static_cast<int>(recipe_.lanes), lanes_->first()).offset;
  nn::LossSums sums;
  lane_losses_.clear();
  for (int local = 0; local < lanes_->n_local(); ++local) {
    const core::Slice lane = parallel::lane_samples(n_global, static_cast<int>(recipe_.lanes), lanes_->first() + local);
    executor_->bind(synchronizer_->parameters(), lanes_->gradients(local));
    const auto statistics =
        std::span{statistics_}.subspan(static_cast<std::size_t>(local) * n_statistics_, n_statistics_);
    set_statistics(statistics);
    const nn::LossSums of_lane =
        run_parts(batch.part(lane.offset - mine, lane.count), 1.0f / static_cast<float>(batch.n_global), epoch, false);
    copy_statistics(statistics);
    lanes_->lane_done(local);
    lane_losses_.push_back(of_lane.loss);
    sums += of_lane;
  }
  sums.loss = parallel::sum_lanes(lane_losses_);
  return sums;
}

parallel::StepReport Learner::compute_gradients(const data::Batch& batch, std::uint64_t epoch) {
  const nn::LossSums sums = run_all(batch, epoch);
  parallel::StepReport report{.loss = sums.loss, .n = sums.n, .n_top1 = sums.n_top1, .n_top5 = sums.n_top5};
  if (!std::isfinite(sums.loss)) report.not_finite = static_cast<std::uint32_t>(synchronizer_->slots().size());
  return report;
}

nn::LossSums Learner::run_all(const data::Batch& batch, std::uint64_t epoch) {
  if (lanes_) return run_lanes(batch, epoch);
  // Of a smaller batch some ranks have more samples than others: each moves the running statistics of all, by its part.
  const bool is_uneven = batch.n_global < recipe_.batch;
  if (is_uneven) average_statistics();
  const nn::LossSums sums = run_parts(batch, 1.0f / static_cast<float>(batch.n_global), epoch, true);
  if (is_uneven) average_statistics(batch.n);
  return sums;
}

std::optional<std::uint32_t> Learner::update(double lr) {
  const double waited = synchronizer_->waited().value;
  {
    const metrics::PhaseTimers::Scope scope{timers_, metrics::Phase::optimizer};
    synchronizer_->step(lr, 1.0f, recipe_.clip_norm);
  }
  timers_.reassign(metrics::Phase::optimizer, metrics::Phase::communication, {synchronizer_->waited().value - waited});
  return synchronizer_->replica_hash();
}

nn::LossSums Learner::evaluate(const data::Batch& batch) {
  nn::LossSums sums;
  for (std::uint64_t first = 0; first < batch.n; first += at_a_time_)
    sums += executor_->forward(batch.part(first, std::min(at_a_time_, batch.n - first)), false, 0);
  return sums;
}

void Learner::copy_statistics(std::span<float> to) const {
  for (std::size_t i = 0; i < network_.statistics().size(); ++i) {
    const auto values = executor_->statistic(static_cast<int>(i));
    std::ranges::copy(values, to.begin());
    to = to.subspan(values.size());
  }
}

void Learner::set_statistics(std::span<const float> from) {
  for (std::size_t i = 0; i < network_.statistics().size(); ++i) {
    const auto values = executor_->statistic(static_cast<int>(i));
    std::ranges::copy(from.first(values.size()), values.begin());
    from = from.subspan(values.size());
  }
}

void Learner::average_statistics(std::uint64_t weight) {
  if (n_statistics_ == 0) return;
  const metrics::PhaseTimers::Scope scope{timers_, metrics::Phase::communication};
  if (!lanes_) copy_statistics(statistics_);
  const std::vector<float> all = runtime::gather_values(world_, std::span<const float>{statistics_});
  const auto weights = runtime::gather_values(world_, std::span<const std::uint64_t>{&weight, 1});
  const std::size_t n_rows = all.size() / n_statistics_;
  std::vector<float> mean(n_statistics_);
  for (std::size_t i = 0; i < n_statistics_ && n_rows > 0; ++i) {
    double sum = 0, total = 0;
    for (std::size_t row = 0; row < n_rows; ++row) {
      const auto of_row = static_cast<double>(weights[row * weights.size() / n_rows]);
      sum += of_row * static_cast<double>(all[row * n_statistics_ + i]);
      total += of_row;
    }
    mean[i] = static_cast<float>(sum / total);
  }
  world_.broadcast(std::as_writable_bytes(std::span{mean}));
  set_statistics(mean);
  for (std::size_t at = 0; at < statistics_.size(); at += n_statistics_)
    std::ranges::copy(mean, statistics_.begin() + static_cast<std::ptrdiff_t>(at));
}

std::span<float> Learner::slot(std::span<float> arena, int parameter) const {
  return slot_of_[static_cast<std::size_t>(parameter)].slice.of(arena);
}

void Learner::fill(std::size_t tensor, std::span<float> values) const {
  const std::size_t n_parameters = network_.parameters().size();
  if (tensor < n_parameters)
    executor_->unpack(static_cast<int>(tensor), slot(synchronizer_->parameters(), static_cast<int>(tensor)), values);
  else
    std::ranges::copy(executor_->statistic(static_cast<int>(tensor - n_parameters)), values.begin());
}

void Learner::take(std::size_t tensor, std::span<const float> values) {
  const std::size_t n_parameters = network_.parameters().size();
  if (tensor < n_parameters)
    executor_->pack(static_cast<int>(tensor), values, slot(synchronizer_->parameters(), static_cast<int>(tensor)));
  else
    std::ranges::copy(values, executor_->statistic(static_cast<int>(tensor - n_parameters)).begin());
}

void Learner::save(const std::string& path, const WeightsInfo& info, std::string_view flag) const {
  save_weights(
      path, info, tensors_, [this](std::size_t tensor, std::span<float> values) { fill(tensor, values); }, flag);
}

std::string Learner::digest() const {
  io::Digest digest;
  std::vector<float> values;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    values.resize(nn::n_elements(tensors_[i].shape));
    fill(i, values);
    digest.update(std::as_bytes(std::span{values}));
  }
  return digest.hex();
}

}  // namespace lockstep::training
