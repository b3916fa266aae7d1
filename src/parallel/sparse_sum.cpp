#include "parallel/sparse_sum.hpp"

#include <algorithm>
#include <numeric>

namespace lockstep::parallel {
namespace {

/// The greatest total that pays off: an exchange sends every word to all other ranks.
std::size_t most_words_for(std::uint64_t dense_bytes, int n_ranks) {
  return (dense_bytes - 1) / (sizeof(float) * static_cast<std::uint64_t>(n_ranks - 1));
}

}  // namespace

SparseSum::SparseSum(comm::Transport& between, comm::Transport& later, PartsExchange& exchange, const SparseRows& rows,
                     const core::Slice& slice, const comm::Algorithm& dense)
    : rows_{rows},
      slice_{slice},
      exchange_{exchange},
      rank_{static_cast<std::size_t>(between.rank())},
      n_words_(static_cast<std::size_t>(between.n_ranks())) {
  const comm::Call call{.n_elements = slice.count};
  dense_ = comm::make_plan(dense, later, call);
  most_words_ = most_words_for(dense.all_reduce.cost(call, between.nodes()).bytes, between.n_ranks());
  exchange_.reserve(most_words_);
  parts_.reserve(rows.most_parts(slice));
  // All nodes except one add 0 to each count: fewer messages in sequence than a gather around a ring.
  counts_ = comm::make_plan(between, {.dtype = core::DType::uint64, .n_elements = n_words_.size()});
  const auto counts = std::as_writable_bytes(std::span{n_words_});
  counts_->bind(counts, counts);
}

void SparseSum::bind(std::span<const std::byte> input, std::span<std::byte> output) {
  dense_->bind(input, output);
  sum_ = {reinterpret_cast<float*>(output.data()), slice_.count};
}

void SparseSum::run() {
  begin();
  wait();
}

void SparseSum::begin() {
  find_parts();
  std::fill(n_words_.begin(), n_words_.end(), 0);
  n_words_[rank_] = PartsExchange::count_words(parts_);
  phase_ = State::counting;
  counts_->start({});
}

bool SparseSum::test() {
  if (phase_ == State::counting && counts_->test()) start_sum();
  if ((phase_ == State::exchanging && exchange_.test()) || (phase_ == State::summing_all && dense_->test()))
    phase_ = State::complete;
  return phase_ == State::complete;
}

void SparseSum::wait() {
  if (phase_ == State::counting) {
    counts_->wait();
    start_sum();
  }
  if (phase_ == State::exchanging) exchange_.wait();
  if (phase_ == State::summing_all) dense_->wait();
  phase_ = State::complete;
}

void SparseSum::find_parts() {
  rows_.find_touched(slice_, parts_);
  for (core::Slice& part : parts_) part = part.seen_from(slice_.offset);
}

void SparseSum::start_sum() {
  const std::uint64_t n_words = std::accumulate(n_words_.begin(), n_words_.end(), std::uint64_t{0});
  phase_ = n_words <= most_words_ ? State::exchanging : State::summing_all;
  phase_ == State::exchanging ? exchange_.start(sum_, parts_, n_words_) : dense_->start({});
}

}  // namespace lockstep::parallel
