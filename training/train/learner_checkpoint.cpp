// What a learner saves in checkpoints and loads from them.
#include <fmt/format.h>

#include <algorithm>

#include "checkpoint/writer.hpp"
#include "core/finite.hpp"
#include "runtime/session.hpp"
#include "runtime/together.hpp"
#include "training/recipe/specs.hpp"
#include "training/train/learner.hpp"
#include "training/train/memory.hpp"

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

checkpoint::Box Learner::box_of(const parallel::StoredPiece& piece) const {
  const nn::ArenaSlot& slot = executor_->slots()[piece.slot];
  const nn::Parameter& parameter = network_.parameters()[static_cast<std::size_t>(slot.parameter)];
  return {.tensor = fmt::format("{}/{}", piece.state, parameter.name),
          .shape = parameter.shape,
          .n_outer = nn::n_elements(parameter.shape) / (slot.n_rows * slot.n_inner),
          .n_rows = slot.n_rows,
          .n_inner = slot.n_inner,
          .rows = rows_of(piece)};
}

// On rank 0: by lane, or by rank if the same number of ranks must get the same bits; otherwise the mean.
std::vector<float> Learner::gather_statistics() {
  if (!recipe_.deterministic) return mean_statistics(1);
  if (!lanes_) copy_statistics(statistics_);
  return runtime::gather_values(world_, std::span<const float>{statistics_});
}

// Collective.
Learner::ToSave Learner::to_save(std::vector<parallel::StoredPiece> kept) {
  ToSave all;
  for (const parallel::StoredPiece& piece : kept) all.boxes.push_back(box_of(piece));
  std::vector<float> statistics = gather_statistics();
  const std::size_t n_rows = n_statistics_ > 0 && world_.rank() == 0 ? statistics.size() / n_statistics_ : 0;
  if (n_rows > 0)
    for (const nn::Statistic& statistic : network_.statistics())
      all.boxes.push_back(checkpoint::whole("statistic/" + statistic.name, {n_rows, statistic.n_channels}));
  std::vector<std::size_t> firsts;  // channel of each statistic in a row of all
  for (std::size_t first = 0; const nn::Statistic& statistic : network_.statistics()) {
    firsts.push_back(first);
    first += statistic.n_channels;
  }
  all.fill = [this, kept = std::move(kept), statistics = std::move(statistics), firsts = std::move(firsts), n_rows](
                 std::size_t i, std::span<float> values) {
    if (i < kept.size()) {
      const parallel::StoredPiece& piece = kept[i];
      executor_->unpack(executor_->slots()[piece.slot].parameter, rows_of(piece), piece.values, values);
      return;
    }
    const std::size_t statistic = i - kept.size(), n_channels = values.size() / n_rows;
    for (std::size_t row = 0; row < n_rows; ++row)
      std::ranges::copy(std::span{statistics}.subspan(row * n_statistics_ + firsts[statistic], n_channels),
                        values.begin() + static_cast<std::ptrdiff_t>(row * n_channels));
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

core::Bytes Learner::checkpoint_bytes() const { return training::checkpoint_bytes(recipe_, network_); }

void Learner::load_checkpoint(const checkpoint::Checkpoint& from, const RunState& at) {
  runtime::together(world_, [&] {
    std::vector<float> values;
    for (const parallel::StoredPiece& piece : pieces(parallel::Access::kept)) {
      const checkpoint::Box box = box_of(piece);
      values.resize(box.n_elements());
      from.read(box, values);
      if (on_progress_) on_progress_();
      executor_->pack(executor_->slots()[piece.slot].parameter, rows_of(piece), values, piece.values);
    }
    load_statistics(from);
  });
  not_finite_.reset();
  synchronizer_->start({.n_steps = at.n_steps, .scale = at.loss_scale});
}

// Each lane or rank gets its own if their number is the same; otherwise all get the mean, as for an evaluation.
void Learner::load_statistics(const checkpoint::Checkpoint& from) {
  const auto n_own = lanes_ ? static_cast<std::size_t>(recipe_.lanes) : static_cast<std::size_t>(world_.n_ranks());
  const auto first_own = static_cast<std::size_t>(lanes_ ? lanes_->first() : world_.rank());
  const std::size_t n_mine = n_statistics_ > 0 ? statistics_.size() / n_statistics_ : 0;
  std::size_t first = 0;
  for (const nn::Statistic& statistic : network_.statistics()) {
    const std::string name = "statistic/" + statistic.name;
    const auto found = from.find(name);
    const std::size_t n_rows = found ? found->n_rows : 1, n_channels = statistic.n_channels;
    std::vector<float> values(n_rows * n_channels);
    from.read(checkpoint::whole(name, {n_rows, n_channels}), values);
    std::vector<double> rows(n_rows);
    for (std::size_t channel = 0; channel < n_channels; ++channel) {
      for (std::size_t row = 0; row < n_rows; ++row) rows[row] = values[row * n_channels + channel];
      const auto mean = static_cast<float>(parallel::sum_lanes(rows) / static_cast<double>(n_rows));
      for (std::size_t mine = 0; mine < n_mine; ++mine) {
        statistics_[mine * n_statistics_ + first + channel] =
            n_rows == n_own ? values[(first_own + mine) * n_channels + channel] : mean;
      }
    }
    first += n_channels;
  }
  use_own_statistics();
}

}  // namespace lockstep::training
