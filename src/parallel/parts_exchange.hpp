// Sums vectors of which each rank has only some nonzero parts, which it sends to every other rank.
// Invariant: a message is offset, length and values, part by part, in 32-bit words; all ranks add in rank order and so
// get the same bits. One exchange at a time.
// Used by sparse_sum.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "comm/loops.hpp"
#include "comm/transport.hpp"

namespace lockstep::parallel {

class PartsExchange {
 public:
  /// Collective over `transport`, which must outlive it.
  explicit PartsExchange(comm::Transport& transport);

  /// Local: reserves room for exchanges of this many words, for all ranks together.
  void reserve(std::size_t n_words);

  /// Returns the length of a message with `parts`.
  [[nodiscard]] static std::size_t count_words(std::span<const core::Slice> parts) noexcept;

  /// Collective: sends `parts` of `vector`, which is +0 elsewhere. `n_words` is the length of each rank's message.
  void start(std::span<float> vector, std::span<const core::Slice> parts, std::span<const std::uint64_t> n_words);
  /// Local: advances without waiting; returns true, once, when `vector` is the sum.
  [[nodiscard]] bool test();
  /// Local: returns when `vector` is the sum.
  void wait();

 private:
  using Word = std::uint32_t;

  [[nodiscard]] std::span<Word> message(int rank) const noexcept;
  [[nodiscard]] std::span<std::byte> bytes_of(int rank) const noexcept { return std::as_writable_bytes(message(rank)); }
  void write(std::span<const core::Slice> parts) const;
  void post();
  void add_all() const;
  template <class Visit>
  void for_parts_of(int rank, Visit visit) const;

  comm::Transport& transport_;
  int rank_;
  int n_ranks_;
  std::unique_ptr<comm::Channel> channel_;  ///< slot r receives from rank r, slot n_ranks + r sends to it
  comm::Combine add_;
  std::unique_ptr<Word[]> words_{};  ///< the messages of all ranks, one after another
  std::size_t n_reserved_ = 0;
  std::vector<std::size_t> begins_;  ///< of messages, followed by the end
  std::span<float> vector_{};
  int next_slot_ = 0;
};

}  // namespace lockstep::parallel
