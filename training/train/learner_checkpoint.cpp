// What a learner saves in checkpoints and loads from them.
#include <fmt/format.h>

#include <algorithm>

#include "checkpoint/writer.hpp"
#include "core/finite.hpp"
#include "runtime/session.hpp"
#include "runtime/together.hpp"
#include "training/recipe/specs.hpp"
#include "training/train/learner.hpp"

namespace lockstep::training {

// Padding is not saved.
std::vector<parallel::StoredPiece> Learner::pieces(parallel::Access access) {
  std::vector<parallel::StoredPiece> all;
  synchronizer_->visit(access, [&](const parallel::StoredPiece& piece) {
    if (!rows_of(piece).empty()) all.push_back(piece);
  });
  return all;
}

void Learner::require_finite(std::size_t slot, std::span<const float> values) const {
  if (core::all_finite(values)) return;
  throw core::Error{core::ExitCode::failed,
                    {.what = fmt::format("parameter '{}' is not finite", synchronizer_->sharding().slots()[slot].name),
                     .where = fmt::format("rank {} on {}", world_.rank(), runtime::host_name()),
                     .expected = "finite numbers",
                     .fix = "use a lower --lr, a --warmup or --clip-norm; or check the data"}};
}

void Learner::require_finite() {
  runtime::together(world_, [&] {
    synchronizer_->visit(parallel::Access::own_parameters,
                         [&](const parallel::StoredPiece& piece) { require_finite(piece.slot, piece.values); });
  });
}

core::Slice Learner::rows_of(const parallel::Piece& piece) const {
  return executor_->slots()[piece.slot].rows_in(piece.slice);
}

const nn::Parameter& Learner::parameter_of(const parallel::Piece& piece) const {
  return network_.parameters()[static_cast<std::size_t>(executor_->slots()[piece.slot].parameter)];
}

checkpoint::Box Learner::box_of(const parallel::StoredPiece& piece) const {
  const nn::ArenaSlot& slot = executor_->slots()[piece.slot];
  const nn::Parameter& parameter = parameter_of(piece);
  return {.tensor = fmt::format("{}/{}", piece.state, parameter.name),
          .shape = parameter.shape,
          .n_outer = nn::n_elements(parameter.shape) / (slot.n_rows * slot.n_inner),
          .n_rows = slot.n_rows,
          .n_inner = slot.n_inner,
          .rows = rows_of(piece)};
}

// Local: `fill` gives the values of a piece in PyTorch's order.
void Learner::write_piece(const parallel::StoredPiece& piece, const FillPiece& fill) {
  const checkpoint::Box box = box_of(piece);
  std::vector<float> values(box.n_elements());
  fill(box, values);
  executor_->pack(executor_->slots()[piece.slot].parameter, box.rows, values, piece.values);
}

// Collective.
Learner::ToSave Learner::to_save(std::vector<parallel::StoredPiece> kept) {
  ToSave all;
  for (const parallel::StoredPiece& piece : kept) all.boxes.push_back(box_of(piece));
  std::vector<RunningStatistics::Saved> statistics = statistics_->gather();
  for (const RunningStatistics::Saved& statistic : statistics) all.boxes.push_back(statistic.box);
  all.fill = [this, kept = std::move(kept), statistics = std::move(statistics)](std::size_t i, std::span<float> to) {
    if (i >= kept.size()) {
      std::ranges::copy(statistics[i - kept.size()].values, to.begin());
      return;
    }
    const parallel::StoredPiece& piece = kept[i];
    executor_->unpack(executor_->slots()[piece.slot].parameter, rows_of(piece), piece.values, to);
  };
  return all;
}

void Learner::save_checkpoint(const std::string& path, const std::string& content) {
  const ToSave all = to_save(pieces(parallel::Access::own));
  const auto fill = [&](std::size_t i, std::span<float> values) {
    if (on_progress_) on_progress_();
    all.fill(i, values);
  };
  checkpoint::write_checkpoint(world_, path, content, all.boxes, fill, rank_file_, drill_);
}

// In the order of the arena: the writer puts elements into the order of a tensor, while steps continue.
std::unique_ptr<checkpoint::BackgroundSave> Learner::begin_checkpoint(const std::string& path,
                                                                      const std::string& content) {
  std::vector<parallel::StoredPiece> kept = pieces(parallel::Access::own);
  runtime::together(world_, [&] {
    std::size_t n_elements = 0;
    for (const parallel::StoredPiece& piece : kept) n_elements += piece.values.size();
    if (!copy_) copy_ = std::make_unique_for_overwrite<float[]>(n_elements);
    for (float* to = copy_.get(); parallel::StoredPiece & piece : kept) {
      if (on_progress_) on_progress_();
      std::ranges::copy(piece.values, to);
      piece.values = {to, piece.values.size()};
      if (piece.state == "parameter") require_finite(piece.slot, piece.values);  // while it is in the cache
      to += piece.values.size();
    }
  });
  ToSave all = to_save(std::move(kept));
  return std::make_unique<checkpoint::BackgroundSave>(world_, path, content, all.boxes, std::move(all.fill), rank_file_,
                                                      drill_);
}

std::uint64_t Learner::least_sound_steps() const {
  const std::uint64_t mine = synchronizer_->guard().n_sound_steps();
  const std::vector<std::uint64_t> all = runtime::gather_values(world_, std::span{&mine, 1});
  return runtime::broadcast_value(world_, all.empty() ? 0 : std::ranges::min(all));
}

void Learner::load_checkpoint(const checkpoint::Checkpoint& from, const RunState& at) {
  runtime::together(world_, [&] {
    for (const parallel::StoredPiece& piece : pieces(parallel::Access::kept)) {
      if (on_progress_) on_progress_();
      write_piece(piece, [&](const checkpoint::Box& box, std::span<float> values) { from.read(box, values); });
    }
    statistics_->load(from);
  });
  not_finite_.reset();
  synchronizer_->start({.n_steps = at.n_steps, .scale = at.loss_scale});
}

}  // namespace lockstep::training
