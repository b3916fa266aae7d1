#include "comm/collective.hpp"

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

}  // namespace lockstep::comm
