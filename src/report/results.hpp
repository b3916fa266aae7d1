// The part of a reduce_all result file that a comparison needs: its conditions, and the visits of every row.
// Invariant: any file content gives a Results or an Error (usage) that names file and key.
// Used by report/comparison and reduce_all's --baseline.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::report {

/// The subject of one row.
struct Subject {
  std::string collective;
  bool in_place = false;
  std::string dtype;
  std::string op;
  std::string algorithm;
  std::uint64_t bytes = 0;
  auto operator<=>(const Subject&) const = default;
};

struct Visit {
  double time_us = 0;  ///< positive
  std::optional<double> core_round_trip_ns{};
};

struct Series {
  Subject subject;
  std::vector<Visit> visits;
};

/// One launch.
struct Results {
  std::string name;                                        ///< of the file
  std::vector<std::pair<std::string, std::string>> facts;  ///< of its meta: keys and values as text, in fixed order
  std::vector<Series> series;
  bool is_complete = true;    ///< nothing ended it early
  std::uint64_t n_wrong = 0;  ///< elements, in all rows
};

/// `name` is for messages.
[[nodiscard]] Results parse_results(std::string_view text, const std::string& name);
[[nodiscard]] Results read_results(const std::string& path, std::string_view flag);

/// Throws core::Error (usage), about `flag`, if conditions differ that must be equal: ranks, nodes, processor, and
/// flags of measurement.
void require_comparable(const Results& before, const Results& now, std::string_view flag);

/// Returns the other differences, which may explain other times: "mpi_library: Open MPI 4.1.4, now Open MPI 5.0.3".
[[nodiscard]] std::vector<std::string> name_changes(const Results& before, const Results& now);

}  // namespace lockstep::report
