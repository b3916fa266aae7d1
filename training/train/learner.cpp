#include "training/train/learner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/flags.hpp"
#include "core/sum_hash.hpp"
#include "nn/graph/initialize.hpp"
#include "runtime/together.hpp"
#include "training/recipe/specs.hpp"
#include "training/train/arena_slots.hpp"
#include "training/train/model.hpp"
#include "training/train/shared_reads.hpp"

namespace lockstep::training {

using parallel::StepBack;

namespace {

std::vector<nn::SlotPlace> places_of(const parallel::Synchronizer& synchronizer) {
  std::vector<nn::SlotPlace> places;
  for (std::size_t slot = 0; slot < synchronizer.sharding().slots().size(); ++slot) {
    const auto& [parameters, gradients, weights] = synchronizer.place(slot);
    places.push_back({parameters, gradients, weights});
  }
  return places;
}

}  // namespace

Learner::Learner(const runtime::Communicator& world, comm::Transport& transport, comm::DeviceGroup* devices,
                 nn::Device& device, const Recipe& recipe, nn::Network network, std::uint64_t most,
                 metrics::PhaseTimers& timers, std::function<void()> on_progress)
    : world_{world},
      recipe_{recipe},
      timers_{timers},
      network_{std::move(network)},
      tensors_{checkpoint::tensors_of(network_)},
      on_progress_{std::move(on_progress)},
      at_a_time_{samples_at_a_time(recipe, most, world.n_ranks())} {
  nn::ExecutorOptions options = executor_options(recipe, at_a_time_, world.n_ranks());
  options.on_progress = on_progress_;
  options.agree = [&world](std::span<double> times) { world.broadcast(std::as_writable_bytes(times)); };
  for (std::size_t i = 0; i < network_.parameters().size(); ++i)
    if (find_sparse(network_, static_cast<int>(i), recipe) != nullptr)
      options.row_gradients.push_back(static_cast<int>(i));
  const int n_together = ranks_of_group(recipe, world.n_ranks());
  options.is_group_of_ranks = n_together > 1;
  if (options.is_group_of_ranks) group_sum_ = parallel::make_group_sum(transport, devices, n_together);
  executor_ = device.make_executor(network_, options);
  of_synchronizer_ = transport.split(0, transport.rank());
  synchronizer_ = parallel::make_synchronizer(recipe.strategy.value(), *of_synchronizer_, devices,
                                              slots_of(network_, *executor_, recipe),
                                              {.optimizer = recipe.optimizer,
                                               .is_deterministic = recipe.deterministic,
                                               .scales_loss = recipe.precision == nn::Precision::f16,
                                               .weights = executor_->weights_type(),
                                               .unit_reads = executor_->unit_reads(),
                                               .prefetch = recipe.prefetch,
                                               .is_one_pass = passes_of_step(recipe, world.n_ranks()) == 1});
  if (recipe.has_lanes())
    lanes_.emplace(static_cast<int>(recipe.lanes), world.rank(), world.n_ranks(),
                   runtime::on_host(synchronizer_->arenas().gradients));
  executor_->bind(places_of(*synchronizer_));
  statistics_.emplace(world, transport, recipe, network_, *executor_, timers);
  enqueued_ = synchronizer_->enqueued();
  if (enqueued_ != nullptr) {
    if (recipe.precision == nn::Precision::f16) executor_->scale_loss(enqueued_->loss_scale());
    const nn::DeviceStatistics statistics = executor_->device_statistics();
    enqueued_->keep_statistics(statistics.values, statistics.kept);
  }
  slot_of_.resize(network_.parameters().size());
  for (std::size_t i = 0; i < executor_->slots().size(); ++i)
    slot_of_[static_cast<std::size_t>(executor_->slots()[i].parameter)] = i;
}

// Values from the seed depend on the place of each element in its parameter, so any owners give the same.
void Learner::initialize(const std::string& weights_from) {
  std::vector<parallel::StoredPiece> own = pieces(parallel::Access::own);
  std::erase_if(own, [](const parallel::StoredPiece& piece) { return piece.state != "parameter"; });
  for (const parallel::StoredPiece& piece : own)
    write_piece(piece, [&](const checkpoint::Box& box, std::span<float> values) {
      const std::size_t n = box.rows.count * box.n_inner;  // consecutive
      for (std::size_t outer = 0; outer < box.n_outer; ++outer)
        nn::initialize_part(parameter_of(piece), recipe_.seed, (outer * box.n_rows + box.rows.offset) * box.n_inner,
                            values.subspan(outer * n, n));
    });
  for (std::size_t i = 0; i < network_.statistics().size(); ++i)
    std::ranges::fill(executor_->statistic(static_cast<int>(i)), network_.statistics()[i].initial);
  const auto take = [&](std::size_t tensor, std::span<const float> all) {
    if (tensor >= network_.parameters().size())
      std::ranges::copy(all, executor_->statistic(static_cast<int>(tensor - network_.parameters().size())).begin());
    for (const parallel::StoredPiece& piece : own)
      if (executor_->slots()[piece.slot].parameter == static_cast<int>(tensor))
        write_piece(piece, [&](const checkpoint::Box& box, std::span<float> values) {
          checkpoint::copy_common(checkpoint::whole(box.tensor, box.shape), all, box, values);
        });
  };
  if (!weights_from.empty())
    checkpoint::load_weights(world_, weights_from, recipe_.model, tensors_, take, "--init-from");
  statistics_->start();
  synchronizer_->start({});
}

void Learner::touched(std::size_t slot, std::span<const std::uint64_t> rows) {
  synchronizer_->direct()->touch(slot, rows);  // other steps sum no rows: find_sparse()
}

void Learner::ready(std::size_t slot) {
  if (completes_gradients_) synchronizer_->ready(slot, stream_);
}

void Learner::need(std::size_t unit, runtime::Stream& stream) {
  using parallel::UnitUse;
  const UnitUse use = !is_backward_ ? UnitUse::forward : completes_gradients_ ? UnitUse::backward : UnitUse::discarded;
  const metrics::PhaseTimers::Scope scope{timers_, metrics::Phase::communication};
  synchronizer_->acquire(unit, use, stream);
}

void Learner::enqueue(const data::Batch& batch, nn::Pass pass, const core::StepNumbers& numbers) {
  is_backward_ = pass == nn::Pass::backward || pass == nn::Pass::backward_adding;
  executor_->enqueue(batch, pass, numbers, *this, stream_);
}

void Learner::sum(runtime::DeviceSpan<double> values, runtime::Stream& stream) {
  const metrics::PhaseTimers::Scope scope{timers_, metrics::Phase::communication};
  group_sum_->sum(values, stream);
}

parallel::StepReport Learner::report_last() {
  if (n_unreported_ == 0) return {};
  n_unreported_ = 0;
  return report(StepBack::last, made_);
}

parallel::StepReport Learner::report_before_last() {
  if (n_unreported_ < 2) return {};
  --n_unreported_;
  return report(StepBack::before_last, made_before_);
}

parallel::StepReport Learner::report(StepBack back, const Made& of) {
  std::optional<metrics::PhaseTimers::Scope> scope;
  if (enqueued_ != nullptr) scope.emplace(timers_, metrics::Phase::device);
  const double norm = synchronizer_->norm(back);  // first, because it detects the end of communication
  const nn::LossSums sums = take_sums();
  const bool is_loss_finite = std::isfinite(sums.loss);
  if (!std::isfinite(norm)) note_not_finite(of, is_loss_finite);
  return {.loss = sums.loss,
          .n = sums.n,
          .n_top1 = sums.n_top1,
          .n_top5 = sums.n_top5,
          .not_finite = !is_loss_finite || not_finite_,
          .found_parameter = not_finite_ && not_finite_->is_parameter,
          .changed = synchronizer_->guard().has_changed()};
}

nn::LossSums Learner::take_sums() {
  if (enqueued_ != nullptr) return executor_->ended_sums();
  return lanes_ ? of_lanes_ : executor_->sums();
}

// If steps are only enqueued, all ranks learn the norm of the sum, and late. One of them reports it, unless a loss is
// reported.
void Learner::note_not_finite(const Made& of, bool is_loss_finite) {
  if (not_finite_) return;
  if (is_loss_finite && recipe_.precision == nn::Precision::f16)
    return;  // the step was skipped to reduce the loss scale
  if (!is_loss_finite)
    not_finite_ = {.step = of.step, .where = "the loss", .samples = of.ids};
  else if (enqueued_ == nullptr || world_.rank() == world_.n_ranks() - 1)
    not_finite_ = {.step = of.step, .where = "the norm of the gradient"};
}

// Ranks differ by at most one sample, so all of them know how many the largest has.
void Learner::evaluate(const data::Batch& batch) {
  const std::uint64_t most = div_up(batch.n_global, static_cast<std::uint64_t>(world_.n_ranks()));
  core::require(batch.n <= most, "ranks divide a batch for evaluation evenly");
  for (std::uint64_t first = 0; first < most; first += at_a_time_) {
    const std::uint64_t begin = std::min(first, batch.n), n = std::min(at_a_time_, batch.n - begin);
    enqueue(batch.part(begin, n), nn::Pass::evaluation);
  }
}

void Learner::try_out(const data::Batch& one) {
  completes_gradients_ = false;
  enqueue(one, nn::Pass::evaluation);
  if (recipe_.bn_group == 0)  // one sample is not a group
    for (const nn::Pass pass : {nn::Pass::forward, nn::Pass::backward}) enqueue(one, pass);
  static_cast<void>(executor_->sums());
}

std::size_t Learner::slot_named(const std::string& name) const {
  const auto slots = synchronizer_->sharding().slots();
  const auto found = std::ranges::find(slots, name, &parallel::Slot::name);
  if (found == slots.end()) core::fail_unknown("parameter", name, "--inject", core::names_of(slots));
  return static_cast<std::size_t>(found - slots.begin());
}

void Learner::require_parameter(const std::string& name) {
  const std::size_t slot = slot_named(name);
  if (std::ranges::any_of(pieces(parallel::Access::kept),
                          [slot](const parallel::Piece& piece) { return piece.slot == slot; }))
    return;
  core::fail_usage({.what = fmt::format("rank {} owns no part of parameter '{}'", world_.rank(), name),
                    .where = "--inject",
                    .expected = "a rank that does: ranks of a node divide the parameters among them",
                    .fix = "name another rank"});
}

void Learner::flip_bit(const std::string& name) {
  core::require(synchronizer_->flip_bit(slot_named(name)), "this rank holds a part of the parameter");
}

// Collective: a parameter in the order of the arena, on rank 0; a statistic on each rank.
std::span<const float> Learner::read(std::size_t tensor) const {
  const std::size_t n_parameters = network_.parameters().size();
  return tensor < n_parameters ? synchronizer_->read(slot_of_[tensor])
                               : executor_->statistic(static_cast<int>(tensor - n_parameters));
}

// In PyTorch's order, from what read() has returned.
void Learner::unpack(std::size_t tensor, std::span<const float> elements, std::span<float> values) const {
  if (tensor >= network_.parameters().size()) {
    std::ranges::copy(elements, values.begin());
    return;
  }
  const nn::ArenaSlot& slot = executor_->slots()[slot_of_[tensor]];
  executor_->unpack(slot.parameter, slot.all_rows(), elements, values);
}

// Collective: rank 0 gets a function that fills `values` with the next tensor, in PyTorch's order.
void Learner::read_all(const std::function<void(const checkpoint::FillTensor&)>& use) const {
  std::span<const float> elements;
  const auto read_one = [&](std::size_t tensor) { elements = read(tensor); };
  if (world_.rank() != 0) return read_together(tensors_.size(), read_one);
  read_together(tensors_.size(), read_one, [&](const ReadTensor& next) {
    use([&](std::size_t tensor, std::span<float> values) {
      next(tensor);
      unpack(tensor, elements, values);
    });
  });
}

void Learner::save(const std::string& path, const checkpoint::WeightsInfo& info, std::string_view flag,
                   core::Links links) const {
  read_all(
      [&](const checkpoint::FillTensor& fill) { checkpoint::save_weights(path, info, tensors_, fill, flag, links); });
}

// Each rank hashes what it owns, by the place of each element among those of all tensors, in PyTorch's order.
std::string Learner::digest() const {
  std::vector<std::uint64_t> firsts{0};  // element of each tensor
  for (const checkpoint::TensorSpec& tensor : tensors_) firsts.push_back(firsts.back() + nn::n_elements(tensor.shape));
  std::uint64_t mine = 0;
  runtime::together(world_, [&] {
    std::vector<float> values;
    synchronizer_->visit(parallel::Access::own_parameters, [&](const parallel::StoredPiece& piece) {
      if (rows_of(piece).empty()) return;  // padding
      const checkpoint::Box box = box_of(piece);
      const int parameter = executor_->slots()[piece.slot].parameter;
      values.resize(box.n_elements());
      executor_->unpack(parameter, box.rows, piece.values, values);
      const std::size_t n = box.rows.count * box.n_inner;  // consecutive
      for (std::size_t outer = 0; outer < box.n_outer; ++outer)
        mine += core::sum_hash(
            firsts[static_cast<std::size_t>(parameter)] + (outer * box.n_rows + box.rows.offset) * box.n_inner,
            std::span{values}.subspan(outer * n, n));
    });
  });
  const std::size_t n_parameters = network_.parameters().size();
  for (std::size_t i = 0; world_.rank() == 0 && i < network_.statistics().size(); ++i)
    mine += core::sum_hash(firsts[n_parameters + i], executor_->statistic(static_cast<int>(i)));
  const std::vector<std::uint64_t> all = runtime::gather_values(world_, std::span<const std::uint64_t>{&mine, 1});
  if (all.empty()) return {};
  return fmt::format("{:016x}", std::accumulate(all.begin(), all.end(), std::uint64_t{0}));
}

}  // namespace lockstep::training
