#include "data/load/ledger.hpp"

#include "core/sum_hash.hpp"

namespace lockstep::data {

void Ledger::add(std::uint64_t id) noexcept { hash_ += core::mix(id); }

Ledger Ledger::complete(std::uint64_t n) noexcept {
  Ledger ledger;
  for (std::uint64_t id = 0; id < n; ++id) ledger.add(id);
  return ledger;
}

}  // namespace lockstep::data
