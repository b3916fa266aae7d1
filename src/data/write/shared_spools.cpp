#include "data/write/shared_spools.hpp"

#include <cstring>
#include <iterator>
#include <optional>
#include <utility>

#include "core/error.hpp"

namespace lockstep::data {

SharedSpools::SharedSpools(std::string_view offered) {
  for (std::size_t at = 0; at + sizeof(SpoolPlace) <= offered.size(); at += sizeof(SpoolPlace)) {
    SpoolPlace place;
    std::memcpy(&place, offered.data() + at, sizeof(place));
    std::optional<Spool> spool = Spool::open(place);
    if (!spool) {  // all or none: an importer makes several in one go
      opened_.clear();
      return;
    }
    opened_.push_back(*std::move(spool));
  }
}

std::vector<Spool> SharedSpools::take(std::size_t n, const std::function<std::vector<Spool>()>& make) {
  if (opened_.empty()) {
    std::vector<Spool> spools = make();
    core::require(spools.size() == n, "as many spools are made as are taken");
    for (const Spool& spool : spools) made_.push_back(spool.place());
    return spools;
  }
  core::require(opened_.size() >= n, "all ranks take the same spools");
  const auto end = opened_.begin() + static_cast<std::ptrdiff_t>(n);
  std::vector<Spool> spools{std::move_iterator{opened_.begin()}, std::move_iterator{end}};
  opened_.erase(opened_.begin(), end);
  return spools;
}

std::string SharedSpools::offer() const {
  std::string offered(made_.size() * sizeof(SpoolPlace), '\0');
  if (!made_.empty()) std::memcpy(offered.data(), made_.data(), offered.size());
  return offered;
}

std::vector<Spool> take_spools(SharedSpools* shared, std::size_t n, const std::function<std::vector<Spool>()>& make) {
  return shared != nullptr ? shared->take(n, make) : make();
}

}  // namespace lockstep::data
