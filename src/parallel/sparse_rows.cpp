#include "parallel/sparse_rows.hpp"

#include <algorithm>
#include <bit>

#include "core/error.hpp"

namespace lockstep::parallel {
namespace {

/// Adds what of [begin, end) lies in `slice`.
void add_part(std::size_t begin, std::size_t end, const comm::Slice& slice, std::vector<comm::Slice>& parts) {
  begin = std::max(begin, slice.offset);
  end = std::min(end, slice.offset + slice.count);
  if (begin >= end) return;
  if (!parts.empty() && parts.back().offset + parts.back().count == begin)
    parts.back().count += end - begin;
  else
    parts.push_back({begin, end - begin});
}

}  // namespace

SparseRows::SparseRows(comm::Transport& node, std::span<const Slot> slots)
    : slots_{slots.begin(), slots.end()}, rank_{node.rank()}, n_ranks_{node.n_ranks()} {
  for (const Slot& slot : slots_) {
    const std::size_t n_rows = slot.row_elements == 0 ? 0 : slot.n_elements / slot.row_elements;
    tables_.push_back({n_rows, n_words_});
    n_words_ += words_of(n_rows);
  }
  segment_ = node.share(n_words_ * sizeof(std::uint64_t));
}

void SparseRows::touch(std::size_t slot, std::span<const std::uint64_t> rows) {
  const auto words = marks(rank_).subspan(tables_[slot].first_word);
  for (const std::uint64_t row : rows) {
    core::require(row < tables_[slot].n_rows, "a touched row is one of its slot");
    words[row / word_bits] |= std::uint64_t{1} << row % word_bits;
  }
}

void SparseRows::clear(std::span<float> gradients) noexcept {
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const auto words = marks(rank_).subspan(tables_[i].first_word, words_of(tables_[i].n_rows));
    for (std::size_t word = 0; word < words.size(); ++word) {
      for (; words[word] != 0; words[word] &= words[word] - 1) {
        const std::size_t row = word * word_bits + static_cast<std::size_t>(std::countr_zero(words[word]));
        std::ranges::fill(gradients.subspan(slots_[i].offset + row * slots_[i].row_elements, slots_[i].row_elements),
                          0.0F);
      }
    }
  }
}

void SparseRows::zero(const comm::Slice& slice, bool is_all, std::span<float> arena) {
  parts_.clear();
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (tables_[i].n_rows == 0) continue;
    if (is_all)
      add_part(slots_[i].offset, slots_[i].offset + slots_[i].n_elements, slice, parts_);
    else
      add_rows(i, slice, parts_);
  }
  for (const comm::Slice& part : parts_) std::ranges::fill(arena.subspan(part.offset, part.count), 0.0F);
}

bool SparseRows::has_rows(const comm::Slice& slice) const noexcept {
  for (std::size_t i = 0; i < slots_.size(); ++i)
    if (rows_in(i, slice).count > 0) return true;
  return false;
}

void SparseRows::find_touched(const comm::Slice& slice, std::vector<comm::Slice>& parts) const {
  parts.clear();
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (tables_[i].n_rows > 0)
      add_rows(i, slice, parts);
    else
      add_part(slots_[i].offset, slots_[i].offset + slots_[i].n_elements, slice, parts);
  }
}

std::size_t SparseRows::most_parts(const comm::Slice& slice) const noexcept {
  std::size_t n = slots_.size();
  for (std::size_t i = 0; i < slots_.size(); ++i) n += rows_in(i, slice).count / 2;  // neighbours are in one
  return n;
}

void SparseRows::add_rows(std::size_t slot, const comm::Slice& slice, std::vector<comm::Slice>& parts) const {
  const Slot& where = slots_[slot];
  const comm::Slice rows = rows_in(slot, slice);
  const std::size_t end_row = rows.offset + rows.count;
  for (std::size_t word = rows.offset / word_bits; word * word_bits < end_row; ++word) {
    for (std::uint64_t marked = marks_of_all(tables_[slot].first_word + word); marked != 0; marked &= marked - 1) {
      const std::size_t row = word * word_bits + static_cast<std::size_t>(std::countr_zero(marked));
      const std::size_t begin = where.offset + row * where.row_elements;
      add_part(begin, begin + where.row_elements, slice, parts);
    }
  }
}

/// Those that lie in `slice`, if only in part.
comm::Slice SparseRows::rows_in(std::size_t slot, const comm::Slice& slice) const noexcept {
  const Slot& where = slots_[slot];
  const std::size_t from = std::max(slice.offset, where.offset) - where.offset;
  const std::size_t to = std::min(slice.offset + slice.count, where.offset + where.n_elements);
  if (tables_[slot].n_rows == 0 || where.offset + from >= to) return {};
  const std::size_t first = from / where.row_elements;
  const std::size_t end =
      std::min(tables_[slot].n_rows, (to - where.offset + where.row_elements - 1) / where.row_elements);
  return {first, end - first};
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
