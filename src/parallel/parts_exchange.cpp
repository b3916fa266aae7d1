#include "parallel/parts_exchange.hpp"

#include <algorithm>
#include <cstring>

#include "core/error.hpp"

namespace lockstep::parallel {
namespace {

constexpr std::size_t n_words_before_values = 2;

}  // namespace

PartsExchange::PartsExchange(comm::Transport& transport)
    : transport_{transport},
      rank_{transport.rank()},
      n_ranks_{transport.n_ranks()},
      channel_{transport.open_channel(2 * n_ranks_)},
      add_{comm::loops().find_combine(core::DType::float32, comm::ReduceOp::sum)},
      begins_(static_cast<std::size_t>(n_ranks_) + 1) {}

void PartsExchange::reserve(std::size_t n_words) {
  if (n_words <= n_reserved_) return;
  words_ = std::make_unique_for_overwrite<Word[]>(n_words);  // pages that no exchange uses are never touched
  n_reserved_ = n_words;
}

std::size_t PartsExchange::count_words(std::span<const core::Slice> parts) noexcept {
  std::size_t n = 0;
  for (const core::Slice& part : parts) n += n_words_before_values + part.count;
  return n;
}

void PartsExchange::start(std::span<float> vector, std::span<const core::Slice> parts,
                          std::span<const std::uint64_t> n_words) {
  for (std::size_t r = 0; r < n_words.size(); ++r) begins_[r + 1] = begins_[r] + n_words[r];
  core::require(begins_.back() <= n_reserved_, "the messages fit into the reserved room");
  vector_ = vector;
  write(parts);
  post();
}

bool PartsExchange::test() {
  for (; next_slot_ < 2 * n_ranks_; ++next_slot_)
    if (!channel_->test(next_slot_)) return false;
  add_all();
  return true;
}

void PartsExchange::wait() {
  for (; next_slot_ < 2 * n_ranks_; ++next_slot_) channel_->wait(next_slot_);
  add_all();
}

std::span<PartsExchange::Word> PartsExchange::message(int rank) const noexcept {
  const auto r = static_cast<std::size_t>(rank);
  return {words_.get() + begins_[r], begins_[r + 1] - begins_[r]};
}

void PartsExchange::write(std::span<const core::Slice> parts) const {
  Word* at = message(rank_).data();
  for (const core::Slice& part : parts) {
    *at++ = static_cast<Word>(part.offset);
    *at++ = static_cast<Word>(part.count);
    std::memcpy(at, vector_.data() + part.offset, part.count * sizeof(float));
    at += part.count;
  }
}

/// Sends to the next rank first, so that not all ranks send to the same one. Does not send empty messages.
void PartsExchange::post() {
  next_slot_ = 0;
  for (int distance = 1; distance < n_ranks_; ++distance) {
    const int from = (rank_ + n_ranks_ - distance) % n_ranks_;
    if (!message(from).empty()) channel_->recv(from, from, bytes_of(from));
  }
  for (int distance = 1; distance < n_ranks_ && !message(rank_).empty(); ++distance) {
    const int to = (rank_ + distance) % n_ranks_;
    transport_.count({1, bytes_of(rank_).size()});
    channel_->send(n_ranks_ + to, to, bytes_of(rank_));
  }
}

/// Starts from +0, the value of the element on ranks that did not send it.
void PartsExchange::add_all() const {
  for_parts_of(rank_, [&](std::span<float> part, const Word*) { std::fill(part.begin(), part.end(), 0.0F); });
  for (int rank = 0; rank < n_ranks_; ++rank) {
    for_parts_of(rank, [&](std::span<float> part, const Word* values) {
      auto* const sum = reinterpret_cast<std::byte*>(part.data());
      add_(sum, sum, reinterpret_cast<const std::byte*>(values), part.size());
    });
  }
}

template <class Visit>
void PartsExchange::for_parts_of(int rank, Visit visit) const {
  const std::span<const Word> words = message(rank);
  for (std::size_t at = 0; at < words.size();) {
    const std::span<float> part = vector_.subspan(words[at], words[at + 1]);
    visit(part, words.data() + at + n_words_before_values);
    at += n_words_before_values + part.size();
  }
}

}  // namespace lockstep::parallel
