#include "parallel/sparse_rows.hpp"

#include <algorithm>
#include <bit>

#include "core/error.hpp"

namespace lockstep::parallel {
namespace {

/// Adds a part, joined with its neighbour.
void add_part(const core::Slice& part, std::vector<core::Slice>& parts) {
  if (part.empty()) return;
  if (!parts.empty() && parts.back().end() == part.offset)
    parts.back().count += part.count;
  else
    parts.push_back(part);
}

}  // namespace

SparseRows::SparseRows(comm::Transport& node, std::span<const Slot> slots)
    : slots_{slots.begin(), slots.end()}, rank_{node.rank()}, n_ranks_{node.n_ranks()} {
  for (const Slot& slot : slots_) {
    const std::size_t n_rows = slot.row_elements == 0 ? 0 : slot.slice.count / slot.row_elements;
    tables_.push_back({n_rows, n_words_});
    n_words_ += words_of(n_rows);
  }
  segment_ = node.share(n_words_ * sizeof(std::uint64_t));
}

void SparseRows::touch(std::size_t slot, std::span<const std::uint64_t> rows) {
  const auto words = marks(rank_).subspan(tables_[slot].first_word);
  for (const std::uint64_t row : rows) {
    core::require(row < tables_[slot].n_rows, "a touched row belongs to its slot");
    words[row / word_bits] |= std::uint64_t{1} << row % word_bits;
  }
}

void SparseRows::clear(std::span<float> gradients) noexcept {
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const auto words = marks(rank_).subspan(tables_[i].first_word, words_of(tables_[i].n_rows));
    for (std::size_t word = 0; word < words.size(); ++word) {
      for (; words[word] != 0; words[word] &= words[word] - 1) {
        const std::size_t row = word * word_bits + static_cast<std::size_t>(std::countr_zero(words[word]));
        std::ranges::fill(row_of(i, row).of(gradients), 0.0F);
      }
    }
  }
}

void SparseRows::zero(const core::Slice& slice, bool is_all, std::span<float> arena) {
  parts_.clear();
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (tables_[i].n_rows == 0) continue;
    if (is_all)
      add_part(intersection(slots_[i].slice, slice), parts_);
    else
      add_rows(i, slice, parts_);
  }
  for (const core::Slice& part : parts_) std::ranges::fill(part.of(arena), 0.0F);
}

bool SparseRows::has_rows(const core::Slice& slice) const noexcept {
  for (std::size_t i = 0; i < slots_.size(); ++i)
    if (rows_in(i, slice).count > 0) return true;
  return false;
}

void SparseRows::find_touched(const core::Slice& slice, std::vector<core::Slice>& parts) const {
  parts.clear();
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (tables_[i].n_rows > 0)
      add_rows(i, slice, parts);
    else
      add_part(intersection(slots_[i].slice, slice), parts);
  }
}

std::size_t SparseRows::most_parts(const core::Slice& slice) const noexcept {
  std::size_t n = slots_.size();
  for (std::size_t i = 0; i < slots_.size(); ++i) n += rows_in(i, slice).count / 2;  // neighbours share a part
  return n;
}

void SparseRows::add_rows(std::size_t slot, const core::Slice& slice, std::vector<core::Slice>& parts) const {
  const core::Slice rows = rows_in(slot, slice);
  for (std::size_t word = rows.offset / word_bits; word * word_bits < rows.end(); ++word) {
    for (std::uint64_t marked = marks_of_all(tables_[slot].first_word + word); marked != 0; marked &= marked - 1) {
      const std::size_t row = word * word_bits + static_cast<std::size_t>(std::countr_zero(marked));
      add_part(intersection(row_of(slot, row), slice), parts);
    }
  }
}

/// The rows that are in `slice`, even partially.
core::Slice SparseRows::rows_in(std::size_t slot, const core::Slice& slice) const noexcept {
  const auto& [n_rows, first_word] = tables_[slot];
  const core::Slice part = intersection(slots_[slot].slice, slice).seen_from(slots_[slot].slice.offset);
  if (n_rows == 0 || part.empty()) return {};
  const std::size_t width = slots_[slot].row_elements;
  return core::intersection({part.offset / width, (part.end() + width - 1) / width - part.offset / width}, {0, n_rows});
}

core::Slice SparseRows::row_of(std::size_t slot, std::size_t row) const noexcept {
  return {slots_[slot].slice.offset + row * slots_[slot].row_elements, slots_[slot].row_elements};
}

std::span<std::uint64_t> SparseRows::marks(int rank) const noexcept {
  return {reinterpret_cast<std::uint64_t*>(segment_->part(rank).data()), n_words_};
}

std::uint64_t SparseRows::marks_of_all(std::size_t word) const noexcept {
  std::uint64_t all = 0;
  for (int rank = 0; rank < n_ranks_; ++rank) all |= marks(rank)[word];
  return all;
}

}  // namespace lockstep::parallel
