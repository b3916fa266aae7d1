#include "data/write/selection.hpp"

#include <algorithm>
#include <bit>

namespace lockstep::data {
namespace {

constexpr std::uint64_t word_bits = 64;
constexpr std::uint64_t block_words = 8;

std::uint64_t count_bits(std::uint64_t word) noexcept { return static_cast<std::uint64_t>(std::popcount(word)); }

}  // namespace

Selection::Selection(std::uint64_t n, std::vector<std::uint64_t> bits) : n_source_{n}, n_{0}, bits_{std::move(bits)} {
  count();
}

void Selection::remove(const std::vector<std::uint64_t>& samples) {
  if (samples.empty()) return;
  if (bits_.empty()) {
    bits_.assign((n_source_ + word_bits - 1) / word_bits, ~std::uint64_t{0});
    if (n_source_ % word_bits != 0) bits_.back() = (std::uint64_t{1} << (n_source_ % word_bits)) - 1;
  }
  for (const std::uint64_t sample : samples) bits_[sample / word_bits] &= ~(std::uint64_t{1} << (sample % word_bits));
  count();
}

void Selection::count() {
  before_.clear();
  n_ = 0;
  for (std::size_t word = 0; word < bits_.size(); ++word) {
    if (word % block_words == 0) before_.push_back(n_);
    n_ += count_bits(bits_[word]);
  }
}

bool Selection::has(std::uint64_t sample) const noexcept {
  return sample < n_source_ && (bits_.empty() || (bits_[sample / word_bits] >> (sample % word_bits) & 1) != 0);
}

std::uint64_t Selection::position_of(std::uint64_t sample) const noexcept {
  if (bits_.empty()) return sample;
  const std::uint64_t word = sample / word_bits;
  std::uint64_t position = before_[word / block_words];
  for (std::uint64_t w = word / block_words * block_words; w < word; ++w) position += count_bits(bits_[w]);
  return position + count_bits(bits_[word] & ((std::uint64_t{1} << (sample % word_bits)) - 1));
}

std::uint64_t Selection::at(std::uint64_t position) const noexcept {
  if (bits_.empty()) return position;
  const auto block = std::upper_bound(before_.begin(), before_.end(), position) - before_.begin() - 1;
  std::uint64_t left = position - before_[static_cast<std::size_t>(block)];
  std::uint64_t word = static_cast<std::uint64_t>(block) * block_words;
  for (; left >= count_bits(bits_[word]); ++word) left -= count_bits(bits_[word]);
  std::uint64_t rest = bits_[word];
  for (; left > 0; --left) rest &= rest - 1;
  return word * word_bits + static_cast<std::uint64_t>(std::countr_zero(rest));
}

Run Selection::run_at(std::uint64_t position, std::uint64_t most) const noexcept {
  if (bits_.empty()) return {position, std::min(most, n_ - position)};
  Run run{at(position), 0};
  while (run.n < most) {
    const std::uint64_t sample = run.first + run.n;
    if (sample >= n_source_) break;
    const std::uint64_t n_left = word_bits - sample % word_bits;
    const auto n_ones = static_cast<std::uint64_t>(std::countr_one(bits_[sample / word_bits] >> (sample % word_bits)));
    run.n += n_ones;
    if (n_ones < n_left) break;
  }
  run.n = std::min(run.n, most);
  return run;
}

}  // namespace lockstep::data
