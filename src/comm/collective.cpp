#include "comm/collective.hpp"

#include <utility>

namespace lockstep::comm {

std::string_view name(Collective collective) noexcept {
  switch (collective) {
    case Collective::all_reduce: return "all_reduce";
    case Collective::reduce_scatter: return "reduce_scatter";
    case Collective::all_gather: break;
  }
  return "all_gather";
}

std::string_view name(ReduceOp op) noexcept {
  switch (op) {
    case ReduceOp::sum: return "sum";
    case ReduceOp::prod: return "prod";
    case ReduceOp::min: return "min";
    case ReduceOp::max: return "max";
    case ReduceOp::avg: break;
  }
  return "avg";
}

std::optional<Collective> find_collective(std::string_view word) noexcept {
  // MPI writes these names as one word; prose puts a dash.
  static constexpr std::pair<std::string_view, Collective> spellings[] = {
      {"all_reduce", Collective::all_reduce},         {"all-reduce", Collective::all_reduce},
      {"allreduce", Collective::all_reduce},          {"reduce_scatter", Collective::reduce_scatter},
      {"reduce-scatter", Collective::reduce_scatter}, {"reducescatter", Collective::reduce_scatter},
      {"all_gather", Collective::all_gather},         {"all-gather", Collective::all_gather},
      {"allgather", Collective::all_gather}};
  for (const auto& [spelling, collective] : spellings)
    if (spelling == word) return collective;
  return std::nullopt;
}

std::optional<ReduceOp> find_reduce_op(std::string_view word) noexcept {
  for (const ReduceOp op : all_reduce_ops)
    if (name(op) == word) return op;
  return std::nullopt;
}

}  // namespace lockstep::comm
