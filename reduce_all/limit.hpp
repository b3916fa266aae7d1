// The limit of any algorithm on this machine: all ranks at once read their input and write their output; and on one
// node all ranks at once read from other cores, or receive over the links of their GPUs, what they need.
// Invariant: measured by the same loop and in the same rounds as the algorithms, copies on the same kind of buffers.
// Used by the sweep (up to three more contenders per size) and the results (percentage of the limit).
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "comm/collective.hpp"
#include "comm/distance.hpp"
#include "comm/plan.hpp"
#include "core/units.hpp"

namespace lockstep::reduce_all {

/// How the probe copies; the faster kind counts.
enum class CopyKind { cached, streaming };

/// A plan without communication: copies input to output, both of the call's whole size.
[[nodiscard]] std::unique_ptr<comm::Plan> make_copy_plan(CopyKind kind);

/// start() writes `bytes` of shared memory, wait() reads as many that the right neighbour wrote; bind() does nothing.
[[nodiscard]] std::unique_ptr<comm::Plan> make_reading_plan(comm::CoreProbe& probe, core::Bytes bytes);

/// Bytes that every rank must read from other cores if the ranks share the work evenly: (P-1)/P of the vector for each
/// half of an all-reduce. A rank that sums a part needs the others' contributions or their sums, and the others need
/// the result.
[[nodiscard]] core::Bytes bytes_from_others(const comm::Call& call, int n_ranks);

/// Bytes to read in that measurement: at least 64 KiB, because otherwise the clock and the first line dominate. 0 if it
/// exceeds `room`: data that leaves the caches comes from memory, and then copying is the limit.
[[nodiscard]] core::Bytes bytes_to_read(const comm::Call& call, int n_ranks, core::Bytes room);

/// Bytes that the links of a GPU must carry in one direction, for the same reason: bytes_from_others(). If switches
/// reduce, an all_reduce sends the vector once: every contribution goes out, and all sums come in.
[[nodiscard]] core::Bytes bytes_over_links(const comm::Call& call, int n_ranks, bool switches_add);

/// Bytes to exchange in that measurement: bytes_from_others(), but at least 4 MiB, because otherwise the launch
/// dominates, and at most 64 MiB, which is enough; a multiple of comm::exchange_alignment.
[[nodiscard]] core::Bytes bytes_to_exchange(const comm::Call& call, int n_ranks);

/// The maximum over all calls.
[[nodiscard]] core::Bytes largest_exchange(std::span<const comm::Call> calls, int n_ranks);

/// Measurements for the limit at one size, all ranks at once.
struct LimitTimes {
  core::Seconds copying{};  ///< the call's whole size
  core::Seconds one_way{};  ///< a line, between the cores farthest apart; the next three are 0 if nothing is read
  core::Seconds reading{};
  core::Bytes read{};
  core::Seconds exchanging{};  ///< this many bytes with other GPUs; 0 if that is not measured
  core::Bytes exchanged{};
  bool switches_add = false;  ///< in transit
};

/// Enumerators equal the words of the result files.
enum class LimitedBy { copying, cores, links };
[[nodiscard]] std::string_view name(LimitedBy by) noexcept;

struct Limit {
  double GBps = 0;  ///< as algbw
  LimitedBy by = LimitedBy::copying;
};

/// The slowest of all. Copying: all_reduce reads and writes the whole vector on every rank; reduce_scatter and
/// all_gather read or write only 1/P of it: (1 + 1/P) / 2 of that time. Cores: reading from others; for less than was
/// read, interpolated between the time of a line and that of the reading. Links: exchanging what they must carry, in
/// proportion to the exchanged bytes.
[[nodiscard]] Limit find_limit(const comm::Call& call, const LimitTimes& times, int n_ranks);

}  // namespace lockstep::reduce_all
