// The sum between nodes of a slice with rows: of the touched rows, or of all rows if that is fewer bytes.
// Invariant: all nodes first exchange counts, and so make the same choice.
// Used by bucket_sums.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "comm/registry.hpp"
#include "parallel/parts_exchange.hpp"
#include "parallel/sparse_rows.hpp"

namespace lockstep::parallel {

/// In place. Several may be started and share an exchange, but they complete one after another, in the same order on
/// all ranks: call test() and wait() only for the first incomplete one.
class SparseSum final : public comm::Plan {
 public:
  /// Collective over both transports, those of the slice's owners: counts travel over `between` when sums start,
  /// everything else over `later` when they complete. `dense`: the algorithm that sums all rows.
  SparseSum(comm::Transport& between, comm::Transport& later, PartsExchange& exchange, const SparseRows& rows,
            const core::Slice& slice, const comm::Algorithm& dense);

  void bind(std::span<const std::byte> input, std::span<std::byte> output) override;
  void run() override;
  void begin() override;
  [[nodiscard]] bool test() override;
  void wait() override;

 private:
  enum class State : std::uint8_t { counting, exchanging, summing_all, complete };

  void find_parts();
  void start_sum();

  const SparseRows& rows_;
  core::Slice slice_;
  PartsExchange& exchange_;
  std::size_t rank_;
  std::size_t most_words_ = 0;          ///< of all nodes together, up to which an exchange is fewer bytes
  std::vector<std::uint64_t> n_words_;  ///< of each node
  std::vector<core::Slice> parts_{};    ///< touched on this node, from the slice's begin
  std::span<float> sum_{};
  std::unique_ptr<comm::Plan> counts_;
  std::unique_ptr<comm::Plan> dense_;
  State phase_ = State::complete;
};

}  // namespace lockstep::parallel
