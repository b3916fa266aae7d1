// Which variables there are, by the library that reads them.
// Invariant: names without the prefix of their family, between spaces.
// Used by variables.cpp.
#pragma once

#include <span>
#include <string_view>

namespace lockstep::site {

struct Family {
  std::string_view prefix;
  std::string_view reader;  ///< who reads its variables: "NCCL"
  std::string_view names;
  bool is_open = false;  ///< has other members, by its design or because sites and launchers add to it
};

[[nodiscard]] std::span<const Family> families() noexcept;

}  // namespace lockstep::site
