#include "data/load/ledger.hpp"

namespace lockstep::data {
namespace {

/// The finalizer of SplitMix64 (Steele, Lea and Flood 2014); the offset keeps id 0 from being 0.
constexpr std::uint64_t hash_of(std::uint64_t id) noexcept {
  std::uint64_t hash = id + 0x9e37'79b9'7f4a'7c15;
  hash = (hash ^ (hash >> 30)) * 0xbf58'476d'1ce4'e5b9;
  hash = (hash ^ (hash >> 27)) * 0x94d0'49bb'1331'11eb;
  return hash ^ (hash >> 31);
}

}  // namespace

void Ledger::add(std::uint64_t id) noexcept { hash_ += hash_of(id); }

Ledger Ledger::complete(std::uint64_t n) noexcept {
  Ledger ledger;
  for (std::uint64_t id = 0; id < n; ++id) ledger.add(id);
  return ledger;
}

}  // namespace lockstep::data
